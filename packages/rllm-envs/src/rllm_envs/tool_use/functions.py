"""Functions that an agent calls by JSON: their schemas, reading calls, checking arguments."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from rllm_envs.errors import ToolError, excerpt

KINDS = ("string", "integer", "number", "boolean")
MAX_CALLS_LENGTH = 8000


class Call(NamedTuple):
    """One call, as read from an action."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a function."""

    name: str
    """Name of the argument."""
    kind: str
    """JSON type: one of ``KINDS``."""
    description: str
    """What it means, in a few words."""
    choices: tuple[str, ...] = ()
    """Allowed values; empty for any."""
    default: Any = None
    """Value where it is left out; None for a required argument."""

    def problem(self, value: Any) -> str:
        """Return why a value does not fit, or the empty text."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        fits = {
            "string": isinstance(value, str),
            "integer": is_number and isinstance(value, int),
            "number": is_number,
            "boolean": isinstance(value, bool),
        }[self.kind]
        if not fits:
            return f"{self.name} must be of type {self.kind}, got {excerpt(value)}"
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, got {excerpt(value)}"
        return ""


@dataclass(frozen=True, slots=True)
class Function:
    """A function that may be called."""

    name: str
    """Name of the function."""
    description: str
    """What it does, in one sentence."""
    parameters: tuple[Parameter, ...]
    """Its arguments."""

    def schema(self) -> dict[str, Any]:
        """Return the function as a JSON schema."""
        properties: dict[str, dict[str, Any]] = {}
        for item in self.parameters:
            properties[item.name] = {"type": item.kind, "description": item.description}
            if item.choices:
                properties[item.name]["enum"] = list(item.choices)
            if item.default is not None:
                properties[item.name]["default"] = item.default
        return {
            "name": self.name,
            "description": self.description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": [item.name for item in self.parameters if item.default is None],
            },
        }

    def signature(self) -> str:
        """Return the function as one line: name, arguments with types or values, description."""
        parts = [
            f"{item.name}: {' | '.join(item.choices) or item.kind}"
            + ("" if item.default is None else f" = {item.default!r}")
            for item in self.parameters
        ]
        return f"{self.name}({', '.join(parts)}): {self.description}"

    def problem(self, arguments: dict[str, Any]) -> str:
        """Return why arguments do not fit, or the empty text."""
        known = {item.name: item for item in self.parameters}
        for name, value in arguments.items():
            if name not in known:
                return f"{self.name} has no argument {excerpt(name)}; known: {', '.join(known)}"
            reason = known[name].problem(value)
            if reason:
                return reason
        missing = [i.name for i in self.parameters if i.default is None and i.name not in arguments]
        return f"{self.name} needs the argument {missing[0]}" if missing else ""

    def completed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments with the defaults of those that are left out."""
        defaults = {i.name: i.default for i in self.parameters if i.default is not None}
        return defaults | arguments


def function_of(schema: Any) -> Function:
    """Return the function that a JSON schema describes, as ``Function.schema`` writes it.

    Raises:
        ToolError: The schema has another form.
    """
    try:
        properties = dict(schema["parameters"]["properties"])
        required = schema["parameters"]["required"]
        parameters = []
        for name, item in properties.items():
            default = None if name in required else item["default"]
            choices = tuple(item.get("enum", ()))
            parameters.append(Parameter(name, item["type"], item["description"], choices, default))
        function = Function(schema["name"], schema["description"], tuple(parameters))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ToolError(f"a function schema lacks {error}: {excerpt(schema)}") from error
    if function.schema() != schema or any(item.kind not in KINDS for item in function.parameters):
        raise ToolError(f"a function schema has an unknown part: {excerpt(schema)}")
    return function


def read_calls(text: str) -> list[Call]:
    """Return the calls written as one JSON object or as a list of objects.

    Raises:
        ToolError: The text is no JSON, or a call lacks name or arguments; the message is written
            for the agent.
    """
    if len(text) > MAX_CALLS_LENGTH:
        raise ToolError(f"calls may have at most {MAX_CALLS_LENGTH} characters")
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"this is not JSON: {error}") from error
    items = value if isinstance(value, list) else [value]
    calls = []
    for item in items:
        arguments = item.get("arguments", {}) if isinstance(item, dict) else None
        if not isinstance(arguments, dict) or not isinstance(item.get("name"), str):
            raise ToolError('a call must be {"name": "...", "arguments": {...}}')
        calls.append(Call(item["name"], arguments))
    return calls


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call as JSON text."""
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")
