"""Checks of constructor arguments and of the fields of given tasks."""

from collections.abc import Collection
from typing import Any

from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.tasks import Task


def check_integer(name: str, value: object, low: int, high: int) -> None:
    """Raise unless an argument is an integer from ``low`` to ``high``.

    Raises:
        EnvArgumentError: It is not; the message names the argument and the range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise EnvArgumentError(f"{name} must be an integer in [{low}, {high}], got {value!r:.80}")


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Raise unless an argument is one of the given texts.

    Raises:
        EnvArgumentError: It is not; the message lists the texts.
    """
    if not isinstance(value, str) or value not in choices:
        raise EnvArgumentError(f"{name} must be one of {', '.join(choices)}, got {value!r:.80}")


def check_flag(name: str, value: object) -> None:
    """Raise unless an argument is True or False.

    Raises:
        EnvArgumentError: It is neither.
    """
    if not isinstance(value, bool):
        raise EnvArgumentError(f"{name} must be True or False, got {value!r:.80}")


def need(condition: object, message: str, value: object = None) -> None:
    """Raise unless a condition holds for a given task.

    Args:
        condition: What must be true.
        message: Which field must be what.
        value: The value found, quoted in part.

    Raises:
        TaskError: The condition is false.
    """
    if not condition:
        raise TaskError(f"{message}, got {excerpt(value)}")


def text_field(task: Task, name: str, *, max_length: int = 2000) -> str:
    """Return a field that must be a text of 1 to ``max_length`` characters.

    Raises:
        TaskError: The field is missing or is something else.
    """
    value = task.get(name)
    need(
        isinstance(value, str) and 0 < len(value) <= max_length,
        f"task[{name!r}] must be a text of 1 to {max_length} characters",
        value,
    )
    return str(value)


def integer_field(task: Task, name: str, low: int, high: int) -> int:
    """Return a field that must be an integer from ``low`` to ``high``.

    Raises:
        TaskError: The field is missing or is something else.
    """
    value = task.get(name)
    need(
        is_integer(value, low, high), f"task[{name!r}] must be an integer in [{low}, {high}]", value
    )
    return int(value)  # type: ignore[arg-type]


def list_field(task: Task, name: str, low: int, high: int) -> list[Any]:
    """Return a field that must be a list of ``low`` to ``high`` items.

    Raises:
        TaskError: The field is missing or is something else.
    """
    value = task.get(name)
    need(
        isinstance(value, list) and low <= len(value) <= high,
        f"task[{name!r}] must be a list of {low} to {high} items",
        value,
    )
    return list(value)  # type: ignore[arg-type]


def object_field(task: Task, name: str, low: int, high: int) -> dict[str, Any]:
    """Return a field that must be an object of ``low`` to ``high`` entries.

    Raises:
        TaskError: The field is missing or is something else.
    """
    value = task.get(name)
    need(
        isinstance(value, dict) and low <= len(value) <= high,
        f"task[{name!r}] must be an object of {low} to {high} entries",
        value,
    )
    return dict(value)  # type: ignore[arg-type]


def is_integer(value: object, low: int, high: int) -> bool:
    """Return whether a value is an integer, no bool, from ``low`` to ``high``."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def is_name(value: object, max_length: int = 80) -> bool:
    """Return whether a value is a printable text of 1 to ``max_length`` characters."""
    return isinstance(value, str) and 0 < len(value) <= max_length and value.isprintable()
