"""The part of RLlib's configuration that says what is written while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllm_learn.config import TrainerConfig
from rllm_learn.errors import ConfigError
from rllm_learn.rllib.options import UNSET, given


class ReportingConfig(AlgorithmConfig):
    """The run directory. Base of `LLMAlgorithmConfig`."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class)
        self.run_dir: str | None = None
        self.run_dir_episodes = TrainerConfig().tracking.episodes

    def reporting(
        self, *, run_dir: str | Path | None = UNSET, run_dir_episodes: int = UNSET, **settings: Any
    ) -> Self:
        """Say what is written: RLlib's method, and the run directory.

        Args:
            run_dir: Where metrics, episodes and settings are kept for `rllm view` and `rllm
                report`, as `rllm train` keeps them; each trial of Tune gets a directory below it.
                None keeps none.
            run_dir_episodes: Training episodes of each step that are kept, and episodes of each
                evaluation whose tokens are kept.
            settings: RLlib's own.
        """
        super().reporting(**settings)
        if run_dir is not UNSET:
            self.run_dir = None if run_dir is None else str(run_dir)
        self.run_dir_episodes = given(run_dir_episodes, self.run_dir_episodes)
        return self

    def check_reporting(self) -> None:
        """Refuse what cannot be written.

        Raises:
            ConfigError: Naming the option.
        """
        count = self.run_dir_episodes
        if not isinstance(count, int) or isinstance(count, bool) or count < 0:
            raise ConfigError(f"run_dir_episodes must be 0 or more, got {count!r:.80}")
        if self.run_dir == "":
            raise ConfigError("run_dir must be a directory, or None; got an empty text")
