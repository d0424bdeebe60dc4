import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.checks import (
    check_flag,
    check_int,
    check_turns,
    is_int,
    task_choice,
    task_int,
    task_integers,
    task_rows,
)


def test_a_bool_is_no_integer():
    assert is_int(1, 1, 1)
    assert not is_int(True, 1, 1)
    assert not is_int(2, 1, 1)


def test_argument_checks_name_value_and_range():
    assert check_int("size", 3, 1, 5) == 3
    assert (check_turns(None, 7), check_turns(3, 7), check_flag("on", False)) == (7, 3, False)
    for value in (0, 6, True, 2.0, "2", None):
        with pytest.raises(EnvArgumentError, match="size must be an integer from 1 to 5"):
            check_int("size", value, 1, 5)
    with pytest.raises(EnvArgumentError, match="max_turns"):
        check_turns(True, 7)
    with pytest.raises(EnvArgumentError, match="True or False"):
        check_flag("on", 1)


def test_task_checks_name_the_field():
    with pytest.raises(TaskError, match="'pegs'"):
        task_integers({"pegs": [1, True]}, "pegs", 0, 2)
    with pytest.raises(TaskError, match="'rows'"):
        task_rows({"rows": ["ab", "a"]}, "rows", "ab", 1, 3)
    with pytest.raises(TaskError, match="may hold 'ab' only"):
        task_rows({"rows": ["ab", "ax"]}, "rows", "ab", 1, 3)
    with pytest.raises(TaskError, match="'n', an integer from 1 to 3, got 4"):
        task_int({"n": 4}, "n", 1, 3)
    with pytest.raises(TaskError, match="'kind', a colour, got 7"):
        task_choice({"kind": 7}, "kind", ["red"], "a colour")


def test_task_checks_return_the_value():
    task = {"n": 2, "kind": "red", "pegs": [0, 2], "rows": ["ab", "ba"]}
    assert task_int(task, "n", 1, 3) == 2
    assert task_choice(task, "kind", ("red",), "a colour") == "red"
    assert task_integers(task, "pegs", 0, 2) == [0, 2]
    assert task_rows(task, "rows", "ab", 1, 3) == ["ab", "ba"]
