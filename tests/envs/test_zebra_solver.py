from itertools import permutations, product

import numpy as np
import pytest

from rllm_envs.reasoning.zebra_solver import arrangements, draw_clues, holds, is_unique

GROUPS = [["a", "b", "c"], ["x", "y", "z"]]


def _all(groups):
    for orders in product(*(permutations(group) for group in groups)):
        yield {value: house for order in orders for house, value in enumerate(order)}


def _fits(arrangement, clue):
    """What the clue says, spelt out again."""
    relation, first, second = clue
    a = arrangement[first] + 1
    b = second if isinstance(second, int) else arrangement[second] + 1
    return {"at": a == b, "not_at": a != b, "same": a == b, "not_same": a != b,
            "left": b == a + 1, "next": b in (a - 1, a + 1), "before": a < b}[relation]  # fmt: skip


@pytest.mark.parametrize(
    "clues",
    [
        [],
        [("at", "a", 2)],
        [("not_at", "a", 2), ("same", "a", "x")],
        [("left", "a", "y"), ("not_same", "b", "y")],
        [("next", "a", "b"), ("next", "b", "z")],
        [("before", "x", "a"), ("before", "a", "z")],
        [("left", "a", "b"), ("left", "b", "c"), ("same", "c", "x")],
        [("at", "a", 1), ("at", "b", 1)],
        [("before", "a", "b"), ("before", "b", "a")],
    ],
)
def test_the_solver_finds_all_arrangements(clues):
    expected = [a for a in _all(GROUPS) if all(_fits(a, clue) for clue in clues)]
    found = list(arrangements(GROUPS, clues))
    key = lambda a: sorted(a.items())  # noqa: E731
    assert sorted(found, key=key) == sorted(expected, key=key)
    assert is_unique(GROUPS, clues) == (len(expected) == 1)
    assert all(holds(clue, a) for a in found for clue in clues)


def test_random_clue_sets_agree_with_trying_everything():
    rng = np.random.default_rng(1)
    groups = [*GROUPS, ["p", "q", "r"]]
    values = [value for group in groups for value in group]
    for _ in range(40):
        clues = []
        for _ in range(int(rng.integers(1, 6))):
            relation = ["at", "not_at", "same", "not_same", "left", "next", "before"][
                int(rng.integers(7))
            ]
            first, second = (values[int(place)] for place in rng.permutation(9)[:2])
            is_direct = relation.endswith("at")
            clues.append((relation, first, int(rng.integers(1, 4)) if is_direct else second))
        expected = sum(all(_fits(a, clue) for clue in clues) for a in _all(groups))
        assert len(list(arrangements(groups, clues))) == expected


@pytest.mark.parametrize("seed", range(8))
def test_drawn_clues_fit_one_arrangement_and_none_is_superfluous(seed):
    groups = [*GROUPS, ["p", "q", "r"]]
    clues = draw_clues(np.random.default_rng(seed), groups)
    assert sum(all(_fits(a, clue) for clue in clues) for a in _all(groups)) == 1
    for left_out in clues:
        rest = [clue for clue in clues if clue is not left_out]
        assert sum(all(_fits(a, clue) for clue in rest) for a in _all(groups)) > 1
    assert sum(clue[0] == "at" for clue in clues) <= 1
