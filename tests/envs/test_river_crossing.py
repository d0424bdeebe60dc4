import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.river_crossing import RiverCrossingEnv, crossings, left_alone

TASK = {
    "items": ["cabbage", "goat", "wolf"],
    "pairs": [["cabbage", "goat"], ["goat", "wolf"]],
    "capacity": 1,
}


def start(**arguments):
    env = RiverCrossingEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


def test_the_known_task_of_wolf_goat_and_cabbage_needs_seven_crossings():
    pairs = [frozenset(pair) for pair in TASK["pairs"]]
    plan = crossings(TASK["items"], pairs, 1)
    assert len(plan) == 7
    assert [plan[0], plan[1], plan[3], plan[5], plan[6]] == [
        *("goat", "nothing", "goat", "nothing", "goat")
    ]


@pytest.mark.parametrize(("number", "capacity"), [(3, 1), (4, 2), (5, 2), (6, 3), (5, 1)])
def test_without_pairs_each_round_trip_brings_a_full_boat(number, capacity):
    names = ["cat", "dog", "fox", "hay", "owl", "pig"][:number]
    trips = -(-number // capacity)
    assert len(crossings(names, [], capacity)) == 2 * trips - 1


def test_three_that_all_clash_do_not_cross_in_a_boat_for_one():
    names = ["cat", "dog", "fox"]
    pairs = [frozenset(p) for p in (("cat", "dog"), ("cat", "fox"), ("dog", "fox"))]
    assert crossings(names, pairs, 1) == []
    assert len(crossings(names, pairs, 2)) > 0


def test_a_pair_is_alone_on_the_bank_without_the_boat():
    pairs = [frozenset({"goat", "wolf"})]
    both = frozenset({"goat", "wolf"})
    assert left_alone(["goat", "wolf"], pairs, (both, True)) == frozenset()
    assert left_alone(["goat", "wolf"], pairs, (both, False)) == both
    assert left_alone(["goat", "wolf"], pairs, (frozenset(), True)) == both


def test_the_first_observation_names_pairs_seats_and_banks():
    _, observation = start()
    assert "cabbage and goat; goat and wolf" in observation
    assert "holds you and 1 passenger." in observation
    assert observation.endswith(
        "Left bank: cabbage, goat, wolf. Right bank: nothing. You and the boat: left."
    )


def test_a_solution_worked_by_hand_wins():
    env, _ = start()
    observation, _, _, _, info = env.step(r"\boxed{Goat; nothing; the wolf; goat}")
    assert observation == "Left bank: cabbage, goat. Right bank: wolf. You and the boat: left."
    assert info["moves_left"] == 26
    assert env.step("\\boxed{cabbage\nalone; take goat}")[1:3] == (1.0, True)


def test_a_pair_left_alone_ends_the_game():
    env, _ = start()
    observation, reward, terminated, _, _ = env.step(r"\boxed{wolf; nothing}")
    assert observation.startswith("You have left cabbage and goat alone together.")
    assert (reward, terminated) == (0.0, True)


def test_impossible_crossings_are_told_and_change_nothing():
    env, _ = start()
    assert env.step(r"\boxed{goat, wolf}")[0].startswith("The boat does not hold 2 passengers.")
    env.step(r"\boxed{goat}")
    observation, _, _, _, info = env.step(r"\boxed{wolf}")
    assert observation.startswith("The wolf is not on the bank where the boat is.")
    assert info["invalid"] is False


@pytest.mark.parametrize("action", ["", r"\boxed{}", r"\boxed{tiger}", r"\boxed{goat; tiger}"])
def test_other_text_gets_a_hint(action):
    env, _ = start()
    observation, _, _, _, info = env.step(action)
    assert (observation, info["invalid"], info["moves_left"]) == (env.hint, True, 30)


def test_in_drawn_tasks_the_pairs_make_the_way_longer():
    env = RiverCrossingEnv()
    for seed in range(20):
        env.reset(seed=seed)
        assert len(env.plan()) > 3


@pytest.mark.parametrize(
    "change",
    [
        {"items": None},
        {"items": ["goat", "goat"]},
        {"items": ["goat", "unicorn"]},
        {"pairs": [["goat", "goat"]]},
        {"pairs": [["goat", "tiger"]]},
        {"pairs": [["goat"]]},
        {"pairs": "goat"},
        {"capacity": 0},
        {"pairs": [["cabbage", "goat"], ["goat", "wolf"], ["cabbage", "wolf"]]},
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change):
    with pytest.raises(TaskError):
        RiverCrossingEnv().reset(options={"task": TASK | change})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="items"):
        RiverCrossingEnv(items=8)
    with pytest.raises(EnvArgumentError, match="hardly ever possible"):
        RiverCrossingEnv(items=5, capacity=1)
