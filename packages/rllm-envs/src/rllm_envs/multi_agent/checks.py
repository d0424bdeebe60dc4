"""Checks of the arguments and the tasks of games, with errors that name value and range."""

from typing import Any

from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.tasks import Task


def check_integer(name: str, value: Any, low: int, high: int) -> int:
    """Return an argument that is an integer in ``[low, high]``.

    Raises:
        EnvArgumentError: It is something else.
    """
    if not _is_integer(value, low, high):
        raise EnvArgumentError(f"{name} must be an integer from {low} to {high}, got {value!r:.80}")
    return value


def check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return an argument that is one of the allowed texts.

    Raises:
        EnvArgumentError: It is something else.
    """
    if not isinstance(value, str) or value not in allowed:
        raise EnvArgumentError(f"{name} must be one of {', '.join(allowed)}, got {value!r:.80}")
    return value


def task_integer(task: Task, field: str, low: int, high: int) -> int:
    """Return the field of a given task that is an integer in ``[low, high]``.

    Raises:
        TaskError: It is missing or something else.
    """
    value = task.get(field)
    if not _is_integer(value, low, high):
        raise TaskError(
            f"the task needs {field!r}, an integer from {low} to {high}; got {excerpt(value)}"
        )
    return value  # type: ignore[return-value]  # checked above


def task_integers(
    task: Task, field: str, low: int, high: int, lengths: tuple[int, int]
) -> list[int]:
    """Return the field that is a list of integers in ``[low, high]``.

    Args:
        task: The given task.
        field: Name of the field.
        low: Least value of a number.
        high: Greatest value of a number.
        lengths: Least and greatest number of items.

    Raises:
        TaskError: It is missing or something else.
    """
    value = task.get(field)
    if not is_integers(value, low, high, lengths):
        raise TaskError(
            f"the task needs {field!r}, a list of {lengths[0]} to {lengths[1]} integers from "
            f"{low} to {high}; got {excerpt(value)}"
        )
    return list(value)  # type: ignore[arg-type]  # checked above


def task_hands(
    task: Task, field: str, agents: tuple[str, ...], low: int, high: int, lengths: tuple[int, int]
) -> dict[str, list[int]]:
    """Return the field that holds a list of integers for each agent, as ``task_integers`` reads it.

    Raises:
        TaskError: It is missing or something else.
    """
    value = task.get(field)
    if not isinstance(value, dict) or set(value) != set(agents):
        raise TaskError(
            f"the task needs {field!r}, a dict with the keys {', '.join(agents)}; "
            f"got {excerpt(value)}"
        )
    return {agent: task_integers(value, agent, low, high, lengths) for agent in agents}


def is_integers(value: Any, low: int, high: int, lengths: tuple[int, int]) -> bool:
    """Return whether a value is a list of integers in ``[low, high]``, of an allowed length."""
    return (
        isinstance(value, list)
        and lengths[0] <= len(value) <= lengths[1]
        and all(_is_integer(item, low, high) for item in value)
    )


def _is_integer(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
