import copy

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.text_adventure import TextAdventureEnv

# attic
#   |  (red door)
# hall -- cellar
TASK = {
    "rooms": ["hall", "cellar", "attic"],
    "exits": [[0, "east", 1, ""], [0, "north", 2, "red"]],
    "items": {"red key": [1, True], "crown": [2, False], "rope": [0, False]},
    "start": 0,
    "treasure": "crown",
    "target": 1,
}


def start(**changes):
    env = TextAdventureEnv()
    return env, env.reset(options={"task": {**TASK, **changes}})[0]


def do(env, command):
    return env.step(f"<command>{command}</command>")[0]


def test_the_first_observation_states_quest_verbs_and_room():
    _, observation = start()
    assert "find the crown and drop it in the cellar" in observation
    assert observation.endswith(
        "You are in the hall. Exits: north (locked red door), east. You see: rope."
    )
    assert "attic" not in observation


def test_the_quest_is_solved_by_hand():
    env, _ = start()
    assert do(env, "go north") == "The red door is locked."
    assert do(env, "unlock north with red key") == "You need to carry and use the red key."
    assert do(env, "East") == "You are in the cellar. Exits: west. You see: chest (closed)."
    assert do(env, "take red key") == "You see no red key here."
    assert do(env, "open the chest") == "You open the chest and find: red key."
    assert do(env, "take the red key") == "You take the red key."
    assert do(env, "inventory") == "You carry: red key."
    do(env, "w")
    assert do(env, "unlock the north door with the red key") == "You unlock the red door."
    assert do(env, "go north") == "You are in the attic. Exits: south. You see: crown."
    do(env, "get crown")
    do(env, "s")
    assert do(env, "drop rope") == "You do not carry a rope."
    do(env, "e")
    observation, reward, terminated, _, info = env.step("<command>drop crown</command>")
    assert observation == "You drop the crown in the cellar."
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_the_treasure_dropped_elsewhere_earns_nothing():
    env, _ = start(items={"crown": [0, False]})
    do(env, "take crown")
    assert env.step("<command>drop crown</command>")[1:3] == (0.0, False)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("go south", "There is no exit that way."),
        ("unlock east", "There is no locked door that way."),
        ("open chest", "There is no closed chest here."),
        ("take crown", "You see no crown here."),
    ],
)
def test_what_cannot_be_done_is_explained(command, answer):
    assert do(start()[0], command) == answer


def test_unknown_verbs_are_invalid():
    env, _ = start()
    for action in ("<command>fly</command>", "go north", "<command>go up</command>"):
        assert env.step(action)[4]["invalid"] is True


def test_the_oracle_takes_the_shortest_way_here():
    env, _ = start()
    said = []
    reward = 0.0
    while not reward:
        said.append(env.oracle_action()[9:-10])
        reward = env.step(env.oracle_action())[1]
    assert said == [
        *("go east", "open chest", "take red key", "go west", "unlock north with red key"),
        *("go north", "take crown", "go south", "go east", "drop crown"),
    ]


def reachable_without(task, colour):
    """Rooms that a flood fill reaches when only the doors of a colour stay closed."""
    seen, queue = {task["start"]}, [task["start"]]
    while queue:
        room = queue.pop()
        for a, _, b, lock in task["exits"]:
            for here, there in ((a, b), (b, a)):
                if here == room and there not in seen and lock != colour:
                    seen.add(there)
                    queue.append(there)
    return seen


def test_each_key_lies_before_its_door_and_every_room_is_joined():
    env = TextAdventureEnv(num_rooms=14, num_locks=4, max_turns=120, split="all")
    for seed in range(60):
        env.reset(seed=seed)
        task = env.task
        colours = [lock for *_, lock in task["exits"] if lock]
        assert len(set(colours)) == len(colours) == 4
        assert len(reachable_without(task, "none")) == 14
        for colour in colours:
            before = reachable_without(task, colour)
            assert len(before) < 14
            assert task["items"][f"{colour} key"][0] in before


def test_grid_directions_are_consistent():
    env = TextAdventureEnv(num_rooms=12, split="all")
    env.reset(seed=4)
    places = {0: (0, 0)}
    steps = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
    for a, direction, b, _ in env.task["exits"]:
        x, y = places[a]
        expected = (x + steps[direction][0], y + steps[direction][1])
        assert places.setdefault(b, expected) == expected
    assert len(set(places.values())) == 12


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rooms": ["hall", "hall"]}, "rooms"),
        ({"exits": [[0, "up", 1, ""]]}, "exit"),
        ({"exits": [[0, "east", 1, ""], [0, "east", 2, ""]]}, "one exit"),
        ({"items": {"crown": [7, False]}}, "must exist"),
        ({"items": {"Crown": [0, False]}}, "lower-case"),
        ({"treasure": "ring"}, "treasure"),
        ({"target": 2}, "must not lie"),
        ({"start": 3}, "start"),
        ({"items": {"red key": [2, False], "crown": [2, False]}}, "out of reach"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, message):
    with pytest.raises(TaskError, match=message):
        start(**copy.deepcopy(change))


def test_arguments_out_of_range_are_refused():
    for arguments in ({"num_rooms": 3}, {"num_rooms": 5, "num_locks": 3}, {"max_turns": 5}):
        with pytest.raises(EnvArgumentError, match=list(arguments)[-1]):
            TextAdventureEnv(**arguments)
