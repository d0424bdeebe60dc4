"""Check the arguments of environments and the fields of given tasks, with one message per mistake.

``..._argument`` functions raise ``EnvArgumentError``, ``..._field`` functions ``TaskError``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from rllm_envs.errors import EnvArgumentError, TaskError, excerpt


def integer_argument(name: str, value: Any, low: int, high: int) -> int:
    """Return ``value`` if it is an integer from ``low`` to ``high``, both included.

    Raises:
        EnvArgumentError: It is not.
    """
    if not _is_integer(value) or not low <= value <= high:
        raise EnvArgumentError(
            f"{name} must be an integer from {low} to {high}, got {excerpt(value)}"
        )
    return value


def flag_argument(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False.

    Raises:
        EnvArgumentError: It is not.
    """
    if not isinstance(value, bool):
        raise EnvArgumentError(f"{name} must be True or False, got {excerpt(value)}")
    return value


def names_argument(name: str, value: Any, allowed: Sequence[str]) -> tuple[str, ...]:
    """Return ``value``, a list of one or more of ``allowed`` (None: all of them), as a tuple.

    Raises:
        EnvArgumentError: It is no list, is empty, repeats a name or holds another one.
    """
    if value is None:
        return tuple(allowed)
    is_list = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    if not is_list or not value or len({*value}) < len(value) or {*value} - {*allowed}:
        raise EnvArgumentError(
            f"{name} must be a list of one or more of {', '.join(allowed)}; got {excerpt(value)}"
        )
    return tuple(value)


def integer_field(task: Mapping[str, Any], name: str, low: int, high: int) -> int:
    """Return the integer ``task[name]``, from ``low`` to ``high``.

    Raises:
        TaskError: It is missing or something else.
    """
    value = task.get(name)
    if not _is_integer(value) or not low <= value <= high:
        raise TaskError(f"{name!r} must be an integer from {low} to {high}, got {excerpt(value)}")
    return value


def choice_field(task: Mapping[str, Any], name: str, allowed: Sequence[str]) -> str:
    """Return the text ``task[name]``, one of ``allowed``.

    Raises:
        TaskError: It is missing or something else.
    """
    value = task.get(name)
    if not isinstance(value, str) or value not in allowed:
        raise TaskError(f"{name!r} must be one of {', '.join(allowed)}, got {excerpt(value)}")
    return value


def list_field(task: Mapping[str, Any], name: str, shortest: int, longest: int) -> list[Any]:
    """Return the list ``task[name]``, of ``shortest`` to ``longest`` items.

    Raises:
        TaskError: It is missing or something else.
    """
    value = task.get(name)
    if not isinstance(value, list) or not shortest <= len(value) <= longest:
        raise TaskError(
            f"{name!r} must be a list of {shortest} to {longest} items, got {excerpt(value)}"
        )
    return value


def integers_field(
    task: Mapping[str, Any], name: str, bounds: tuple[int, int], lengths: tuple[int, int]
) -> list[int]:
    """Return the list ``task[name]`` of integers within ``bounds``, its length within ``lengths``.

    Raises:
        TaskError: It is missing or something else.
    """
    values = list_field(task, name, *lengths)
    for value in values:
        if not _is_integer(value) or not bounds[0] <= value <= bounds[1]:
            raise TaskError(
                f"{name!r} must hold integers from {bounds[0]} to {bounds[1]}, got {excerpt(value)}"
            )
    return values


def words_field(
    task: Mapping[str, Any], name: str, lengths: tuple[int, int], *, distinct: bool = True
) -> list[str]:
    """Return the list ``task[name]`` of words, its length within ``lengths``.

    A word consists of 1 to 20 ASCII letters.

    Raises:
        TaskError: It is missing or something else, or words repeat that must be distinct
            (capitals do not distinguish them).
    """
    words = list_field(task, name, *lengths)
    for word in words:
        if not is_word(word):
            raise TaskError(
                f"{name!r} must hold words of 1 to 20 ASCII letters, got {excerpt(word)}"
            )
    if distinct and len({word.lower() for word in words}) < len(words):
        raise TaskError(f"{name!r} must hold distinct words, got {excerpt(words)}")
    return words


def is_word(value: Any) -> bool:
    """Return whether a value is a text of 1 to 20 ASCII letters."""
    return isinstance(value, str) and value.isascii() and value.isalpha() and len(value) <= 20


def _is_integer(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
