"""``Tool``: a typed Python function that an agent calls by name with JSON arguments."""

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rllm_envs.errors import (
    EnvArgumentError,
    InfrastructureError,
    MissingDependencyError,
    ToolError,
    excerpt,
)
from rllm_envs.tools.signature import Signature, signature_of
from rllm_envs.tools.values import check_plain, check_value


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What one call gave. Made by ``Tool.call``, read by the environment that runs the tool."""

    name: str
    """Name of the tool."""
    text: str
    """What the agent reads: the result, or ``Error: ...``."""
    is_error: bool = False
    """Whether the call failed."""


class ToolSource(ABC):
    """Several tools that share something, such as the connection to a server.

    It may stand wherever a tool may: ``tools=[source]`` gives all its tools.
    """

    @property
    @abstractmethod
    def tools(self) -> Mapping[str, "Tool"]:
        """The tools by name; each has this object as its ``source``."""

    @abstractmethod
    def for_episode(self) -> "ToolSource":
        """Return the source that serves one episode: itself, unless episodes must not share it."""

    @abstractmethod
    def end_episode(self) -> None:
        """Release what a source of one episode holds; calling twice is harmless."""


class Tool(ABC):
    """A tool: set ``name`` and write ``forward`` with annotated parameters and a docstring.

    The first paragraph of the class docstring (or ``description``) says what the tool does; the
    ``Args:`` of ``forward`` say what each parameter means; the annotations give the types: str,
    int, float, bool, list[T], dict[str, T], Literal, Enum, TypedDict, dataclass, unions of these,
    ``| None``, with or without defaults. A plain function becomes a tool by ``from_function``.

    ``forward`` raises :class:`ToolError` with a message for the agent where it cannot answer. A
    tool may be called from several threads at once.
    """

    name: str
    """What the agent calls it: letters, digits, ``_`` and ``-``."""
    description: str = ""
    """What it does, in a sentence; the docstring's first paragraph by default."""
    source: ToolSource | None = None
    """What the tool shares with others, if anything."""

    _signature: Signature

    forward: Any
    """The method that does the work; its signature is the tool's."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if inspect.isabstract(cls) or "forward" not in cls.__dict__:
            return
        _check_name(getattr(cls, "name", None), f"{cls.__name__}.name")
        if not cls.description:
            cls.description = _first_paragraph(cls)
        cls._signature = signature_of(cls.forward, f"{cls.__name__}.forward", is_method=True)

    @staticmethod
    def from_function(function: Callable[..., Any]) -> "Tool":
        """Return a plain function as a tool; usable as a decorator.

        Its name, its docstring and its annotations are the tool's, as with a class.

        Raises:
            EnvArgumentError: It is no plain function, or its signature cannot be described.
        """
        return _FunctionTool(function)

    def for_episode(self) -> "Tool":
        """Return the tool that serves one episode: itself, unless it keeps something for each."""
        return self

    def close(self) -> None:  # noqa: B027  # closing is optional
        """Release what a tool of one episode holds; the default holds nothing."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The JSON schema of the object of arguments."""
        return self._signature.parameters

    @property
    def schema(self) -> dict[str, Any]:
        """The tool as the JSON schema of a function, as chat templates and servers take it."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }

    def call(self, arguments: dict[str, Any]) -> ToolOutput:
        """Check the arguments, run the tool and return its text.

        Raises:
            InfrastructureError: What the tool needs failed, which is no answer to the agent.
            MissingDependencyError: A library that the tool needs is not installed.
        """
        try:
            self.check_arguments(arguments)
            return ToolOutput(self.name, _whole(str(self.run(arguments))))
        except (InfrastructureError, MissingDependencyError):
            raise
        except ToolError as error:
            return ToolOutput(self.name, _whole(f"Error: {error}"), is_error=True)
        except (Exception, SystemExit) as error:
            # A tool is a stranger's code: whatever it raises is the agent's to read, not ours.
            text = f"Error: {type(error).__name__}: {error}"
            return ToolOutput(self.name, _whole(text[:2000]), is_error=True)

    def run(self, arguments: dict[str, Any]) -> Any:
        """Return the result for arguments that fit the schema; ``forward`` by default."""
        return self.forward(**self._signature.converted(arguments))

    def check_arguments(self, arguments: Any) -> None:
        """Raise :class:`ToolError` unless the arguments fit the schema."""
        check_call(self.name, arguments, self.parameters)


def check_call(name: str, arguments: Any, parameters: Mapping[str, Any]) -> None:
    """Raise unless the arguments of a call are plain JSON and fit the schema of its parameters.

    Where the schema does not speak of ``additionalProperties``, an unknown name is refused.

    Raises:
        ToolError: They do not fit.
    """
    if not isinstance(arguments, dict):
        raise ToolError(f"arguments must be a JSON object, got {excerpt(arguments)}")
    check_plain(arguments)
    properties = parameters.get("properties", {})
    for needed in parameters.get("required", ()):
        if needed not in arguments:
            raise ToolError(f"{name} needs the argument {needed!r}")
    others = parameters.get("additionalProperties", False)
    for key, value in arguments.items():
        if key not in properties and others is False:
            allowed = ", ".join(properties) or "none"
            raise ToolError(f"{name} has no argument {excerpt(key)}; it takes: {allowed}")
        check_value(value, properties.get(key, others), excerpt(key), parameters)


class _FunctionTool(Tool):
    """A plain function as a tool."""

    def __init__(self, function: Callable[..., Any]) -> None:
        if not inspect.isfunction(function) or inspect.iscoroutinefunction(function):
            raise EnvArgumentError(
                f"Tool.from_function takes a function that is not async, got {excerpt(function)}; "
                "write a subclass of Tool for anything else"
            )
        self.name = _check_name(function.__name__, "the name of a function")
        self.description = _first_paragraph(function)
        self._signature = signature_of(function, function.__name__, is_method=False)
        self.forward = function


def episode_tools(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return the tools that serve one episode, by the same names; close them by ``close_tools``.

    Tools of one source get the same source of the episode.
    """
    sources: dict[int, ToolSource] = {}
    made = {}
    for name, tool in tools.items():
        if tool.source is None:
            made[name] = tool.for_episode()
            continue
        key = id(tool.source)
        if key not in sources:
            sources[key] = tool.source.for_episode()
        made[name] = sources[key].tools[tool.name]
    return made


def close_tools(tools: Iterable[Tool]) -> None:
    """Release what the tools of an episode hold, and their sources."""
    for tool in tools:
        tool.close()
        if tool.source is not None:
            tool.source.end_episode()


def _check_name(name: Any, what: str) -> str:
    if not isinstance(name, str) or re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) is None:
        raise EnvArgumentError(f"{what} must be 1 to 64 letters, digits, '_' and '-', got {name!r}")
    return name


def _first_paragraph(described: Any) -> str:
    return " ".join((inspect.getdoc(described) or "").partition("\n\n")[0].split())


def _whole(text: str) -> str:
    """Return a text that UTF-8 can hold: halves of character pairs are replaced."""
    return text.encode("utf-8", "replace").decode()
