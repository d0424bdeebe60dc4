"""Python values as lines of JSON, without losing their types: what crosses to an env's process.

Plain texts, numbers, booleans, None and lists are themselves; anything else is an object with one
key that says what it is::

    {"tuple": [...]}   {"dict": [[key, value], ...]}   {"array": ["<i8", [2, 3], [...]]}
    {"number": ["<f4", 0.5]}

Nothing but data can be written so, and reading it builds nothing but data.
"""

import json
from typing import Any

import numpy as np

from rllm_envs.errors import EnvProcessError, excerpt


class UnsendableError(EnvProcessError):
    """A value is not data, so it cannot be sent between processes."""


def encode_line(value: Any) -> bytes:
    """Return a value as one line of ASCII.

    Raises:
        UnsendableError: It holds something that is not data; the message shows it.
    """
    try:
        return json.dumps(_encode(value)).encode("ascii") + b"\n"
    except (RecursionError, ValueError) as error:
        raise UnsendableError(f"a value cannot be sent between processes: {error}") from None


def decode_line(line: bytes) -> Any:
    """Return the value of a line of ``encode_line``."""
    return _decode(json.loads(line))


def _encode(value: Any) -> Any:
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, list):
        return [_encode(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [_encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_encode(key), _encode(item)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufU":
        return {"array": [value.dtype.str, list(value.shape), value.ravel().tolist()]}
    if isinstance(value, np.number | np.bool_) and value.dtype.kind in "biuf":
        return {"number": [value.dtype.str, value.item()]}
    for plain in (str, int, float):
        # A subclass, such as an enumeration, crosses as its plain value.
        if isinstance(value, plain):
            return plain(value)
    raise UnsendableError(
        "only texts, numbers, lists, tuples, dicts and arrays are sent between processes, got "
        f"{type(value).__name__} {excerpt(value)}"
    )


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    (kind, content), *_ = value.items()
    if kind == "tuple":
        return tuple(_decode(item) for item in content)
    if kind == "dict":
        return {_decode(key): _decode(item) for key, item in content}
    if kind == "array":
        dtype, shape, items = content
        return np.array(items, dtype=dtype).reshape(shape)
    dtype, number = content
    return np.dtype(dtype).type(number)
