import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning import fields
from rllm_envs.reasoning.draws import (
    draw_flag,
    draw_integer,
    draw_item,
    draw_items,
    shuffled,
)


def test_good_arguments_are_returned():
    assert fields.integer_argument("size", 3, 1, 3) == 3
    assert fields.flag_argument("directed", False) is False
    assert fields.names_argument("kinds", None, ("a", "b")) == ("a", "b")
    assert fields.names_argument("kinds", ["b"], ("a", "b")) == ("b",)


@pytest.mark.parametrize("value", [0, 4, True, 2.0, "2", None])
def test_integers_out_of_range_are_refused_by_name_and_value(value):
    with pytest.raises(EnvArgumentError, match="size must be an integer from 1 to 3, got"):
        fields.integer_argument("size", value, 1, 3)
    with pytest.raises(TaskError, match="'size' must be an integer from 1 to 3, got"):
        fields.integer_field({"size": value}, "size", 1, 3)


@pytest.mark.parametrize("value", [[], ["c"], ["a", "a"], "a", [1], [["a"]]])
def test_lists_of_names_must_hold_allowed_ones_once(value):
    with pytest.raises(EnvArgumentError, match="kinds must be a list of one or more of a, b"):
        fields.names_argument("kinds", value, ("a", "b"))


@pytest.mark.parametrize("value", [1, "yes", None])
def test_flags_must_be_true_or_false(value):
    with pytest.raises(EnvArgumentError, match="directed must be True or False"):
        fields.flag_argument("directed", value)


@pytest.mark.parametrize("value", [None, [], [1, 2, 3], "ab", {"a": 1}])
def test_lists_of_a_wrong_length_are_refused(value):
    with pytest.raises(TaskError, match="'xs' must be a list of 1 to 2 items"):
        fields.list_field({"xs": value}, "xs", 1, 2)


def test_lists_of_integers_and_words_are_checked_item_by_item():
    assert fields.integers_field({"xs": [1, 5]}, "xs", (1, 5), (1, 2)) == [1, 5]
    with pytest.raises(TaskError, match="integers from 1 to 5, got 6"):
        fields.integers_field({"xs": [1, 6]}, "xs", (1, 5), (1, 2))
    assert fields.words_field({"ws": ["a", "B"]}, "ws", (1, 2)) == ["a", "B"]
    with pytest.raises(TaskError, match="words of 1 to 20 ASCII letters, got 'a b'"):
        fields.words_field({"ws": ["a b"]}, "ws", (1, 2))
    with pytest.raises(TaskError, match="distinct"):
        fields.words_field({"ws": ["a", "A"]}, "ws", (1, 2))
    assert fields.words_field({"ws": ["a", "a"]}, "ws", (1, 2), distinct=False) == ["a", "a"]
    with pytest.raises(TaskError, match="'kind' must be one of a, b, got 'c'"):
        fields.choice_field({"kind": "c"}, "kind", ("a", "b"))


def test_words_are_ascii_letters():
    assert [fields.is_word(w) for w in ("a", "Ab", "", "a1", "é", 3, "a" * 21)] == [
        *[True, True],
        *[False] * 5,
    ]


def test_draws_are_plain_python_values_within_their_ranges():
    rng = np.random.default_rng(0)
    integers = [draw_integer(rng, 2, 4) for _ in range(100)]
    assert {type(value) for value in integers} == {int}
    assert {*integers} == {2, 3, 4}
    assert {draw_item(rng, "abc") for _ in range(50)} == {*"abc"}
    assert sorted(draw_items(rng, range(5), 5)) == [0, 1, 2, 3, 4]
    assert len({*draw_items(rng, "abcdef", 3)}) == 3
    assert sorted(shuffled(rng, ["x", "y", "x"])) == ["x", "x", "y"]
    flags = [draw_flag(rng, 0.25) for _ in range(2000)]
    # Four standard deviations are 77.
    assert abs(sum(flags) - 500) < 80
    assert {type(flag) for flag in flags} == {bool}
