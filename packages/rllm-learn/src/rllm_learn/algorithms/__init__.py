"""The algorithms, one file each. Another one is its file and its line in `ALGORITHMS`."""

from rllm_learn.algorithms.base import Algorithm, AlgorithmConfig, Credit, PlannedRollout
from rllm_learn.algorithms.grpo import GRPO, GRPOConfig

ALGORITHMS = {"grpo": (GRPOConfig, GRPO)}
"""Name in a configuration -> (settings, algorithm)."""

__all__ = [
    "ALGORITHMS",
    "GRPO",
    "Algorithm",
    "AlgorithmConfig",
    "Credit",
    "GRPOConfig",
    "PlannedRollout",
]
