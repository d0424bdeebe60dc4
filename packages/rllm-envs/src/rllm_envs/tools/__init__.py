"""Tools that an agent may call."""

from rllm_envs.tools.base import Tool, ToolOutput, ToolSource, close_tools, episode_tools
from rllm_envs.tools.calculator import CalculatorTool
from rllm_envs.tools.catalog import TOOLS, make_tools
from rllm_envs.tools.files import FilesTool
from rllm_envs.tools.mcp import MCPTools
from rllm_envs.tools.python import PythonTool
from rllm_envs.tools.retrieval import LocalRetrievalTool
from rllm_envs.tools.sql import SqlTool

__all__ = [
    "TOOLS",
    "CalculatorTool",
    "FilesTool",
    "LocalRetrievalTool",
    "MCPTools",
    "PythonTool",
    "SqlTool",
    "Tool",
    "ToolOutput",
    "ToolSource",
    "close_tools",
    "episode_tools",
    "make_tools",
]
