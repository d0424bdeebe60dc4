import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.zebra_puzzle import ATTRIBUTES, ZebraPuzzleEnv

TASK = {
    "houses": 2,
    "attributes": {"name": ["Ana", "Ben"], "colour": ["red", "blue"], "animal": ["cat", "dog"]},
    "clues": [["same", "Ana", "red"], ["at", "red", 2], ["left", "dog", "cat"]],
}


def reward(task, answer):
    env = ZebraPuzzleEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_puzzle_is_told_and_has_its_answer():
    env = ZebraPuzzleEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "2 houses stand in a row, numbered 1 to 2 from left to right. One person lives in each. "
        "Each of these values belongs to exactly one house.\n"
        "name: Ana, Ben\ncolour: blue, red\nanimal: cat, dog\n"
        "1. Ana is the person in the red house.\n"
        "2. The person in the red house lives in house 2.\n"
        "3. The owner of the dog lives directly to the left of the owner of the cat.\n"
        r"Which values belong to which house? Answer as \boxed{1: name, colour, animal; 2: name, "
        "colour, animal} with the values in place of their kinds."
    )
    assert env.oracle_action() == r"\boxed{1: Ben, blue, dog; 2: Ana, red, cat}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("1: Ben, blue, dog; 2: Ana, red, cat", 1.0),
        ("2: cat, ana, red; 1: dog, Ben, blue", 1.0),
        ("House 1: name Ben, colour blue, animal dog\nHouse 2: Ana, red, cat", 1.0),
        (r"1: \text{Ben, blue, dog} \\ 2: \text{Ana, red, cat}", 1.0),
        ("1: Ana, blue, dog; 2: Ben, red, cat", 0.0),
        ("1: Ben, blue, dog", 0.0),
        ("1: Ben, blue, dog, cat; 2: Ana, red, cat", 0.0),
        ("1: Ben, blue, dog; 1: Ana, red, cat", 0.0),
        ("1: Ben, blue, dog; 2: Ana, red, cat; 3:", 0.0),
        ("Ben, blue, dog; Ana, red, cat", 0.0),
        ("", 0.0),
    ],
)
def test_the_whole_arrangement_must_be_right(answer, expected):
    assert reward(TASK, answer) == expected


@pytest.mark.parametrize(("houses", "attributes"), [(2, 2), (3, 3), (4, 4), (5, 3)])
def test_sizes_follow_the_arguments(houses, attributes):
    env = ZebraPuzzleEnv(num_houses=houses, num_attributes=attributes, split="all")
    for seed in range(4):
        observation, _ = env.reset(seed=seed)
        task = env.task
        assert (task["houses"], len(task["attributes"])) == (houses, attributes)
        assert {len(group) for group in task["attributes"].values()} == {houses}
        assert task["answer"] not in observation
        assert env.step(env.oracle_action())[1] == 1.0


def test_no_value_belongs_to_two_attributes():
    values = [value.lower() for _, group in ATTRIBUTES.values() for value in group]
    assert len(set(values)) == len(values)
    assert not {*values} & {*ATTRIBUTES}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"houses": 6}, "'houses' must be an integer from 2 to 5"),
        ({"attributes": {}}, "'attributes' must be a dict of 1 to 5"),
        ({"attributes": {"car": ["vw", "bmw"]}}, "under names of name, colour"),
        ({"attributes": {"name": ["Ana"]}}, "'name' must be a list of 2 to 2"),
        ({"attributes": {"name": ["Ana", "red"], "colour": ["red", "blue"]}}, "distinct"),
        ({"clues": [["same", "Ana", "green"]]}, "'clues' must hold"),
        ({"clues": [["at", "Ana", 3]]}, "'clues' must hold"),
        ({"clues": [[["at"], "Ana", 1]]}, "'clues' must hold"),
        ({"clues": TASK["clues"][:2]}, "more than one arrangement"),
        ({"clues": [["at", "Ana", 1], ["at", "Ben", 1]]}, "no arrangement"),
        ({"answer": "1: Ana, red, cat; 2: Ben, blue, dog"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize("arguments", [{"num_houses": 1}, {"num_attributes": 6}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        ZebraPuzzleEnv(**arguments)
