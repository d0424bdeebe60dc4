"""Small runs of AgentTrainer, for tests."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file

from rllm_learn import AgentTrainer

SMALL = {
    "num_steps": 4,
    "tasks_per_step": 4,
    "algorithm": {"group_size": 4},
    "eval": {"num_tasks": 8, "every_steps": 2, "samples_per_task": 2},
    "checkpoint": {"every_steps": 2},
    "rollout": {"max_response_length": 64},
    "tracking": {"to": []},
}


def trainer(path: Path, **changes) -> AgentTrainer:
    resume = changes.pop("resume", False)
    return AgentTrainer(config={**SMALL, "run_dir": str(path), **changes}, resume=resume)


def adapter_weights(path: Path) -> dict[str, torch.Tensor]:
    return load_file(path / "adapter" / "adapter_model.safetensors")
