import re

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.spatial_reasoning import SpatialReasoningEnv

TASK = {
    "facing": "north",
    "steps": [["forward", 1], ["turn", "left"], ["forward", 3], ["backward", 1], ["south", 4],
              ["turn", "around"]],
}  # fmt: skip


def reward(task, answer):
    env = SpatialReasoningEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_walk_and_its_end():
    env = SpatialReasoningEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "You face north. Take 1 step forward. Turn left. Take 3 steps forward. Take 1 step "
        "backward. Take 4 steps to the south. Turn around. Steps to a compass direction do not "
        "change the way you face. How far are you from the start, and which way do you face? "
        r"Answer as \boxed{steps east, steps north, direction}, negative numbers for west and "
        "south, such as 3, -2, west."
    )
    # (0, 1); west; (-3, 1); (-2, 1); (-2, -3); east.
    assert env.oracle_action() == r"\boxed{-2, -3, east}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("-2, -3, east", 1.0),
        ("(-2, -3, East)", 1.0),
        (r"-2, -3, \text{east}", 1.0),
        ("\u22122, \u22123, east", 1.0),
        ("-2, -3", 0.0),
        ("2, 3, east", 0.0),
        ("-3, -2, east", 0.0),
        ("-2, -3, west", 0.0),
        ("", 0.0),
    ],
)
def test_place_and_direction_must_be_right(answer, expected):
    assert reward(TASK, answer) == expected


@pytest.mark.parametrize("num_steps", [2, 6, 50])
def test_ends_agree_with_walking_in_the_complex_plane(num_steps):
    compass = {"north": 1j, "east": 1, "south": -1j, "west": -1}
    turns = {"left": 1j, "right": -1j, "around": -1}
    env = SpatialReasoningEnv(num_steps=num_steps)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        heading = compass[observation.split()[2].rstrip(".")]
        place = 0
        moves = re.findall(r"Turn (\w+)\.|Take (\d+) steps? (?:to the )?(\w+)\.", observation)
        assert len(moves) == num_steps
        for turn, count, way in moves:
            if turn:
                heading *= turns[turn]
            else:
                unit = {"forward": heading, "backward": -heading}.get(way) or compass[way]
                place += int(count) * unit
        place = complex(place)
        faced = next(name for name, value in compass.items() if value == heading)
        assert env.task["answer"] == f"{int(place.real)}, {int(place.imag)}, {faced}"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"facing": "up"}, "'facing' must be one of north"),
        ({"steps": []}, "'steps' must be a list"),
        ({"steps": [["turn", "up"]]}, "'steps' must hold"),
        ({"steps": [["forward", 0]]}, "'steps' must hold"),
        ({"steps": [["jump", 1]]}, "'steps' must hold"),
        ({"steps": ["turn left"]}, "'steps' must hold"),
        ({"answer": "1, 1, east"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize("arguments", [{"num_steps": 1}, {"max_distance": 101}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        SpatialReasoningEnv(**arguments)
