"""A configuration and an `Algorithm` of RLlib for each algorithm of `rllm_learn.algorithms`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ray.rllib.utils.from_config import NotProvided

from rllm_learn.errors import ConfigError
from rllm_learn.rllib.algorithm import LLMAlgorithm
from rllm_learn.rllib.config import LLMAlgorithmConfig

_UNSET: Any = NotProvided

_OTHER_IN_RLLIB: Mapping[str, str] = {
    "use_critic": "PPO has a critic always; without one take REINFORCEConfig or GRPOConfig",
    "use_kl_loss": "RLlib's KL is from the policy before the update, which the clipped ratio "
    "bounds; from the model as loaded: kl_coefficient=..., kl_place='loss' or 'reward'",
    "kl_coeff": "RLlib's KL is from the policy before the update, which the clipped ratio bounds; "
    "from the model as loaded: kl_coefficient=..., kl_place='loss' or 'reward'",
    "kl_target": "the KL's weight is a constant: kl_coefficient=...",
    "entropy_coeff_schedule": "the bonus has a constant weight: entropy_coeff=...",
    "lr_schedule": "use .training(lr=..., warmup_updates=...)",
}
"""Options of RLlib's PPO that mean something else here -> what to use instead."""


class PPO(LLMAlgorithm):
    """Proximal Policy Optimization; see `PPOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `PPOConfig`."""
        return PPOConfig(cls)


class PPOConfig(LLMAlgorithmConfig):
    """Proximal Policy Optimization with a critic; see `rllm_learn.algorithms.ppo`.

    Example:
        ```python
        config = (
            PPOConfig()
            .environment("rllm/Calculator-v0")
            .model("tiny")
            .lora(rank=8)
            .learners(num_learners=2)
            .training(lr=3e-3, lambda_=0.95, clip_param=0.2, vf_share_layers=True)
        )
        ```
    """

    algorithm_name: ClassVar[str] = "ppo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name ppo_trainer`."""
        super().__init__(algo_class or PPO)

    def training(
        self, *, clip_param: float = _UNSET, entropy_coeff: float = _UNSET, **settings: Any
    ) -> Self:
        """Say how it learns: RLlib's names where the meaning is RLlib's.

        Args:
            clip_param: How far the probability ratio may be from 1 on both sides; `clip_low` and
                `clip_high` set them apart.
            entropy_coeff: Weight of the entropy bonus, here also `entropy_coefficient`.
            settings: RLlib's `lr`, `gamma`, `use_gae`, `lambda_`, `vf_loss_coeff`, `vf_clip_param`,
                `vf_share_layers`, `num_epochs`, `minibatch_size`, `grad_clip`; and what
                `LLMAlgorithmConfig.training` takes, such as `gae_over` and `critic_learning_rate`.

        Raises:
            ConfigError: An option of RLlib's PPO that means something else here.
        """
        for name, remedy in _OTHER_IN_RLLIB.items():
            if name in settings:
                raise ConfigError(f"{name}={settings[name]!r} cannot be honoured: {remedy}")
        if clip_param is not _UNSET:
            settings = {"clip_low": clip_param, "clip_high": clip_param, **settings}
        if entropy_coeff is not _UNSET:
            settings = {"entropy_coefficient": entropy_coeff, **settings}
        return super().training(**settings)


class GRPO(LLMAlgorithm):
    """Group Relative Policy Optimization; see `GRPOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `GRPOConfig`."""
        return GRPOConfig(cls)


class GRPOConfig(LLMAlgorithmConfig):
    """Group Relative Policy Optimization; see `rllm_learn.algorithms.grpo`.

    Example:
        ```python
        config = (
            GRPOConfig()
            .environment("rllm/Calculator-v0")
            .model("tiny")
            .lora(rank=8)
            .env_runners(num_env_runners=1)
            .engine(num_engines=1)
            .learners(num_learners=2)
            .training(lr=3e-3, group_size=8)
            .evaluation(evaluation_interval=10)
        )
        algo = config.build_algo()
        print(algo.train()["env_runners"]["episode_return_mean"])
        ```
    """

    algorithm_name: ClassVar[str] = "grpo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name grpo_trainer`."""
        super().__init__(algo_class or GRPO)


class DrGRPO(LLMAlgorithm):
    """GRPO without its divisions by deviation and length; see `DrGRPOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `DrGRPOConfig`."""
        return DrGRPOConfig(cls)


class DrGRPOConfig(LLMAlgorithmConfig):
    """GRPO without its divisions by deviation and length; see `rllm_learn.algorithms.dr_grpo`."""

    algorithm_name: ClassVar[str] = "dr_grpo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name dr_grpo_trainer`."""
        super().__init__(algo_class or DrGRPO)


class DAPO(LLMAlgorithm):
    """Decoupled Clip and Dynamic Sampling Policy Optimization; see `DAPOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `DAPOConfig`."""
        return DAPOConfig(cls)


class DAPOConfig(LLMAlgorithmConfig):
    """Decoupled Clip and Dynamic Sampling Policy Optimization; see `rllm_learn.algorithms.dapo`."""

    algorithm_name: ClassVar[str] = "dapo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name dapo_trainer`."""
        super().__init__(algo_class or DAPO)


class GSPO(LLMAlgorithm):
    """Group Sequence Policy Optimization; see `GSPOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `GSPOConfig`."""
        return GSPOConfig(cls)


class GSPOConfig(LLMAlgorithmConfig):
    """Group Sequence Policy Optimization; see `rllm_learn.algorithms.gspo`."""

    algorithm_name: ClassVar[str] = "gspo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name gspo_trainer`."""
        super().__init__(algo_class or GSPO)


class CISPO(LLMAlgorithm):
    """Clipped Importance Sampling Policy Optimization; see `CISPOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `CISPOConfig`."""
        return CISPOConfig(cls)


class CISPOConfig(LLMAlgorithmConfig):
    """Clipped Importance Sampling Policy Optimization; see `rllm_learn.algorithms.cispo`."""

    algorithm_name: ClassVar[str] = "cispo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name cispo_trainer`."""
        super().__init__(algo_class or CISPO)


class RLOO(LLMAlgorithm):
    """REINFORCE Leave-One-Out; see `RLOOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `RLOOConfig`."""
        return RLOOConfig(cls)


class RLOOConfig(LLMAlgorithmConfig):
    """REINFORCE Leave-One-Out; see `rllm_learn.algorithms.rloo`."""

    algorithm_name: ClassVar[str] = "rloo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name rloo_trainer`."""
        super().__init__(algo_class or RLOO)


class ReMax(LLMAlgorithm):
    """REINFORCE with the greedy rollout as its baseline; see `ReMaxConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `ReMaxConfig`."""
        return ReMaxConfig(cls)


class ReMaxConfig(LLMAlgorithmConfig):
    """REINFORCE with the greedy rollout as its baseline; see `rllm_learn.algorithms.remax`."""

    algorithm_name: ClassVar[str] = "remax"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name remax_trainer`."""
        super().__init__(algo_class or ReMax)


class REINFORCE(LLMAlgorithm):
    """REINFORCE; see `REINFORCEConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `REINFORCEConfig`."""
        return REINFORCEConfig(cls)


class REINFORCEConfig(LLMAlgorithmConfig):
    """REINFORCE; see `rllm_learn.algorithms.reinforce`."""

    algorithm_name: ClassVar[str] = "reinforce"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name reinforce_trainer`."""
        super().__init__(algo_class or REINFORCE)


class REINFORCEPlusPlus(LLMAlgorithm):
    """REINFORCE++; see `REINFORCEPlusPlusConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `REINFORCEPlusPlusConfig`."""
        return REINFORCEPlusPlusConfig(cls)


class REINFORCEPlusPlusConfig(LLMAlgorithmConfig):
    """REINFORCE++; see `rllm_learn.algorithms.reinforce_plus_plus`."""

    algorithm_name: ClassVar[str] = "reinforce_plus_plus"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name reinforce_plus_plus_trainer`."""
        super().__init__(algo_class or REINFORCEPlusPlus)


class RFT(LLMAlgorithm):
    """Rejection-sampling fine-tuning; see `RFTConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `RFTConfig`."""
        return RFTConfig(cls)


class RFTConfig(LLMAlgorithmConfig):
    """Rejection-sampling fine-tuning; see `rllm_learn.algorithms.rft`."""

    algorithm_name: ClassVar[str] = "rft"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name rft_trainer`."""
        super().__init__(algo_class or RFT)


class DPO(LLMAlgorithm):
    """Direct Preference Optimization of sampled pairs; see `DPOConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `DPOConfig`."""
        return DPOConfig(cls)


class DPOConfig(LLMAlgorithmConfig):
    """Direct Preference Optimization of sampled pairs; see `rllm_learn.algorithms.dpo`."""

    algorithm_name: ClassVar[str] = "dpo"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name dpo_trainer`."""
        super().__init__(algo_class or DPO)


class Distillation(LLMAlgorithm):
    """On-policy distillation; see `DistillationConfig`."""

    @classmethod
    def get_default_config(cls) -> LLMAlgorithmConfig:
        """Return a `DistillationConfig`."""
        return DistillationConfig(cls)


class DistillationConfig(LLMAlgorithmConfig):
    """On-policy distillation; see `rllm_learn.algorithms.distillation`."""

    algorithm_name: ClassVar[str] = "distillation"

    def __init__(self, algo_class: type | None = None) -> None:
        """Take the defaults of `rllm train --config-name distillation_trainer`."""
        super().__init__(algo_class or Distillation)
