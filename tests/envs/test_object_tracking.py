import re

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.object_tracking import ObjectTrackingEnv

TASK = {
    "people": ["Ana", "Ben", "Eva"],
    "things": ["ball", "key", "hat"],
    "swaps": [[0, 1], [1, 2]],
}


def reward(task, answer):
    env = ObjectTrackingEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_story_and_its_end():
    env = ObjectTrackingEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "Ana holds the ball, Ben holds the key, Eva holds the hat. Then pairs of them swap what "
        "they hold. Ana and Ben swap. Ben and Eva swap. Who holds what in the end? Answer as "
        r"\boxed{Ana: ..., Ben: ..., Eva: ...}."
    )
    # Key, ball, hat; then key, hat, ball.
    assert env.oracle_action() == r"\boxed{Ana: key, Ben: hat, Eva: ball}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Ana: key, Ben: hat, Eva: ball", 1.0),
        ("eva = the ball; ana = the key; ben = the hat", 1.0),
        ("Ana: key, Ben: hat", 0.0),
        ("Ana: ball, Ben: key, Eva: hat", 0.0),
        ("key, hat, ball", 0.0),
        ("", 0.0),
    ],
)
def test_everybodys_thing_must_be_right(answer, expected):
    assert reward(TASK, answer) == expected


@pytest.mark.parametrize(("people", "swaps"), [(3, 1), (4, 5), (10, 50)])
def test_the_end_agrees_with_following_each_thing_through_the_story(people, swaps):
    env = ObjectTrackingEnv(num_people=people, num_swaps=swaps)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        holders = {thing: name for name, thing in re.findall(r"(\w+) holds the (\w+)", observation)}
        pairs = re.findall(r"(\w+) and (\w+) swap\.", observation)
        assert (len(holders), len(pairs)) == (people, swaps)
        for thing, name in holders.items():
            for pair in pairs:
                if name in pair:
                    name = pair[1 - pair.index(name)]
            assert f"{name}: {thing}" in env.task["answer"].split(", ")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"people": ["Ana", "ana", "Eva"]}, "distinct"),
        ({"things": ["ball"]}, "'things' must be a list of 3 to 3"),
        ({"swaps": []}, "'swaps' must be a list of 1 to 50"),
        ({"swaps": [[0, 0]]}, "pairs of two different people"),
        ({"swaps": [[0, 3]]}, "pairs of two different people"),
        ({"swaps": [[0, "1"]]}, "pairs of two different people"),
        ({"answer": "Ana: ball, Ben: key, Eva: hat"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize("arguments", [{"num_people": 2}, {"num_swaps": 51}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        ObjectTrackingEnv(**arguments)
