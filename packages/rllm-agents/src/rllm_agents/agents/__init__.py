"""Agents that are ready to use, one per file."""

from rllm_agents.agents.chat import ChatAgent
from rllm_agents.agents.math import MathAgent
from rllm_agents.agents.tool import ToolAgent

__all__ = ["ChatAgent", "MathAgent", "ToolAgent"]
