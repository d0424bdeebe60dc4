"""``Tool``: a typed Python method that an agent calls by name with JSON arguments."""

import inspect
import re
import types
import typing
from abc import ABC
from dataclasses import dataclass
from typing import Any, ClassVar

from rllm_envs.errors import EnvArgumentError, SandboxError, ToolError, excerpt

_JSON_TYPES: dict[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What one call gave. Made by ``Tool.call``, read by the environment that runs the tool."""

    name: str
    """Name of the tool."""
    text: str
    """What the agent reads: the result, or ``Error: ...``."""
    is_error: bool = False
    """Whether the call failed."""


class Tool(ABC):
    """A tool: set ``name`` and write ``forward`` with annotated parameters and a docstring.

    The first paragraph of the class docstring (or ``description``) says what the tool does; the
    ``Args:`` of ``forward`` say what each parameter means; the annotations give the types. Allowed
    annotations are str, int, float, bool, list and dict, also with ``| None`` and a default.

    ``forward`` raises :class:`ToolError` with a message for the agent where it cannot answer. A
    tool may be called from several threads at once.
    """

    name: ClassVar[str]
    """What the agent calls it: letters, digits, ``_`` and ``-``."""
    description: ClassVar[str] = ""
    """What it does, in a sentence; the docstring's first paragraph by default."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if inspect.isabstract(cls) or "forward" not in cls.__dict__:
            return
        if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", getattr(cls, "name", "")) is None:
            raise EnvArgumentError(
                f"{cls.__name__}.name must be 1 to 64 letters, digits, '_' and '-', got "
                f"{getattr(cls, 'name', None)!r}"
            )
        if not cls.description:
            cls.description = " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())
        cls._parameters = _parameters_of(cls.forward, cls.__name__)

    _parameters: ClassVar[dict[str, Any]]

    forward: Any
    """The method that does the work; its signature is the tool's."""

    def for_episode(self) -> "Tool":
        """Return the tool that serves one episode: itself, unless it keeps something for each."""
        return self

    def close(self) -> None:  # noqa: B027  # closing is optional
        """Release what a tool of one episode holds; the default holds nothing."""

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as the JSON schema of a function, as chat templates and servers take it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self._parameters,
            },
        }

    def call(self, arguments: dict[str, Any]) -> ToolOutput:
        """Check the arguments, run the tool and return its text.

        Raises:
            SandboxError: The sandbox that the tool needs failed, which is no answer to the agent.
        """
        try:
            self.check_arguments(arguments)
            return ToolOutput(self.name, str(self.forward(**arguments)))
        except SandboxError:
            raise
        except ToolError as error:
            return ToolOutput(self.name, f"Error: {error}", is_error=True)
        except Exception as error:
            # A tool is a stranger's code: whatever it raises is the agent's to read, not ours.
            text = f"Error: {type(error).__name__}: {error}"
            return ToolOutput(self.name, text[:2000], is_error=True)

    def check_arguments(self, arguments: Any) -> None:
        """Raise :class:`ToolError` unless the arguments fit the schema."""
        if not isinstance(arguments, dict):
            raise ToolError(f"arguments must be a JSON object, got {excerpt(arguments)}")
        properties = self._parameters["properties"]
        for name in self._parameters["required"]:
            if name not in arguments:
                raise ToolError(f"{self.name} needs the argument {name!r}")
        for name, value in arguments.items():
            if name not in properties:
                allowed = ", ".join(properties) or "none"
                raise ToolError(f"{self.name} has no argument {name!r}; it takes: {allowed}")
            expected = properties[name].get("type")
            if expected is not None and not _fits(value, expected, properties[name]):
                raise ToolError(f"{name!r} must be of type {expected}, got {excerpt(value)}")


def _fits(value: Any, expected: str, schema: dict[str, Any]) -> bool:
    if value is None:
        return bool(schema.get("nullable"))
    if isinstance(value, bool):
        return expected == "boolean"
    return isinstance(value, _PYTHON_TYPES[expected])


def _parameters_of(forward: Any, owner: str) -> dict[str, Any]:
    hints = typing.get_type_hints(forward)
    meanings = _argument_docs(inspect.getdoc(forward) or "")
    properties: dict[str, Any] = {}
    required = []
    for name, parameter in list(inspect.signature(forward).parameters.items())[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise EnvArgumentError(f"{owner}.forward must name its parameters, not take *{name}")
        properties[name] = _type_schema(hints.get(name), f"{owner}.forward({name})")
        if name in meanings:
            properties[name]["description"] = meanings[name]
        if parameter.default is parameter.empty:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required}


def _type_schema(annotation: Any, where: str) -> dict[str, Any]:
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
        if len(options) == 1:
            return _type_schema(options[0], where) | {"nullable": True}
    plain = typing.get_origin(annotation) or annotation
    if plain not in _JSON_TYPES:
        allowed = ", ".join(kind.__name__ for kind in _JSON_TYPES)
        raise EnvArgumentError(f"{where} must be annotated with one of {allowed}")
    return {"type": _JSON_TYPES[plain]}


def _argument_docs(docstring: str) -> dict[str, str]:
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
