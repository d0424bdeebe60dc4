"""Tools that an agent may call."""

from rllm_envs.tools.base import Tool, ToolOutput
from rllm_envs.tools.calculator import CalculatorTool
from rllm_envs.tools.catalog import TOOLS, make_tools

__all__ = ["TOOLS", "CalculatorTool", "Tool", "ToolOutput", "make_tools"]
