"""Python values as JSON that keeps their types: tuples, sets, infinities, nested and shared.

This file is also run inside the sandbox, so it needs nothing but the standard library.

What comes back from a stranger's process is made of exact built-in types: an object whose ``==``
always says yes crosses as what it holds, or not at all. Objects cross by the name of their class,
which must be in a table of known classes, as a table of states, so that a list of linked nodes may
be long and may be a ring.
"""

from __future__ import annotations

import collections
import decimal
import fractions
import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from typing import Any

MAX_MESSAGE_BYTES = 4 * 1024 * 1024
_SMALL = 2**53
_MOST_OF_ONE_HASH = 100
_MOST_FRACTION_DIGITS = 10_000
_NO_VALUE = (
    *(ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError),
    *(MemoryError, OverflowError),
)


class CrossingError(Exception):
    """A value cannot cross."""


class UnknownTypeError(CrossingError):
    """A value is of a type that does not cross."""


def dumps(
    value: Any,
    classes: Collection[str] = (),
    refer: Callable[[Any], int | str | None] | None = None,
) -> str:
    """Return a value as JSON text.

    Args:
        value: None, bool, int, float, complex, str, bytes, list, tuple, set, frozenset, dict,
            range, deque, Decimal, Fraction, numpy values, and objects of known classes.
        classes: Names of known classes.
        refer: Returns by what the other side knows a value, or None where it does not.

    Raises:
        UnknownTypeError: Something in it is of another type.
        CrossingError: It is nested too deeply, or too long.
    """
    encoder = _Encoder(classes, refer)
    try:
        encoded = encoder.encode(value)
        states: list[Any] = []
        while len(states) < len(encoder.objects):
            thing = encoder.objects[len(states)]
            state = [[name, encoder.encode(part)] for name, part in vars(thing).items()]
            states.append([type(thing).__name__, state])
        text = json.dumps([encoded, states])
    except RecursionError:
        raise CrossingError("a value is nested too deeply") from None
    if len(text) > MAX_MESSAGE_BYTES:
        raise CrossingError(f"a value is longer than {MAX_MESSAGE_BYTES} bytes")
    return text


def loads(
    text: str,
    classes: Mapping[str, type] | None = None,
    referred: Callable[[Any], Any] | None = None,
) -> Any:
    """Return the value of JSON text that ``dumps`` wrote.

    Args:
        text: From anywhere; nothing in it is trusted.
        classes: Known classes by name.
        referred: Returns the value that the other side refers to.

    Raises:
        CrossingError: It is nothing that ``dumps`` writes.
    """
    known = classes or {}
    try:
        encoded, states = json.loads(text)
        objects = [object.__new__(known[name]) for name, _ in states]
        for thing, (_, state) in zip(objects, states, strict=True):
            for name, part in state:
                thing.__dict__[str(name)] = _decode(part, objects, referred)
        return _decode(encoded, objects, referred)
    except _NO_VALUE as error:
        raise CrossingError(f"not a value: {type(error).__name__}: {error}") from None


class _Encoder:
    def __init__(self, classes, refer):
        self.objects = []
        self._classes = classes
        self._refer = refer
        self._seen = {}

    def encode(self, value):
        if value is None or value is True or value is False:
            return value
        if type(value).__name__ in self._classes and hasattr(value, "__dict__"):
            if id(value) not in self._seen:
                self._seen[id(value)] = len(self.objects)
                self.objects.append(value)
            return {"o": self._seen[id(value)]}
        for kind, encode in _ENCODERS:
            if isinstance(value, kind):
                return encode(value, self.encode)
        if type(value).__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
            return self.encode(value.tolist())
        if self._refer is not None and (reference := self._refer(value)) is not None:
            return {"p": reference}
        name = type(value).__name__
        raise UnknownTypeError(f"a value of type {name} cannot cross between tests and solution")


def _integer(value, _):
    number = int.__pos__(value)
    return number if -_SMALL < number < _SMALL else {"i": hex(number)}


def _float(value, _):
    number = float.__pos__(value)
    return number if math.isfinite(number) else {"f": repr(number)}


def _text(value, _):
    return "".join(str.__iter__(value))


def _parts(tag, kind):
    return lambda value, encode: {tag: [encode(part) for part in kind.__iter__(value)]}


def _dict(value, encode):
    return {"d": [[encode(key), encode(part)] for key, part in dict.items(value)]}


# The exact methods of the built-in types, so that a subclass does not say what it holds.
_ENCODERS = (
    (int, _integer),
    (float, _float),
    (str, _text),
    (list, lambda value, encode: [encode(part) for part in list.__iter__(value)]),
    (tuple, _parts("t", tuple)),
    (dict, _dict),
    (set, _parts("s", set)),
    (frozenset, _parts("z", frozenset)),
    (bytes, lambda value, _: {"b": bytes.hex(value)}),
    (bytearray, lambda value, _: {"B": bytearray.hex(value)}),
    (complex, lambda value, _: {"c": [repr(value.real), repr(value.imag)]}),
    (range, lambda value, _: {"r": [hex(value.start), hex(value.stop), hex(value.step)]}),
    (collections.deque, _parts("q", collections.deque)),
    (decimal.Decimal, lambda value, _: {"D": decimal.Decimal.__str__(value)}),
    (fractions.Fraction, lambda value, _: {"F": [hex(value.numerator), hex(value.denominator)]}),
)


def _decode(encoded, objects, referred):
    if encoded is None or isinstance(encoded, (bool, int, float, str)):
        return encoded
    if isinstance(encoded, list):
        return [_decode(part, objects, referred) for part in encoded]
    ((tag, content),) = encoded.items()
    if tag in _PART_DECODERS:
        parts = [_decode(part, objects, referred) for part in content]
        return _PART_DECODERS[tag](_spread(parts) if tag in "sz" else parts)
    if tag == "d":
        keys = [_decode(key, objects, referred) for key, _ in content]
        parts = [_decode(part, objects, referred) for _, part in content]
        return dict(zip(_spread(keys), parts, strict=True))
    if tag == "o":
        return objects[content]
    if tag == "p" and referred is not None:
        return referred(content)
    return _PLAIN_DECODERS[tag](content)


def _spread(keys):
    """Return keys; many of one hash are made by somebody who wants us to compare them for long."""
    counts = collections.Counter(map(hash, keys))
    if counts and max(counts.values()) > _MOST_OF_ONE_HASH:
        raise ValueError("too many keys have the same hash")
    return keys


def _fraction(content):
    if max(map(len, content)) > _MOST_FRACTION_DIGITS:
        raise ValueError("a fraction has too many digits")
    return fractions.Fraction(int(content[0], 16), int(content[1], 16))


_PART_DECODERS = {"t": tuple, "s": set, "z": frozenset, "q": collections.deque}
_PLAIN_DECODERS = {
    "i": lambda content: int(content, 16),
    "f": {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}.__getitem__,
    "b": bytes.fromhex,
    "B": bytearray.fromhex,
    "c": lambda content: complex(float(content[0]), float(content[1])),
    "r": lambda content: range(*(int(part, 16) for part in content)),
    "D": decimal.Decimal,
    "F": _fraction,
}


def same(expected: Any, got: Any, *, json_form: bool = False) -> bool:
    """Return whether two decoded values are equal, strictly by type.

    A bool equals no number, a tuple no list and a set no list. An int and a float are equal where
    their values are, floats to a relative error of 1e-9 (absolute 1e-12), and NaN equals NaN.

    Args:
        expected: What the test asks.
        got: What came back; of exact built-in types.
        json_form: Whether ``expected`` was written in JSON, which has no tuples and no keys but
            text: then a list equals a tuple, and a key its text.
    """
    try:
        return _same(expected, got, json_form)
    except _NO_VALUE:  # such as a key of more digits than Python writes
        return False


def _same(expected: Any, got: Any, json_form: bool) -> bool:
    pairs: list[tuple[Any, Any]] = [(expected, got)]
    while pairs:
        left, right = pairs.pop()
        if json_form:
            left, right = _json_form(left), _json_form(right)
        numbers = all(isinstance(value, (int, float)) for value in (left, right))
        if numbers and isinstance(left, bool) == isinstance(right, bool):
            if not _same_number(left, right):
                return False
            continue
        if type(left) is not type(right):
            return False
        if isinstance(left, (list, tuple, collections.deque)):
            if len(left) != len(right):
                return False
            pairs.extend(zip(left, right, strict=True))
        elif isinstance(left, dict):
            if left.keys() != right.keys():
                return False
            pairs.extend((part, right[key]) for key, part in left.items())
        elif left != right:
            return False
    return True


def _json_form(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        named = {
            k if isinstance(k, str) else json.dumps(k, default=str): v for k, v in value.items()
        }
        if len(named) != len(value):
            raise ValueError("two keys are the same in JSON")
        return named
    return value


def _same_number(left, right):
    if isinstance(left, float) or isinstance(right, float):
        try:
            close = math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
        except OverflowError:
            return False
        return close or (left != left and right != right)
    return left == right
