import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.household import HouseholdEnv

TASK = {
    "places": ["fridge 1", "microwave 1", "sink 1", "cabinet 1", "shelf 1"],
    "things": {"mug 1": "cabinet 1", "mug 2": "shelf 1", "book 1": "shelf 1"},
    "wanted": "mug",
    "state": "clean",
    "target": "fridge 1",
    "count": 1,
}


def start(**changes):
    env = HouseholdEnv()
    return env, env.reset(options={"task": {**TASK, **changes}})[0]


def do(env, command):
    observation, reward, terminated, _, info = env.step(f"<command>{command}</command>")
    assert info["success"] is (reward == 1.0) is terminated
    return observation


def test_the_first_observation_names_rooms_places_and_the_goal_but_no_thing():
    _, observation = start()
    assert (
        "kitchen: fridge 1, microwave 1, sink 1, cabinet 1\nliving room: shelf 1\n" in observation
    )
    assert "put a clean mug in the fridge 1." in observation
    assert "book 1" not in observation
    assert "mug 2" not in observation


def test_a_task_is_done_by_hand():
    env, _ = start()
    assert do(env, "go to cabinet 1") == (
        "You stand at the cabinet 1 in the kitchen. The cabinet 1 is closed."
    )
    assert do(env, "take mug 1 from cabinet 1") == "The cabinet 1 is closed."
    assert do(env, "open cabinet 1").endswith("In the cabinet 1 you see a mug 1.")
    assert do(env, "Take the mug 1 from the Cabinet 1.") == "You take the mug 1 from the cabinet 1."
    assert do(env, "inventory") == "You carry the mug 1."
    assert do(env, "clean mug 1 with sink 1") == "You do not stand at the sink 1."
    do(env, "go to sink 1")
    assert do(env, "heat mug 1 with sink 1") == "You cannot heat anything with the sink 1."
    assert do(env, "clean mug 1 with sink 1").endswith("It is clean now.")
    do(env, "go to fridge 1")
    assert do(env, "put mug 1 in fridge 1") == "The fridge 1 is closed."
    do(env, "open fridge 1")
    assert env.step("<command>put mug 1 into fridge 1</command>")[1:3] == (1.0, True)


def test_a_thing_without_the_state_does_not_count():
    env, _ = start()
    for command in ("go to shelf 1", "take mug 2 from shelf 1", "go to fridge 1", "open fridge 1"):
        do(env, command)
    assert do(env, "put mug 2 in fridge 1") == "You put the mug 2 in the fridge 1."


def test_hot_and_cold_drive_each_other_out():
    env, _ = start(state="hot", target="shelf 1")
    for command in (
        *("go to shelf 1", "take mug 2 from shelf 1", "go to microwave 1"),
        *("heat mug 2 with microwave 1", "go to fridge 1", "cool mug 2 with fridge 1"),
        *("go to shelf 1", "put mug 2 on shelf 1"),
    ):
        do(env, command)
    for command in (
        *("take mug 2 from shelf 1", "go to microwave 1", "heat mug 2 with microwave 1"),
        "go to shelf 1",
    ):
        do(env, command)
    assert env.step("<command>put mug 2 on shelf 1</command>")[1] == 1.0


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("take book 1 from shelf 1", "You carry the mug 2 and have no hand free."),
        ("take fork 1 from shelf 1", "You see no fork 1 there. On the shelf 1 you see a book 1."),
        ("put book 1 on shelf 1", "You do not carry a book 1."),
        ("open shelf 1", "The shelf 1 cannot be opened, or is open."),
        ("close shelf 1", "You cannot close the shelf 1 now."),
        ("go to moon 1", "There is no moon 1 here."),
        ("look", "You stand at the shelf 1. On the shelf 1 you see a book 1."),
    ],
)
def test_what_cannot_be_done_is_explained(command, answer):
    env, _ = start()
    do(env, "go to shelf 1")
    do(env, "take mug 2 from shelf 1")
    assert do(env, command) == answer


def test_an_unknown_verb_is_invalid():
    env, _ = start()
    for action in ("<command>dance</command>", "look", "<command></command>"):
        assert env.step(action)[4]["invalid"] is True
    assert env.step("<command>look</command>")[4]["invalid"] is False


def test_two_things_must_be_brought_and_the_oracle_brings_them_from_any_state():
    env, observation = start(count=2, state="cold", target="cabinet 1")
    assert "put two things of the kind mug, both cold, in the cabinet 1" in observation
    for command in ("go to shelf 1", "take book 1 from shelf 1", "go to fridge 1"):
        do(env, command)
    rewards = [env.step(env.oracle_action())[1] for _ in range(13)]
    assert sum(rewards[:-1]) == 0.0
    while not rewards[-1] and len(rewards) < 30:
        rewards.append(env.step(env.oracle_action())[1])
    assert rewards[-1] == 1.0


def test_the_oracle_needs_few_turns():
    env = HouseholdEnv(num_things=40, num_wanted=2, split="all")
    for seed in range(60):
        env.reset(seed=seed)
        turns, reward = 0, 0.0
        while not reward:
            reward = env.step(env.oracle_action())[1]
            turns += 1
        assert turns <= 15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"places": ["cave 1"]}, "place must be"),
        ({"things": {"mug 1": "shelf 9"}}, "must be at a place"),
        ({"things": {"ghost 1": "shelf 1"}}, "thing must be of"),
        ({"wanted": "apple"}, "must hold 1"),
        ({"wanted": "book", "state": "hot"}, "state"),
        ({"target": "bed 1"}, "target"),
        ({"state": "", "target": "shelf 1"}, "must not hold"),
        ({"count": 3}, "count"),
        ({"places": ["fridge 1", "cabinet 1", "shelf 1"]}, "what gives the state"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, message):
    with pytest.raises(TaskError, match=message):
        start(**change)


def test_arguments_out_of_range_are_refused():
    for arguments in ({"num_things": 4}, {"num_wanted": 3}, {"max_turns": 5}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            HouseholdEnv(**arguments)
