"""Training over RLlib: `GRPOConfig().environment(...).learners(num_learners=2).build_algo()`."""

from rllm_learn.rllib.algorithm import LLMAlgorithm
from rllm_learn.rllib.algorithms import (
    CISPO,
    DAPO,
    GRPO,
    GSPO,
    REINFORCE,
    RLOO,
    CISPOConfig,
    DAPOConfig,
    DrGRPO,
    DrGRPOConfig,
    GRPOConfig,
    GSPOConfig,
    REINFORCEConfig,
    REINFORCEPlusPlus,
    REINFORCEPlusPlusConfig,
    ReMax,
    ReMaxConfig,
    RLOOConfig,
)
from rllm_learn.rllib.config import LLMAlgorithmConfig
from rllm_learn.rllib.learner_group import LearnersLost, LLMLearnerGroup

__all__ = [
    "CISPO",
    "DAPO",
    "GRPO",
    "GSPO",
    "REINFORCE",
    "RLOO",
    "CISPOConfig",
    "DAPOConfig",
    "DrGRPO",
    "DrGRPOConfig",
    "GRPOConfig",
    "GSPOConfig",
    "LLMAlgorithm",
    "LLMAlgorithmConfig",
    "LLMLearnerGroup",
    "LearnersLost",
    "REINFORCEConfig",
    "REINFORCEPlusPlus",
    "REINFORCEPlusPlusConfig",
    "RLOOConfig",
    "ReMax",
    "ReMaxConfig",
]
