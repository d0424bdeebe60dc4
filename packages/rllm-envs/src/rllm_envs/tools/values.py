"""Values that an agent writes: whether they are plain JSON, and whether they fit a JSON schema."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_envs.errors import ToolError, excerpt

MAX_SIZE = 1_000_000
"""Characters, numbers and other parts of all arguments of one call."""
MAX_DEPTH = 64
"""Levels of lists and objects inside each other."""
MAX_INTEGER_BITS = 4096
MAX_STEPS = 200_000
"""Schemas entered by one check: options inside options may take exponential time otherwise."""

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def read_json(text: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ToolError: It is not JSON. NaN and Infinity, which Python's reader takes, are not.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"arguments are not JSON ({error}): {excerpt(text)}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def check_plain(value: Any) -> None:
    """Raise unless a value is JSON of bounded size and depth that UTF-8 can hold.

    Raises:
        ToolError: It holds something else than texts, finite numbers, booleans, None, lists and
            objects with texts as keys, or exceeds a bound.
    """
    size = 0
    pending: list[tuple[Any, int]] = [(value, 1)]
    while pending:
        part, depth = pending.pop()
        size += 1
        if isinstance(part, str):
            size += len(part)
            _check_text(part)
        elif isinstance(part, list | dict):
            if depth > MAX_DEPTH:
                raise ToolError(f"arguments are nested more than {MAX_DEPTH} deep")
            size += len(part)
            if size <= MAX_SIZE:
                parts = part if isinstance(part, list) else [*map(_key, part), *part.values()]
                pending += [(inner, depth + 1) for inner in parts]
        else:
            _check_scalar(part)
        if size > MAX_SIZE:
            raise ToolError(f"arguments are larger than {MAX_SIZE} characters")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ToolError(f"the keys of an object must be texts, got {excerpt(key)}")
    return key


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"a text holds half of a character pair: {excerpt(text)}") from None


def _check_scalar(value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ToolError(f"a number must be finite, got {value}")
    if isinstance(value, int) and value.bit_length() > MAX_INTEGER_BITS:
        raise ToolError(f"an integer has more than {MAX_INTEGER_BITS} bits")
    if value is not None and not isinstance(value, int | float):
        raise ToolError(f"arguments must be JSON values, got {type(value).__name__}")


def check_value(value: Any, schema: Any, where: str, root: Any = None) -> None:
    """Raise unless a plain JSON value fits a JSON schema.

    Checked are ``type``, ``nullable``, ``enum``, ``const``, ``properties``, ``required``,
    ``additionalProperties``, ``items``, ``prefixItems``, the bounds of numbers, texts and lists,
    ``anyOf``, ``oneOf`` (as ``anyOf``), ``allOf`` and ``$ref`` inside the schema. Other keywords
    say nothing here; ``pattern`` is among them, because a regular expression may take any time.

    Args:
        value: A value that ``check_plain`` accepts.
        schema: The schema; True and False are schemas too.
        where: What the value is, for messages, such as "'query'".
        root: The schema in which ``$ref`` are looked up; ``schema`` by default.

    Raises:
        ToolError: It does not fit; the message says where and what is expected.
    """
    _Check(schema if root is None else root).run(value, schema, where)


class _Check:
    """One check: the schema in which references are looked up, and the work done so far."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = 0
        self._depth = 0

    def run(self, value: Any, schema: Any, where: str) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS or self._depth > 3 * MAX_DEPTH:
            raise ToolError("arguments are too large or too deep to be checked")
        if schema is False:
            raise ToolError(f"{where} is not allowed")
        if not isinstance(schema, Mapping) or (value is None and schema.get("nullable")):
            return
        self._depth += 1
        try:
            self._run(value, schema, where)
        finally:
            self._depth -= 1

    def _run(self, value: Any, schema: Mapping[str, Any], where: str) -> None:
        if isinstance(schema.get("$ref"), str):
            self.run(value, self._referred(schema["$ref"]), where)
        _check_type(value, schema, where)
        _check_choice(value, schema, where)
        _check_bounds(value, schema, where)
        for part in schema.get("allOf", ()):
            self.run(value, part, where)
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            self._any(value, options, where)
        if isinstance(value, dict):
            self._object(value, schema, where)
        elif isinstance(value, list):
            prefix = schema.get("prefixItems", ())
            for number, item in enumerate(value):
                inner = prefix[number] if number < len(prefix) else schema.get("items", True)
                self.run(item, inner, f"{where}[{number}]")

    def _referred(self, reference: str) -> Any:
        """Return the part that "#/$defs/Name" means; what is elsewhere allows anything."""
        node = self._root
        for name in reference.removeprefix("#").split("/")[1:]:
            node = node.get(name) if isinstance(node, Mapping) else None
        return True if node is None or not reference.startswith("#") else node

    def _any(self, value: Any, options: Sequence[Any], where: str) -> None:
        problems = []
        for option in options:
            try:
                self.run(value, option, where)
            except ToolError as error:
                problems.append(str(error))
            else:
                return
        raise ToolError("; or ".join(dict.fromkeys(problems))[:1000])

    def _object(self, value: dict[str, Any], schema: Mapping[str, Any], where: str) -> None:
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                raise ToolError(f"{where} needs {name!r}")
        # Which names a pattern allows is not looked at, as with ``pattern``.
        is_open = "patternProperties" in schema
        others = True if is_open else schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in properties:
                self.run(item, properties[name], f"{where}.{name}")
            elif others is False:
                allowed = ", ".join(properties) or "none"
                raise ToolError(f"{where} has no {excerpt(name)}; it takes: {allowed}")
            else:
                self.run(item, others, f"{where}.{name:.60}")


def _is_of(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON_TYPES.get(kind, (object,)))


def _check_type(value: Any, schema: Mapping[str, Any], where: str) -> None:
    expected = schema.get("type")
    if expected is None:
        return
    kinds = [str(kind) for kind in (expected if isinstance(expected, list) else [expected])]
    if not any(_is_of(value, kind) for kind in kinds):
        raise ToolError(f"{where} must be of type {' or '.join(kinds)}, got {excerpt(value)}")


def _check_choice(value: Any, schema: Mapping[str, Any], where: str) -> None:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is None:
        return
    # In Python True equals 1; in JSON it does not.
    if not any(value == c and isinstance(value, bool) == isinstance(c, bool) for c in choices):
        shown = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices)
        raise ToolError(f"{where} must be one of {shown[:500]}; got {excerpt(value)}")


def _check_bounds(value: Any, schema: Mapping[str, Any], where: str) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, above = _bound(schema, "minimum", -1), _bound(schema, "exclusiveMinimum", -1)
        if value < low or value <= above:
            raise ToolError(f"{where} is too small, got {excerpt(value)}: {_bounds(schema)}")
        high, below = _bound(schema, "maximum", 1), _bound(schema, "exclusiveMaximum", 1)
        if value > high or value >= below:
            raise ToolError(f"{where} is too large, got {excerpt(value)}: {_bounds(schema)}")
    for kind, name in ((str, "Length"), (list, "Items"), (dict, "Properties")):
        if isinstance(value, kind):
            low, high = schema.get(f"min{name}", 0), schema.get(f"max{name}", math.inf)
            if not low <= len(value) <= high:
                raise ToolError(f"{where} must have {low} to {high} parts, got {len(value)}")


def _bound(schema: Mapping[str, Any], name: str, sign: int) -> float:
    """Return a bound of a number; where there is none, infinity of the given sign."""
    bound = schema.get(name)
    # In old drafts ``exclusiveMinimum`` is a flag.
    if bound is None or isinstance(bound, bool):
        return sign * math.inf
    return bound


def _bounds(schema: Mapping[str, Any]) -> str:
    names = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    return ", ".join(f"{name} {schema[name]}" for name in names if name in schema)
