"""The tools that are known by name."""

import inspect
from collections.abc import Iterable, Iterator, Mapping

from rllm_envs.errors import EnvArgumentError, excerpt
from rllm_envs.tools.base import Tool, ToolSource
from rllm_envs.tools.calculator import CalculatorTool
from rllm_envs.tools.files import FilesTool
from rllm_envs.tools.python import PythonTool
from rllm_envs.tools.retrieval import LocalRetrievalTool
from rllm_envs.tools.sql import SqlTool

_CLASSES: tuple[type[Tool], ...] = (
    CalculatorTool,
    PythonTool,
    LocalRetrievalTool,
    SqlTool,
    FilesTool,
)
TOOLS: Mapping[str, type[Tool]] = {tool.name: tool for tool in _CLASSES}
"""Tool classes by the name that ``tools=[...]`` accepts."""

ToolSpec = str | type[Tool] | Tool
"""A tool as a user gives it: a name of ``TOOLS``, a class made without arguments, or an object."""
ToolSpecs = Iterable[ToolSpec | ToolSource]
"""Tools as a user gives them; a source stands for all its tools."""


def make_tools(
    tools: ToolSpecs | None = None, tool_map: Mapping[str, ToolSpec] | None = None
) -> dict[str, Tool]:
    """Return tool objects by the name under which the agent calls them.

    Args:
        tools: Tools under their own names.
        tool_map: Tools under names of the caller's choice, instead of ``tools``.

    Raises:
        EnvArgumentError: Both are given, a name is unknown or used twice, or something is no tool.
    """
    if tools is not None and tool_map is not None:
        raise EnvArgumentError("give tools or tool_map, not both")
    if isinstance(tools, str):
        raise EnvArgumentError(f"tools must be a list such as [{tools!r}], got the text {tools!r}")
    if tool_map is not None:
        return {name: _make_tool(spec) for name, spec in tool_map.items()}
    made: dict[str, Tool] = {}
    for tool in _each_tool(tools or ()):
        if tool.name in made:
            raise EnvArgumentError(f"two tools are named {tool.name!r}; give them through tool_map")
        made[tool.name] = tool
    return made


def _each_tool(specs: ToolSpecs) -> Iterator[Tool]:
    for spec in specs:
        if isinstance(spec, ToolSource):
            yield from spec.tools.values()
        else:
            yield _make_tool(spec)


def _make_tool(spec: ToolSpec) -> Tool:
    if isinstance(spec, Tool):
        return spec
    if isinstance(spec, str):
        if spec not in TOOLS:
            raise EnvArgumentError(f"no tool is named {spec!r}; known tools: {', '.join(TOOLS)}")
        return TOOLS[spec]()
    if isinstance(spec, type) and issubclass(spec, Tool):
        return spec()
    remedy = "; Tool.from_function makes one of a function" if inspect.isfunction(spec) else ""
    raise EnvArgumentError(
        f"a tool must be a name, a Tool class or a Tool, got {excerpt(spec)}{remedy}"
    )
