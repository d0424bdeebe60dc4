from itertools import product

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.graph_coloring import GraphColoringEnv

TASK = {
    "regions": ["A", "B", "C"],
    "borders": [["A", "B"], ["B", "C"]],
    "colours": ["red", "green"],
}


def reward(task, answer):
    env = GraphColoringEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_lists_borders_and_colours():
    env = GraphColoringEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "These pairs of regions are neighbours: A-B, B-C. Colour each region with one of red, "
        "green so that neighbours have different colours. Answer as "
        r"\boxed{A: ..., B: ..., C: ...}."
    )


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A: red, B: green, C: red", 1.0),
        ("c = Green; b = Red; a = Green", 1.0),
        (r"\text{A is red, B is green, C is red}", 1.0),
        ("A: red, B: red, C: green", 0.0),
        ("A: red, B: green", 0.0),
        ("A: red, B: blue, C: red", 0.0),
        ("A: red, B: green, C: red, D: red", 0.0),
        ("red, green, red", 0.0),
        ("", 0.0),
    ],
)
def test_any_proper_colouring_is_right(answer, expected):
    assert reward(TASK, answer) == expected


def test_exactly_the_proper_colourings_of_a_square_with_a_diagonal_are_right():
    borders = [["A", "B"], ["B", "C"], ["C", "D"], ["D", "A"], ["A", "C"]]
    colours = ["red", "green", "blue"]
    task = {"regions": list("ABCD"), "borders": borders, "colours": colours}
    total = 0
    for chosen in product(colours, repeat=4):
        given = dict(zip("ABCD", chosen, strict=True))
        total += reward(task, ", ".join(f"{r}: {c}" for r, c in given.items()))
    # A, B and C differ: 6 ways; D differs from A and C: one colour left.
    assert total == 6


@pytest.mark.parametrize(("regions", "colours"), [(4, 3), (7, 3), (14, 3), (16, 5)])
def test_drawn_maps_are_coloured_by_the_oracle(regions, colours):
    env = GraphColoringEnv(num_regions=regions, num_colours=colours, split="all")
    for seed in range(15):
        env.reset(seed=seed)
        task = env.task
        given = dict(pair.split(": ") for pair in task["answer"].split(", "))
        assert [*given] == task["regions"]
        assert len(task["borders"]) == env.num_borders
        assert len({frozenset(pair) for pair in task["borders"]}) == env.num_borders
        assert {region for pair in task["borders"] for region in pair} == {*task["regions"]}
        assert all(given[a] != given[b] for a, b in task["borders"])
        assert len(task["colours"]) == colours
        assert {*given.values()} <= {*task["colours"]}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"regions": ["A"]}, "'regions' must be a list of 2 to 16"),
        ({"colours": ["red", "Red"]}, "distinct"),
        ({"borders": [["A", "A"]]}, "pairs of two different regions"),
        ({"borders": [["A", "X"]]}, "pairs of two different regions"),
        ({"borders": ["AB"]}, "pairs of two different regions"),
        ({"borders": [["A", "B"], ["B", "C"], ["A", "C"]]}, "there is no colouring"),
        ({"answer": "A: red, B: red, C: red"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"num_regions": 3}, "num_regions"),
        ({"num_borders": 50}, "num_borders must be an integer from 6 to 14, got 50"),
        ({"num_colours": 2}, "num_colours"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        GraphColoringEnv(**arguments)
