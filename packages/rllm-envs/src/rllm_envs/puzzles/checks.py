"""Checks of constructor arguments and of the fields of given tasks, shared by the puzzles."""

from typing import Any

from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.tasks import Task


def is_int(value: object, low: int, high: int) -> bool:
    """Return whether a value is an integer, not a bool, from ``low`` to ``high``."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def check_int(name: str, value: Any, low: int, high: int) -> int:
    """Return an integer argument.

    Raises:
        EnvArgumentError: It is no integer from ``low`` to ``high``.
    """
    if not is_int(value, low, high):
        raise EnvArgumentError(f"{name} must be an integer from {low} to {high}, got {value!r:.80}")
    return value


def check_turns(value: Any, default: int) -> int:
    """Return ``max_turns``, or ``default`` where it is None.

    Raises:
        EnvArgumentError: It is neither None nor an integer of at least 1.
    """
    if value is None:
        return default
    if not is_int(value, 1, 1_000_000):
        raise EnvArgumentError(
            f"max_turns must be None or an integer from 1 to 1000000, got {value!r:.80}"
        )
    return value


def check_flag(name: str, value: Any) -> bool:
    """Return an argument that is True or False.

    Raises:
        EnvArgumentError: It is neither.
    """
    if not isinstance(value, bool):
        raise EnvArgumentError(f"{name} must be True or False, got {value!r:.80}")
    return value


def task_int(task: Task, field: str, low: int, high: int) -> int:
    """Return an integer field of a given task.

    Raises:
        TaskError: It is missing, or no integer from ``low`` to ``high``.
    """
    value = task.get(field)
    if not is_int(value, low, high):
        raise TaskError(
            f"the task needs {field!r}, an integer from {low} to {high}, got {excerpt(value)}"
        )
    assert isinstance(value, int)
    return value


def task_choice(task: Task, field: str, allowed: tuple[str, ...] | list[str], what: str) -> str:
    """Return a text field of a given task.

    Args:
        task: The given task.
        field: Name of the field.
        allowed: Its possible values.
        what: The possible values in words, for the message.

    Raises:
        TaskError: It is missing, or none of ``allowed``.
    """
    value = task.get(field)
    if not isinstance(value, str) or value not in allowed:
        raise TaskError(f"the task needs {field!r}, {what}, got {excerpt(value)}")
    return value


def task_rows(task: Task, field: str, symbols: str, low: int, high: int) -> list[str]:
    """Return a field of a given task that is a rectangle of characters.

    Args:
        task: The given task.
        field: Name of the field: a list of texts of equal length.
        symbols: The characters that may occur.
        low: Least number of rows and of columns.
        high: Greatest number of rows and of columns.

    Raises:
        TaskError: The field is missing or of another form.
    """
    rows = task.get(field)
    needs = f"the task needs {field!r}, {low} to {high} texts of one length in that range"
    if not isinstance(rows, list) or not low <= len(rows) <= high:
        raise TaskError(f"{needs}, got {excerpt(rows)}")
    for row in rows:
        if not isinstance(row, str) or len(row) != len(rows[0]) or not low <= len(row) <= high:
            raise TaskError(f"{needs}, got the row {excerpt(row)}")
        if set(row) - set(symbols):
            raise TaskError(f"{field!r} may hold {symbols!r} only, got the row {excerpt(row)}")
    return rows


def task_integers(task: Task, field: str, low: int, high: int) -> list[int]:
    """Return a field of a given task that is a list of integers.

    Raises:
        TaskError: The field is no list of integers from ``low`` to ``high``.
    """
    values = task.get(field)
    if not isinstance(values, list) or not all(is_int(value, low, high) for value in values):
        raise TaskError(
            f"the task needs {field!r}, a list of integers from {low} to {high}, got "
            f"{excerpt(values)}"
        )
    return values
