import random
from typing import Any

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.frozen_lake import (
    FrozenLakeEnv,
    best_chance,
    has_way,
    shortest_way,
    success_probabilities,
)

LAKE = ["SFFF", "FHFH", "FFFH", "HFFG"]


def start(**arguments):
    env = FrozenLakeEnv(**arguments)
    return env, env.reset(seed=0, options={"task": {"rows": LAKE}})[0]


def test_the_lake_is_shown_with_the_agent_on_it():
    env, observation = start()
    assert observation.endswith("AFFF\nFHFH\nFFFH\nHFFG")
    assert env.step(r"\boxed{Down}")[0] == "SFFF\nAHFH\nFFFH\nHFFG"


def test_several_moves_are_made_in_order_and_the_goal_ends_the_episode():
    env, _ = start()
    _, reward, terminated, _, info = env.step(r"\boxed{down, down; right R D r}")
    assert (reward, terminated, info["success"], info["moves_left"]) == (1.0, True, True, 26)


def test_a_hole_ends_the_episode_and_the_rest_of_the_moves_is_not_made():
    env, _ = start()
    observation, reward, terminated, _, info = env.step(r"\boxed{down, right, right}")
    assert observation.startswith("You have fallen into a hole.")
    assert (reward, terminated, info["moves_left"]) == (0.0, True, 30)


def test_the_edge_stops_and_costs_a_move():
    env, _ = start()
    observation, _, _, _, info = env.step(r"\boxed{up, left}")
    assert observation == "AFFF\nFHFH\nFFFH\nHFFG"
    assert info["moves_left"] == 30


def test_the_budget_of_moves_truncates():
    env, _ = start(max_turns=6)
    _, reward, terminated, truncated, info = env.step(r"\boxed{up up up up up up down}")
    assert (reward, terminated, truncated, info["moves_left"]) == (0.0, False, True, 0)


@pytest.mark.parametrize("action", ["", "down", r"\boxed{}", r"\boxed{down, jump}", r"\boxed{7}"])
def test_other_text_gets_a_hint_and_moves_nothing(action):
    env, _ = start()
    observation, _, _, _, info = env.step(action)
    assert observation == FrozenLakeEnv.hint
    assert (info["invalid"], info["moves_left"]) == (True, 32)


def test_the_plan_is_a_shortest_way():
    env, _ = start()
    # The lake of the original game needs six moves, three down and three right.
    assert sorted(env.plan()) == ["down"] * 3 + ["right"] * 3


def test_the_values_of_slippery_ice_are_those_of_a_lake_worked_by_hand():
    # One row "SFG": right leads right with 1/3 and, up and down being edges, stays with 2/3.
    values = success_probabilities(["SFG"], 3)
    assert values[1] == pytest.approx(np.array([[0, 1 / 3, 1]]))
    assert values[2] == pytest.approx(np.array([[1 / 9, 1 / 3 + 2 / 9, 1]]))
    assert values[3][0][0] == pytest.approx(5 / 9 / 3 + 2 / 3 / 9)


def test_slipping_leads_ahead_or_aside_never_back_with_a_third_each():
    env = FrozenLakeEnv(size=3, slippery=True)
    counts = {"ahead": 0, "left": 0, "right": 0}
    for seed in range(300):
        env.reset(seed=seed, options={"task": {"rows": ["FFF", "FSF", "FFG"]}})
        place = env.step(r"\boxed{down}")[0].replace("\n", "").index("A")
        counts[{7: "ahead", 5: "left", 3: "right"}[place]] += 1
    # Three standard deviations of a binomial of 300 and 1/3 are 24.5.
    assert all(abs(count - 100) < 25 for count in counts.values())


def test_the_best_policy_wins_as_often_as_its_value_says():
    env = FrozenLakeEnv(slippery=True)
    value = success_probabilities(LAKE, env.max_turns)[-1][0, 0]
    wins = 0.0
    for seed in range(200):
        env.reset(seed=seed, options={"task": {"rows": LAKE}})
        is_over = False
        while not is_over:
            _, reward, terminated, truncated, _ = env.step(env.oracle_action())
            is_over = terminated or truncated
        wins += reward
    assert wins / 200 == pytest.approx(value, abs=3 * (0.25 / 200) ** 0.5)


@pytest.mark.parametrize(
    "rows",
    [
        None,
        ["SF", "F"],
        ["SF", "FX"],
        ["SF", "FF"],
        ["SS", "FG"],
        ["SH", "HG"],
    ],
)
def test_lakes_that_cannot_be_played_are_refused(rows):
    with pytest.raises(TaskError):
        FrozenLakeEnv().reset(options={"task": {"rows": rows}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="size"):
        FrozenLakeEnv(size=1)
    with pytest.raises(EnvArgumentError, match="slippery"):
        FrozenLakeEnv(slippery=1)
    with pytest.raises(EnvArgumentError, match="max_turns"):
        FrozenLakeEnv(max_turns=0)
    hostile: Any
    for hostile in (-0.1, 0.95, True, "0.5"):
        with pytest.raises(EnvArgumentError, match=r"min_chance must be a number from 0 to 0\.9"):
            FrozenLakeEnv(slippery=True, min_chance=hostile)
    with pytest.raises(EnvArgumentError, match="and 0 without"):
        FrozenLakeEnv(min_chance=0.5)


def test_a_lake_has_a_way_where_a_shortest_one_is_found():
    ways = 0
    rng = random.Random(0)
    for _ in range(3_000):
        height, width = rng.randint(2, 16), rng.randint(2, 16)
        holes = rng.uniform(0.1, 0.5)
        cells = "".join("FH"[rng.random() < holes] for _ in range(height * width))
        cells = f"S{cells[1:-1]}G"
        rows = [cells[start : start + width] for start in range(0, len(cells), width)]
        assert has_way(rows) == bool(shortest_way(rows, (0, 0))), rows
        ways += has_way(rows)
    assert 500 < ways < 2_500, "both kinds occur"
    # The last cell of a row and the first of the next are no neighbours.
    assert not has_way(["SFFF", "HHHF", "FHHH", "FFFG"])
    assert has_way(["SFFF", "HHHF", "FHFF", "FFFG"])


def test_a_seed_keeps_its_lake():
    env = FrozenLakeEnv(size=5)
    env.reset(seed=0)
    assert env.task == {"rows": ["SFHHF", "FFFFF", "FHFHF", "HFFFF", "HHFFG"]}


def every_lake() -> list[tuple[str, ...]]:
    """All lakes of four rows that can be crossed."""
    found = []
    for code in range(2**14):
        cells = "S" + "".join("FH"[code >> cell & 1] for cell in range(14)) + "G"
        rows = [cells[start : start + 4] for start in range(0, 16, 4)]
        if shortest_way(rows, (0, 0)):
            found.append(tuple(rows))
    return found


@pytest.mark.slow
def test_the_threshold_holds_for_drawn_lakes_and_for_all_different_ones():
    kept = [(lake, chance) for lake in every_lake() if (chance := best_chance(lake, 96)) >= 0.5]
    weights = [0.25 ** "".join(lake).count("H") for lake, _ in kept]  # 0.2 / 0.8 for each hole
    drawn = sum(w * chance for w, (_, chance) in zip(weights, kept, strict=True)) / sum(weights)
    assert len(kept) == 1805
    assert drawn == pytest.approx(0.97, abs=0.005)
    assert np.mean([chance for _, chance in kept]) == pytest.approx(0.91, abs=0.005)


def test_lakes_of_slippery_ice_can_be_crossed_with_the_least_chance():
    env = FrozenLakeEnv(slippery=True, min_chance=0.9, split="all")
    any_lake = FrozenLakeEnv(slippery=True, split="all")
    seeds = range(60)
    for one in (env, any_lake):
        one.reset(seed=0)
    chances = [best_chance(tuple(env.generate_task()["rows"]), 96) for _ in seeds]
    others = [best_chance(tuple(any_lake.generate_task()["rows"]), 96) for _ in seeds]
    assert min(chances) >= 0.9
    assert min(others) < 0.5


def test_a_least_chance_that_no_lake_has_is_said():
    env = FrozenLakeEnv(slippery=True, min_chance=0.9, max_turns=6)
    with pytest.raises(EnvArgumentError, match=r"none of 1000 lakes of size 4 .* lower min_chance"):
        env.reset(seed=0)
