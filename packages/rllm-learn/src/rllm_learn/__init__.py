"""Reinforcement learning of language agents: learners, algorithms and the loop around them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rllm_learn.algorithms import register_advantage, register_loss
    from rllm_learn.config import SFTConfig, TrainerConfig
    from rllm_learn.sft import train_supervised
    from rllm_learn.step import train_step
    from rllm_learn.trainer import AgentTrainer

_HOMES = {
    "AgentTrainer": "rllm_learn.trainer",
    "SFTConfig": "rllm_learn.config",
    "TrainerConfig": "rllm_learn.config",
    "register_advantage": "rllm_learn.algorithms",
    "register_loss": "rllm_learn.algorithms",
    "train_step": "rllm_learn.step",
    "train_supervised": "rllm_learn.sft",
}

__all__ = [
    "AgentTrainer",
    "SFTConfig",
    "TrainerConfig",
    "register_advantage",
    "register_loss",
    "train_step",
    "train_supervised",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first used: torch takes seconds to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
