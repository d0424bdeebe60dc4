"""The algorithms, one file each. Another one is its file and its line in `ALGORITHMS`."""

from collections.abc import Callable
from typing import Any

from rllm_learn.algorithms.base import (
    Algorithm,
    AlgorithmConfig,
    Credit,
    CriticSettings,
    PlannedRollout,
)
from rllm_learn.algorithms.cispo import CISPO, CISPOConfig
from rllm_learn.algorithms.dapo import DAPO, DAPOConfig
from rllm_learn.algorithms.distillation import Distillation, DistillationConfig
from rllm_learn.algorithms.dpo import DPO, DPOConfig
from rllm_learn.algorithms.dr_grpo import DrGRPO, DrGRPOConfig
from rllm_learn.algorithms.grpo import GRPO, GRPOConfig
from rllm_learn.algorithms.gspo import GSPO, GSPOConfig
from rllm_learn.algorithms.policy_gradient import PolicyGradientConfig
from rllm_learn.algorithms.ppo import PPO, PPOConfig
from rllm_learn.algorithms.registered import register_advantage, register_loss
from rllm_learn.algorithms.reinforce import REINFORCE, REINFORCEConfig
from rllm_learn.algorithms.reinforce_plus_plus import REINFORCEPlusPlus, REINFORCEPlusPlusConfig
from rllm_learn.algorithms.remax import ReMax, ReMaxConfig
from rllm_learn.algorithms.rft import RFT, RFTConfig
from rllm_learn.algorithms.rloo import RLOO, RLOOConfig
from rllm_learn.algorithms.roles import RoleAlgorithms

ALGORITHMS: dict[str, tuple[type[AlgorithmConfig], Callable[[Any], Algorithm]]] = {
    "ppo": (PPOConfig, PPO),
    "grpo": (GRPOConfig, GRPO),
    "dr_grpo": (DrGRPOConfig, DrGRPO),
    "dapo": (DAPOConfig, DAPO),
    "gspo": (GSPOConfig, GSPO),
    "cispo": (CISPOConfig, CISPO),
    "rloo": (RLOOConfig, RLOO),
    "remax": (ReMaxConfig, ReMax),
    "reinforce": (REINFORCEConfig, REINFORCE),
    "reinforce_plus_plus": (REINFORCEPlusPlusConfig, REINFORCEPlusPlus),
    "rft": (RFTConfig, RFT),
    "dpo": (DPOConfig, DPO),
    "distillation": (DistillationConfig, Distillation),
}
"""Name in a configuration -> (settings, algorithm that takes them)."""


def make_algorithm(config: AlgorithmConfig) -> Algorithm:
    """Return the algorithm that settings are for."""
    return ALGORITHMS[config.name][1](config)


__all__ = [
    "ALGORITHMS",
    "CISPO",
    "DAPO",
    "DPO",
    "GRPO",
    "GSPO",
    "PPO",
    "REINFORCE",
    "RFT",
    "RLOO",
    "Algorithm",
    "AlgorithmConfig",
    "CISPOConfig",
    "Credit",
    "CriticSettings",
    "DAPOConfig",
    "DPOConfig",
    "Distillation",
    "DistillationConfig",
    "DrGRPO",
    "DrGRPOConfig",
    "GRPOConfig",
    "GSPOConfig",
    "PPOConfig",
    "PlannedRollout",
    "PolicyGradientConfig",
    "REINFORCEConfig",
    "REINFORCEPlusPlus",
    "REINFORCEPlusPlusConfig",
    "RFTConfig",
    "RLOOConfig",
    "ReMax",
    "ReMaxConfig",
    "RoleAlgorithms",
    "make_algorithm",
    "register_advantage",
    "register_loss",
]
