import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.fields import (
    check_choice,
    check_flag,
    check_integer,
    integer_field,
    is_integer,
    is_name,
    list_field,
    need,
    object_field,
    text_field,
)


@pytest.mark.parametrize("value", [0, 11, 3.0, "3", True, None])
def test_an_argument_must_be_an_integer_in_its_range(value):
    check_integer("size", 10, 1, 10)
    with pytest.raises(EnvArgumentError, match=r"size must be an integer in \[1, 10\], got "):
        check_integer("size", value, 1, 10)


@pytest.mark.parametrize("value", ["", "c", 1, None, ["a"]])
def test_an_argument_must_be_one_of_its_choices(value):
    check_choice("kind", "a", ("a", "b"))
    with pytest.raises(EnvArgumentError, match="kind must be one of a, b"):
        check_choice("kind", value, ("a", "b"))


def test_a_flag_is_true_or_false():
    check_flag("fast", False)
    with pytest.raises(EnvArgumentError, match="fast must be True or False, got 0"):
        check_flag("fast", 0)


def test_fields_of_tasks_are_returned_or_named():
    task = {"t": "x", "i": 3, "l": [1], "o": {"a": 1}}
    assert text_field(task, "t") == "x"
    assert integer_field(task, "i", 0, 3) == 3
    assert list_field(task, "l", 1, 2) == [1]
    assert object_field(task, "o", 1, 1) == {"a": 1}
    for call in (
        lambda: text_field(task, "i"),
        lambda: text_field({"t": ""}, "t"),
        lambda: text_field(task, "t", max_length=0),
        lambda: integer_field(task, "i", 4, 5),
        lambda: integer_field({"i": True}, "i", 0, 5),
        lambda: list_field(task, "l", 2, 3),
        lambda: list_field(task, "missing", 0, 3),
        lambda: object_field(task, "l", 0, 3),
    ):
        with pytest.raises(TaskError, match=r"task\['\w+'\] must be"):
            call()


def test_a_broken_condition_is_quoted_with_the_value():
    need(True, "never seen")
    with pytest.raises(TaskError, match=r"must be red, got 'blue'"):
        need(False, "must be red", "blue")


def test_names_and_integers_are_told_from_look_alikes():
    assert is_integer(5, 5, 5)
    assert not any(is_integer(value, 0, 9) for value in (True, 5.0, "5", None, 10))
    assert is_name("Ada Bell")
    assert not any(is_name(value) for value in ("", "a\n", "x" * 81, 3, None))
