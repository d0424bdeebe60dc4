"""Training over RLlib: `GRPOConfig().environment(...).learners(num_learners=2).build_algo()`."""

from rllm_learn.rllib.algorithm import LLMAlgorithm
from rllm_learn.rllib.algorithms import (
    CISPO,
    DAPO,
    GRPO,
    GSPO,
    PPO,
    REINFORCE,
    RLOO,
    CISPOConfig,
    DAPOConfig,
    DrGRPO,
    DrGRPOConfig,
    GRPOConfig,
    GSPOConfig,
    PPOConfig,
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
    "PPO",
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
    "PPOConfig",
    "REINFORCEConfig",
    "REINFORCEPlusPlus",
    "REINFORCEPlusPlusConfig",
    "RLOOConfig",
    "ReMax",
    "ReMaxConfig",
]
