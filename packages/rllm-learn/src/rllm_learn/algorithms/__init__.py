"""The algorithms, one file each. Another one is its file and its line in `ALGORITHMS`."""

from collections.abc import Callable
from typing import Any

from rllm_learn.algorithms.base import Algorithm, AlgorithmConfig, Credit, PlannedRollout
from rllm_learn.algorithms.grpo import GRPO, GRPOConfig

ALGORITHMS: dict[str, tuple[type[AlgorithmConfig], Callable[[Any], Algorithm]]] = {
    "grpo": (GRPOConfig, GRPO),
}
"""Name in a configuration -> (settings, algorithm that takes them)."""


def make_algorithm(config: AlgorithmConfig) -> Algorithm:
    """Return the algorithm that settings are for."""
    return ALGORITHMS[config.name][1](config)


__all__ = [
    "ALGORITHMS",
    "GRPO",
    "Algorithm",
    "AlgorithmConfig",
    "Credit",
    "GRPOConfig",
    "PlannedRollout",
    "make_algorithm",
]
