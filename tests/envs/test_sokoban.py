from collections import deque

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.moves import DIRECTIONS
from rllm_envs.puzzles.sokoban import SokobanEnv, draw, read
from rllm_envs.puzzles.sokoban_rules import push_distances, random_level, solve

ROOM = ["######", "#.-$@#", "#----#", "######"]


def fewest_steps(level, player, boxes):
    """Breadth-first search over single steps."""
    steps, queue = {(player, boxes): 0}, deque([(player, boxes)])
    while queue:
        here, held = queue.popleft()
        if held == level.goals:
            return steps[here, held]
        for down, right in DIRECTIONS.values():
            ahead, behind = ((here[0] + k * down, here[1] + k * right) for k in (1, 2))
            after = held - {ahead} | {behind} if ahead in held else held
            if ahead not in level.floor or not after <= level.floor or len(after) < len(held):
                continue
            if (ahead, after) not in steps:
                steps[ahead, after] = steps[here, held] + 1
                queue.append((ahead, after))
    return None


def test_solutions_are_as_short_as_a_search_over_single_steps_finds():
    for seed in range(25):
        rng = np.random.default_rng(seed)
        level, player, boxes = random_level(rng, size=4, num_boxes=2, max_moves=60)
        assert len(solve(level, player, boxes)) == fewest_steps(level, player, boxes)


def test_spoilt_games_have_no_solution():
    level, players, boxes = read(["#####", "#$-.#", "#-@-#", "#####"])
    assert solve(level, players[0], boxes) == []
    assert fewest_steps(level, players[0], boxes) is None


def test_push_distances_and_dead_places_are_those_worked_by_hand():
    level, _, _ = read(ROOM)
    # The upper row: pushed left along the wall from the right; the right end cannot be pushed.
    assert push_distances(level, (1, 1)) == {(1, 1): 0, (1, 2): 1, (1, 3): 2}


def test_drawings_are_read_and_drawn_again():
    rows = ["######", "#@$.*#", "#----#", "#-$+-#", "######"]
    level, players, boxes = read(rows)
    assert players == [(1, 1), (3, 3)]
    assert boxes == {(1, 2), (1, 4), (3, 2)}
    assert level.goals == {(1, 3), (1, 4), (3, 3)}
    assert draw(level, (1, 1), boxes)[1] == "#@$.*#"


def test_boxes_are_pushed_and_never_pulled():
    env = SokobanEnv()
    env.reset(options={"task": {"rows": ROOM}})
    observation, _, _, _, info = env.step(r"\boxed{left, right}")
    assert observation == "######\n#.$-@#\n#----#\n######"
    assert info["boxes_left"] == 1
    assert env.step(r"\boxed{left, left}")[1:3] == (1.0, True)


def test_what_stands_in_the_way_is_told():
    env = SokobanEnv()
    env.reset(options={"task": {"rows": ["#######", "#-.---#", "#@$*--#", "#-----#", "#######"]}})
    assert env.step(r"\boxed{right}")[0].startswith("The box cannot be pushed right.")
    assert env.step(r"\boxed{left}")[0].startswith("There is a wall")


def test_a_spoilt_game_still_has_an_oracle_action():
    env = SokobanEnv()
    env.reset(options={"task": {"rows": ["#####", "#---#", "#-$.#", "#-@-#", "#####"]}})
    env.step(r"\boxed{up}")
    assert env.oracle_action() == r"\boxed{up}"


@pytest.mark.parametrize(
    "rows",
    [
        None,
        ["#####", "#@$.-", "#####"],
        ["#####", "#-$.#", "#####"],
        ["#####", "#@$-#", "#####"],
        ["#####", "#$@.#", "#####"],
        ["#####", "#@*-#", "#####"],
    ],
)
def test_rooms_that_cannot_be_played_are_refused(rows):
    with pytest.raises(TaskError):
        SokobanEnv().reset(options={"task": {"rows": rows}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="size"):
        SokobanEnv(size=3)
    with pytest.raises(EnvArgumentError, match="boxes"):
        SokobanEnv(size=4, boxes=3)
    with pytest.raises(EnvArgumentError, match="max_turns"):
        SokobanEnv(max_turns=5)
