"""Agents that are ready to use, one per file."""

from rllm_agents.agents.chat import ChatAgent
from rllm_agents.agents.tool import ToolAgent

__all__ = ["ChatAgent", "ToolAgent"]
