"""Checks of what users pass, before a thousand episodes fail on it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.errors import UserError


def check_count(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1.

    Raises:
        UserError: With the name and the value.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name} must be at least 1, got {value!r}")


def check_fits(maker: Callable[..., Any], arguments: Mapping[str, Any], name: str) -> None:
    """Refuse keyword arguments that a class or function does not take.

    Args:
        maker: The class or function.
        arguments: Its keyword arguments.
        name: What they are called where they were given.

    Raises:
        UserError: With what it takes.
    """
    try:
        signature = inspect.signature(maker)
    except (TypeError, ValueError):
        return  # a class written in C does not say
    try:
        signature.bind(**arguments)
    except TypeError as error:
        called = getattr(maker, "__name__", str(maker))
        raise UserError(
            f"{name} do not fit {called}: {error}; it takes {', '.join(signature.parameters)}"
        ) from error
