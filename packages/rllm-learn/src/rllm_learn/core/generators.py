"""The global random generators, which code of others may draw from: part of an exact resume.

Nothing of ours draws from them; an environment, a loss of one's own or a model's dropout may.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def generator_states() -> dict[str, Any]:
    """Return the states of Python's, numpy's and torch's generators, as plain data and tensors."""
    kind, keys, position, has_gauss, gauss = np.random.get_state(legacy=True)
    return {
        "python": random.getstate(),
        "numpy": (kind, np.asarray(keys).tolist(), position, has_gauss, gauss),
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
    }


def set_generator_states(states: Mapping[str, Any]) -> None:
    """Restore what `generator_states` returned; GPUs that are not there are passed over."""
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    count = torch.cuda.device_count() if states["cuda"] else 0
    for device, state in enumerate(states["cuda"][:count]):
        torch.cuda.set_rng_state(state, device)
