import collections
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllm_envs.grading.code.values import CrossingError, dumps, loads, same

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
)
HASHABLE = st.recursive(
    SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner), max_leaves=5
)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: st.lists(inner) | st.dictionaries(HASHABLE, inner) | st.sets(HASHABLE),
    max_leaves=10,
)


def types_of(value):
    """The value as nested types, so that 1, True and 1.0 differ."""
    if isinstance(value, list | tuple):
        return type(value), [types_of(part) for part in value]
    if isinstance(value, dict):
        return dict, [(types_of(k), types_of(v)) for k, v in value.items()]
    if isinstance(value, set | frozenset):
        return type(value), sorted(repr(types_of(part)) for part in value)
    return type(value), repr(value)


@given(VALUES)
def test_values_come_back_with_their_types(value):
    back = loads(dumps(value))
    assert types_of(back) == types_of(value)
    assert same(value, back)


@pytest.mark.parametrize(
    "value",
    [
        math.inf, -math.inf, 10**4000, -(2**53), 1 + 2j, range(1, 9, 2), Decimal("1.50"),
        Fraction(1, 3), bytearray(b"ab"), collections.deque([1, 2]), {(1, 2): {3: [4, ()]}},
        "\ud800", {"t": [1]}, [[{"f": "inf"}]],
    ],
)  # fmt: skip
def test_further_values_come_back(value):
    back = loads(dumps(value))
    assert type(back) is type(value)
    assert back == value


def test_nan_equals_nan_only_here():
    assert math.isnan(loads(dumps(math.nan)))
    assert same(math.nan, math.nan)
    assert not same(math.nan, 1.0)


def test_subclasses_and_numpy_come_back_as_what_they_hold():
    class Yes(int):
        def __eq__(self, other):
            return True

        __hash__ = int.__hash__

    Point = collections.namedtuple("Point", "x y")
    for value, plain in [
        (Yes(3), 3), (Point(1, 2), (1, 2)), (collections.Counter("aab"), {"a": 2, "b": 1}),
        (np.int64(4), 4), (np.float64(0.5), 0.5), (np.bool_(True), True),
        (np.array([[1, 2]]), [[1, 2]]),
    ]:  # fmt: skip
        back = loads(dumps(value))
        assert (type(back), back) == (type(plain), plain)


class Yes:
    def __eq__(self, other):
        return True


@pytest.mark.parametrize("value", [Yes(), object(), lambda: 1, (i for i in ()), int, [Yes()]])
def test_what_could_answer_for_itself_does_not_cross(value):
    with pytest.raises(CrossingError, match="cannot cross"):
        dumps(value)


def test_a_value_that_is_nested_too_deeply_is_refused():
    value = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(CrossingError, match="deeply"):
        dumps(value)
    with pytest.raises(CrossingError):
        loads("[" * 100_000 + "]" * 100_000)


class Node:
    def __init__(self, value, following=None):
        self.value, self.following = value, following


def test_a_long_list_of_nodes_and_a_ring_cross_by_the_names_of_their_class():
    first = None
    for number in range(5000):
        first = Node(number, first)
    back = loads(dumps(first, ["Node"]), {"Node": Node})
    numbers = []
    while back is not None:
        numbers.append(back.value)
        back = back.following
    assert numbers == list(range(4999, -1, -1))
    ring = Node(1)
    ring.following = ring
    back = loads(dumps(ring, ["Node"]), {"Node": Node})
    assert back.following is back
    with pytest.raises(CrossingError):
        loads(dumps(ring, ["Node"]), {})


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "[1]", "[{}, []]", '[{"x": 1}, []]', '[{"o": 3}, []]', '[{"i": "zz"}, []]',
        '[{"d": [[{"d": []}, 1]]}, []]', '[{"b": "0"}, []]', '[{"c": []}, []]', "[1, [1]]", "null",
        '[{"r": ["0x0", "0x1", "0x0"]}, []]', '[{"D": "x"}, []]', '[{"F": ["0x1", "0x0"]}, []]',
        '[{"t": 3}, []]', '[{"s": [[]]}, []]', '[{"a": 1, "b": 2}, []]',
    ],
)  # fmt: skip
def test_text_that_is_no_value_is_refused(text):
    with pytest.raises(CrossingError):
        loads(text)


@pytest.mark.parametrize(
    ("expected", "got", "is_same"),
    [
        (1, 1, True), (1, 1.0, True), (1, True, False), (True, 1, False), (0, False, False),
        (0.1 + 0.2, 0.3, True), (1.0, 1.0001, False), ([1], (1,), False), ((1,), (1,), True),
        ({1}, [1], False), ({1}, {1}, True), ({"a": 1}, {"a": True}, False), ("1", 1, False),
        (None, 0, False), ([1, [2]], [1, [2]], True), ([1, 2], [2, 1], False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True), (10**400, 1.5, False), ("", [], False),
    ],
)  # fmt: skip
def test_equality_is_strict_about_types(expected, got, is_same):
    assert same(expected, got) is is_same


def test_what_json_cannot_write_is_compared_in_its_form():
    assert same([1, [2]], (1, (2,)), json_form=True)
    assert same({"1": 2}, {1: 2}, json_form=True)
    assert not same([1], [True], json_form=True)
    assert json.loads(dumps({"a": [1, "x", None, True, 0.5]}))[0] == {
        "d": [["a", [1, "x", None, True, 0.5]]]
    }
