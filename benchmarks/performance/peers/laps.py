"""How the driver and the process of one side take turns: a line asks for a lap, a line answers.

All but answers goes to standard error, so that what a library prints does no harm.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook


class Laps:
    """The laps of this process, with the CPU seconds and the memory that each took."""

    def __init__(self) -> None:
        """Keep standard output for answers, and say that the process is ready."""
        torch.set_num_threads(1)
        self._answers = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        self._start = 0.0

    def wait(self) -> bool:
        """Wait until the next lap is asked for; False when there is none. Starts its clock."""
        asked = bool(sys.stdin.readline())
        self._start = time.process_time()
        return asked

    def done(self, **figures: float) -> None:
        """Answer with the lap's CPU seconds, the peak of memory so far, and further figures."""
        self.answer(cpu_seconds=time.process_time() - self._start, **figures)

    def answer(self, **figures: float) -> None:
        """Answer with figures and the peak of memory so far, in MiB."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"peak_mib": peak, **figures}), file=self._answers)


def save_first_gradient(model: torch.nn.Module, path: Path) -> None:
    """Write the gradient of the first optimizer step of this process, as it is applied."""
    names = {id(parameter): name for name, parameter in model.named_parameters()}

    def write(optimizer: torch.optim.Optimizer, *_: Any) -> None:
        if path.exists():
            return
        gradients = {
            names[id(parameter)]: parameter.grad
            for group in optimizer.param_groups
            for parameter in group["params"]
            if id(parameter) in names and parameter.grad is not None
        }
        torch.save(gradients, path)

    register_optimizer_step_pre_hook(write)
