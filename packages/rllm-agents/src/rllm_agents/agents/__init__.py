"""Agents that are ready to use, one per file."""

from rllm_agents.agents.chat import ChatAgent
from rllm_agents.agents.code import CodeAgent
from rllm_agents.agents.game import GameAgent
from rllm_agents.agents.math import MathAgent
from rllm_agents.agents.react import ReActAgent
from rllm_agents.agents.tool import ToolAgent

TEXT_AGENTS = {
    "chat": ChatAgent,
    "code": CodeAgent,
    "game": GameAgent,
    "math": MathAgent,
    "react": ReActAgent,
}
"""Name -> agent that acts in text, as registered environments take it."""

__all__ = [
    "TEXT_AGENTS",
    "ChatAgent",
    "CodeAgent",
    "GameAgent",
    "MathAgent",
    "ReActAgent",
    "ToolAgent",
]
