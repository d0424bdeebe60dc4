"""Training over RLlib: `GRPOConfig().environment(...).learners(num_learners=2).build_algo()`."""

from rllm_learn.rllib.algorithm import GRPO, LLMAlgorithm
from rllm_learn.rllib.config import GRPOConfig, LLMAlgorithmConfig
from rllm_learn.rllib.learner_group import LearnersLost, LLMLearnerGroup

__all__ = [
    "GRPO",
    "GRPOConfig",
    "LLMAlgorithm",
    "LLMAlgorithmConfig",
    "LLMLearnerGroup",
    "LearnersLost",
]
