"""Tests that a row holds as JSON text, or packed: JSON in a pickle, deflated, in base 64.

LiveCodeBench packs its private tests so. A pickle can run code when it is loaded, so it is never
loaded: its operations are read one by one, and one that holds more than a single text is refused.
"""

import base64
import binascii
import json
import pickletools
import zlib
from typing import Any

from rllm_envs.datasets.benchmark import Row
from rllm_envs.errors import DatasetError, excerpt

MAX_UNPACKED_BYTES = 64 << 20

_TEXT = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})
_HARMLESS = frozenset({"PROTO", "FRAME", "MEMOIZE", "BINPUT", "LONG_BINPUT", "STOP"})


def unpacked_tests(row: Row, name: str) -> list[Any]:
    """Return the tests of a field: a list, or a list as JSON text, packed or not.

    Raises:
        DatasetError: The field holds something else, or more than 64 MiB.
    """
    value = row.get(name)
    if value is None or value == "":
        return []
    tests = value
    if isinstance(value, str):
        is_json = value.lstrip().startswith("[")
        text = value if is_json else _unpacked(value, name)
        try:
            tests = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"field {name!r} is no JSON ({error}): {excerpt(text)}") from None
    if not isinstance(tests, list):
        raise DatasetError(f"field {name!r} must be a list of tests, got {excerpt(value)}")
    return tests


def _unpacked(text: str, name: str) -> str:
    try:
        packed = base64.b64decode(text, validate=True)
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(packed, MAX_UNPACKED_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise DatasetError(
            f"field {name!r} is neither JSON nor packed ({error}): {excerpt(text)}"
        ) from None
    if not unpacker.eof:
        raise DatasetError(
            f"field {name!r} is cut off or holds more than {MAX_UNPACKED_BYTES} bytes"
        )
    return _only_text(content, name)


def _only_text(content: bytes, name: str) -> str:
    """Return the one text of a pickle without loading it."""
    texts: list[str] = []
    try:
        for operation, argument, _ in pickletools.genops(content):
            if operation.name in _TEXT and isinstance(argument, str):
                texts.append(argument)
            elif operation.name not in _HARMLESS:
                raise DatasetError(
                    f"field {name!r} holds a pickle of more than a text ({operation.name}); it is "
                    "not loaded"
                )
    except (ValueError, UnicodeDecodeError) as error:
        raise DatasetError(f"field {name!r} holds no pickle of a text: {error}") from None
    if len(texts) != 1:
        raise DatasetError(f"field {name!r} holds a pickle of {len(texts)} texts instead of one")
    return texts[0]
