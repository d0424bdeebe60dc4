"""Fields of a row, checked: each function returns a field of the right type or says what is wrong.

Rows of a CSV file have text in every field, so numbers and lists are also read from text.
"""

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from rllm_envs.datasets.benchmark import Row
from rllm_envs.errors import DatasetError, excerpt

MAX_QUESTION_LENGTH = 65_000
"""Characters of a question: it has to fit into an observation."""
MAX_ANSWER_LENGTH = 10_000


def text_of(row: Row, *names: str, limit: int = MAX_QUESTION_LENGTH) -> str:
    """Return the first of the named fields that is present: text with something in it.

    Raises:
        DatasetError: None is present, or it is no text, blank, or longer than ``limit``.
    """
    name = _present(row, names)
    value = row[name]
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"field {name!r} must be text, got {excerpt(value)}")
    if len(value) > limit:
        raise DatasetError(f"field {name!r} has {len(value)} characters, more than {limit}")
    return value


def optional_text(row: Row, name: str, limit: int = MAX_QUESTION_LENGTH) -> str:
    """Return a field that may be absent, None or empty; then the empty text.

    Raises:
        DatasetError: It is neither, and no text, or longer than ``limit``.
    """
    value = row.get(name)
    is_absent = value is None or (isinstance(value, str) and not value.strip())
    return "" if is_absent else text_of(row, name, limit=limit)


def answer_of(row: Row, *names: str) -> str:
    """Return a short text or a number as text: 142.0 as "142".

    Raises:
        DatasetError: It is absent, blank, not finite, or of another type.
    """
    name = _present(row, names)
    value = row[name]
    if isinstance(value, str):
        return text_of(row, name, limit=MAX_ANSWER_LENGTH).strip()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise DatasetError(f"field {name!r} must be text or a number, got {excerpt(value)}")
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f").removesuffix(".0")
    return str(value)


def texts_of(row: Row, *names: str, least: int = 1) -> list[str]:
    """Return a list of texts, each with something in it.

    Raises:
        DatasetError: It is no such list, or shorter than ``least``.
    """
    name = _present(row, names)
    value = listed(row[name])
    is_texts = isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)
    if not is_texts or len(value) < least:
        raise DatasetError(
            f"field {name!r} must be a list of {least} or more texts, got {excerpt(row[name])}"
        )
    if sum(map(len, value)) > MAX_QUESTION_LENGTH:
        raise DatasetError(f"field {name!r} has more than {MAX_QUESTION_LENGTH} characters")
    return list(value)


def index_of(row: Row, name: str, count: int, *, first: int = 0) -> int:
    """Return a number that counts from ``first`` as an index into ``count`` things, from 0.

    Raises:
        DatasetError: It is no whole number, or out of range.
    """
    value = row.get(name)
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value.strip()[:9])
    if not isinstance(value, int) or isinstance(value, bool) or not first <= value < first + count:
        raise DatasetError(
            f"field {name!r} must be a whole number of {first} to {first + count - 1}, got "
            f"{excerpt(row.get(name))}"
        )
    return value - first


def truth_of(row: Row, name: str) -> bool:
    """Return a truth value, which a CSV file writes as a word.

    Raises:
        DatasetError: It is none.
    """
    value = row.get(name)
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if not isinstance(value, bool):
        raise DatasetError(f"field {name!r} must be true or false, got {excerpt(value)}")
    return value


def group_of(row: Row, name: str) -> dict[str, Any]:
    """Return a field that holds fields of its own.

    Raises:
        DatasetError: It holds something else.
    """
    value = listed(row.get(name))
    if not isinstance(value, dict):
        raise DatasetError(f"field {name!r} must be an object, got {excerpt(row.get(name))}")
    return value


def id_of(row: Row, *names: str) -> dict[str, str]:
    """Return ``{"id": ...}`` of the first named field that is present; ``{}`` where none is.

    Raises:
        DatasetError: It is neither text nor a whole number.
    """
    for name in names:
        value = row.get(name)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise DatasetError(f"field {name!r} must be text or a number, got {excerpt(value)}")
        return {"id": str(value)[:200]}
    return {}


def listed(value: Any) -> Any:
    """Return a list or an object that is written as JSON text; other values as they are."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return list(value) if isinstance(value, tuple) else value


def _present(row: Row, names: Sequence[str]) -> str:
    for name in names:
        if row.get(name) is not None:
            return name
    wanted = " or ".join(map(repr, names))
    raise DatasetError(f"field {wanted} is missing; the row has {sorted(map(str, row))}")
