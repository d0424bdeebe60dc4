"""``Signature``: the arguments of a function as a JSON schema, and JSON values as its arguments."""

import dataclasses
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rllm_envs.errors import EnvArgumentError, ToolError
from rllm_envs.tools.values import check_value

_JSON_TYPES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}
_SCALARS = (str, int, float, bool)
_KNOWN = (
    "str, int, float, bool, list, dict, Literal, an Enum, a TypedDict, a dataclass, "
    "or a union of these"
)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes. Made by ``signature_of``, read by the tool that calls it."""

    parameters: dict[str, Any]
    """JSON schema of the object of arguments."""
    hints: dict[str, Any]
    """Annotation of each argument."""

    def converted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return checked JSON arguments with members of enums and dataclasses made of them."""
        return {name: _convert(value, self.hints[name]) for name, value in arguments.items()}


def signature_of(function: Callable[..., Any], owner: str, *, is_method: bool) -> Signature:
    """Return the signature of a function.

    The annotations give the types: str, int, float, bool, list, list[T], dict, dict[str, T],
    Literal, Enum, TypedDict, dataclass, unions of these, and ``| None``. The section ``Args:`` of
    the docstring says what each argument means.

    Args:
        function: The function.
        owner: Its name, for messages.
        is_method: Whether the first parameter is the object.

    Raises:
        EnvArgumentError: A parameter has no annotation, one that JSON cannot hold, or no name.
    """
    hints = _hints_of(function, owner)
    meanings = argument_docs(inspect.getdoc(function) or "")
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in list(inspect.signature(function).parameters.items())[is_method:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise EnvArgumentError(f"{owner} must name its parameters, not take *{name}")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise EnvArgumentError(f"{owner}({name}) must be usable by name, not only by position")
        properties[name] = _type_schema(hints.get(name), f"{owner}({name})", ())
        if name in meanings:
            properties[name]["description"] = meanings[name]
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            properties[name] |= _default(parameter.default)
    schema = {"type": "object", "properties": properties, "required": required}
    return Signature(schema, {name: hints[name] for name in properties})


def _hints_of(annotated: Any, owner: str) -> dict[str, Any]:
    try:
        return typing.get_type_hints(annotated)
    except (NameError, TypeError) as error:
        raise EnvArgumentError(f"the annotations of {owner} cannot be read: {error}") from error


def argument_docs(docstring: str) -> dict[str, str]:
    """Return what the ``Args:`` section says of each argument, continuation lines joined."""
    section = re.search(r"^Args:\n((?:[ \t]+.*\n?|\n)+)", docstring, re.MULTILINE)
    meanings: dict[str, str] = {}
    name = ""
    for line in section.group(1).splitlines() if section else ():
        entry = re.match(r"^ {4}(\w+)(?: \(.*?\))?:\s*(.*)", line)
        if entry:
            name = entry.group(1)
            meanings[name] = entry.group(2).strip()
        elif name and line.strip():
            meanings[name] += " " + line.strip()
    return meanings


def _default(value: Any) -> dict[str, Any]:
    """Return the default as a schema shows it; None and what JSON cannot hold are not shown."""
    value = value.value if isinstance(value, enum.Enum) else value
    return {"default": value} if isinstance(value, _SCALARS) else {}


def _type_schema(annotation: Any, where: str, inside: tuple[Any, ...]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        return _union_schema(arguments, where, inside)
    if origin is typing.Literal:
        return _choice_schema(arguments, where)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _choice_schema([member.value for member in annotation], where)
    fields = _fields_of(annotation)
    if fields is not None:
        return _object_schema(annotation, fields, where, inside)
    plain = origin or annotation
    if plain not in _JSON_TYPES:
        raise EnvArgumentError(f"{where} must be annotated with one of {_KNOWN}")
    schema: dict[str, Any] = {"type": _JSON_TYPES[plain]}
    if plain is list and arguments:
        schema["items"] = _type_schema(arguments[0], f"{where}[...]", inside)
    if plain is dict and arguments:
        if arguments[0] is not str:
            raise EnvArgumentError(f"{where}: the keys of a dict must be str, as in JSON")
        if arguments[1] is not Any:
            inner = _type_schema(arguments[1], f"{where}[...]", inside)
            schema["additionalProperties"] = inner
    return schema


def _union_schema(options: tuple[Any, ...], where: str, inside: tuple[Any, ...]) -> dict[str, Any]:
    kinds = [option for option in options if option is not types.NoneType]
    parts = [_type_schema(option, where, inside) for option in kinds]
    nullable = {"nullable": True} if len(kinds) < len(options) else {}
    return (parts[0] if len(parts) == 1 else {"anyOf": parts}) | nullable


def _choice_schema(values: typing.Sequence[Any], where: str) -> dict[str, Any]:
    kinds = {type(value) for value in values}
    if not values or len(kinds) != 1 or not kinds <= set(_SCALARS):
        raise EnvArgumentError(
            f"{where}: the choices must be texts, or numbers, or booleans, got {list(values)!r:.80}"
        )
    return {"type": _JSON_TYPES[kinds.pop()], "enum": list(values)}


def _fields_of(annotation: Any) -> dict[str, tuple[Any, bool]] | None:
    """Return annotation and necessity of each field of a TypedDict or dataclass, else None."""
    if typing.is_typeddict(annotation):
        hints = _hints_of(annotation, annotation.__name__)
        return {name: (hint, name in annotation.__required_keys__) for name, hint in hints.items()}
    if not (isinstance(annotation, type) and dataclasses.is_dataclass(annotation)):
        return None
    hints = _hints_of(annotation, annotation.__name__)
    missing = dataclasses.MISSING
    return {
        field.name: (
            hints[field.name],
            field.default is missing and field.default_factory is missing,
        )
        for field in dataclasses.fields(annotation)
        if field.init
    }


def _object_schema(
    annotation: Any, fields: dict[str, tuple[Any, bool]], where: str, inside: tuple[Any, ...]
) -> dict[str, Any]:
    if annotation in inside:
        raise EnvArgumentError(f"{where}: {annotation.__name__} must not hold itself")
    inside = (*inside, annotation)
    return {
        "type": "object",
        "properties": {
            name: _type_schema(hint, f"{where}.{name}", inside)
            for name, (hint, _) in fields.items()
        },
        "required": [name for name, (_, is_needed) in fields.items() if is_needed],
        "additionalProperties": False,
    }


def _convert(value: Any, annotation: Any) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or origin is types.UnionType:
        return None if value is None else _convert(value, _fitting(value, arguments))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return annotation(value)
    fields = _fields_of(annotation)
    if fields is not None:
        made = {name: _convert(item, fields[name][0]) for name, item in value.items()}
        return made if typing.is_typeddict(annotation) else annotation(**made)
    if origin is list:
        return [_convert(item, arguments[0]) for item in value]
    if origin is dict:
        return {name: _convert(item, arguments[1]) for name, item in value.items()}
    return value


def _fitting(value: Any, options: tuple[Any, ...]) -> Any:
    """Return the first option of a union that a value fits."""
    for option in options:
        if option is not types.NoneType:
            try:
                check_value(value, _type_schema(option, "", ()), "")
            except ToolError:
                continue
            return option
    return Any
