"""RLlib's configuration of an algorithm, for language agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from rllm_envs import BaseEnv, Dataset, GymEnv
from rllm_learn.algorithms import ALGORITHMS
from rllm_learn.config import TrainerConfig, to_settings
from rllm_learn.errors import ConfigError
from rllm_learn.rllib.config_faults import FaultsConfig
from rllm_learn.rllib.config_players import PlayersConfig
from rllm_learn.rllib.config_reporting import ReportingConfig
from rllm_learn.rllib.options import UNSET, check_rllib_options, given

SHARDINGS = ("replicate", "fsdp")


class LLMAlgorithmConfig(PlayersConfig, ReportingConfig, FaultsConfig):
    """Base of the configurations: RLlib's methods where the meaning is RLlib's, and a few more.

    Counted in tasks and episodes rather than in environment steps. Options of RLlib that cannot be
    honoured are refused by `validate`, with the reason.
    """

    algorithm_name = "grpo"
    """A key of `rllm_learn.algorithms.ALGORITHMS`."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class)
        vars(self).pop("model", None)  # RLlib's old dictionary, where `.model()` is a method here
        defaults = TrainerConfig()
        # RLlib's own, with other defaults.
        self.lr = None
        self.grad_clip = defaults.learner.max_grad_norm
        self.seed = 0
        self.num_envs_per_env_runner = defaults.rollout.n_parallel_agents
        self.num_cpus_for_main_process = 0.25
        self.num_cpus_per_env_runner = 0.25
        self.num_cpus_per_learner = 0.5
        self.evaluation_duration = defaults.eval.num_tasks
        self.sample_timeout_s = None
        self.delay_between_env_runner_restarts_s = 1.0
        self.validate_env_runners_after_construction = False
        self._dont_auto_sync_env_runner_states = True
        self.env_args: Mapping[str, Any] | None = None
        self.dataset: Any = None
        self.eval_dataset: Any = None
        self.model_settings: dict[str, Any] = {}
        self.engine_settings: dict[str, Any] = {}
        self.rollout_settings: dict[str, Any] = {}
        self.learner_settings: dict[str, Any] = {}
        self.algorithm_settings: dict[str, Any] = {}
        self.tasks_per_step = defaults.tasks_per_step
        self.judging_settings: dict[str, Any] = {}
        self.sharding = "replicate"
        self.num_engines = 0
        self.num_cpus_per_engine = 0.5
        self.num_gpus_per_engine = 0.0

    def environment(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        env: str | type[BaseEnv] | None = UNSET,
        *,
        env_config: Mapping[str, Any] = UNSET,
        dataset: Any = UNSET,
        eval_dataset: Any = UNSET,
    ) -> Self:
        """Say what is learned.

        Args:
            env: A Gymnasium id with text observations and actions, or a `BaseEnv` class.
            env_config: Arguments of the environment; of a class, of its `from_dict`.
            dataset: Tasks to train on: a list of mappings, a Dataset, a file or a registered name.
            eval_dataset: Held-out tasks, likewise.
        """
        if isinstance(env, type):
            self.env_class, self.env = env, env.__name__
        elif env is not UNSET:
            self.env_class, self.env = GymEnv, env
        if env_config is not UNSET:
            self.env_config = dict(env_config)
        self.dataset = given(dataset, self.dataset)
        self.eval_dataset = given(eval_dataset, self.eval_dataset)
        return self

    def model(self, path: str, **settings: Any) -> Self:
        """Say which policy learns.

        Args:
            path: A model directory, a hub name, or "tiny".
            settings: `dtype`, `device`, `gradient_checkpointing`, as in `rllm train`.
        """
        self.model_settings = {**self.model_settings, "path": path, **settings}
        return self

    def lora(self, rank: int = 8, alpha: float = 16.0) -> Self:
        """Train LoRA adapters of this rank on all linear layers; rank 0 trains all parameters."""
        self.model_settings = {**self.model_settings, "lora_rank": rank, "lora_alpha": alpha}
        return self

    def engine(
        self,
        name: str = UNSET,
        *,
        num_engines: int = UNSET,
        num_cpus: float = UNSET,
        num_gpus: float = UNSET,
        **settings: Any,
    ) -> Self:
        """Say what samples.

        Args:
            name: transformers or vllm.
            num_engines: Engines as actors; 0 samples in the algorithm's process, where the env
                runner then has to be too.
            num_cpus: Of each engine's actor.
            num_gpus: Of each engine's actor.
            settings: `max_batch_size`, `kv_cache_gib`, `publish`, `sleep`, `vllm_args`, as in
                `rllm train`.
        """
        if name is not UNSET:
            settings = {"name": name, **settings}
        self.engine_settings = {**self.engine_settings, **settings}
        self.num_engines = given(num_engines, self.num_engines)
        self.num_cpus_per_engine = given(num_cpus, self.num_cpus_per_engine)
        self.num_gpus_per_engine = given(num_gpus, self.num_gpus_per_engine)
        return self

    def learners(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, sharding: str = UNSET, **settings: Any
    ) -> Self:
        """Say who learns.

        Args:
            sharding: "replicate": each learner holds all weights; "fsdp": several learners hold a
                part of each, which bounds the memory that one needs. The update is the same.
            settings: RLlib's `num_learners`, `num_cpus_per_learner`, `num_gpus_per_learner`,
                `custom_resources_per_learner`.
        """
        super().learners(**settings)
        self.sharding = given(sharding, self.sharding)
        return self

    def rollout(self, **settings: Any) -> Self:
        """Say how episodes are played: the settings of `rollout` in `rllm train`.

        `temperature`, `max_prompt_length`, `max_response_length`, `max_steps`, `isolation`,
        `step_timeout`, `call_timeout`, `trajectory_timeout`, `retry_limit`, `max_failure_share`.
        How many are in flight in one runner is RLlib's
        `.env_runners(num_envs_per_env_runner=...)`.
        """
        self.rollout_settings = {**self.rollout_settings, **settings}
        return self

    def training(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        *,
        lr: float | None = UNSET,
        grad_clip: float = UNSET,
        num_epochs: int = UNSET,
        minibatch_size: int | None = UNSET,
        tasks_per_step: int = UNSET,
        **settings: Any,
    ) -> Self:
        """Say how it learns.

        Args:
            lr: Peak rate of AdamW; None takes the default that suits the model.
            grad_clip: Largest norm of the gradient.
            num_epochs: Passes over each batch.
            minibatch_size: Sequences of one optimizer step; None for the whole batch.
            tasks_per_step: Different tasks of one `training_step`.
            settings: The algorithm's own (of GRPO `group_size`, `divide_by_std`, `clip_low`,
                `clip_high` and more), and the learner's (`micro_tokens`, `warmup_updates`,
                `betas`, `weight_decay`, `muon_learning_rate`).
        """
        self.lr = given(lr, self.lr)
        self.grad_clip = given(grad_clip, self.grad_clip)
        self.num_epochs = given(num_epochs, self.num_epochs)
        self.minibatch_size = given(minibatch_size, self.minibatch_size)
        self.tasks_per_step = given(tasks_per_step, self.tasks_per_step)
        own = ALGORITHMS[self.algorithm_name][0].__dataclass_fields__
        of_algorithm = {k: v for k, v in settings.items() if k in own}
        of_learner = {k: v for k, v in settings.items() if k not in own}
        self.algorithm_settings = {**self.algorithm_settings, **of_algorithm}
        self.learner_settings = {**self.learner_settings, **of_learner}
        return self

    def evaluation(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, greedy: bool = UNSET, samples_per_task: int = UNSET, **settings: Any
    ) -> Self:
        """Say when and on what it is judged: RLlib's method, in episodes.

        Args:
            greedy: Whether held-out tasks are also played greedily.
            samples_per_task: Sampled episodes of each; above 1, pass@k is reported too.
            settings: RLlib's `evaluation_interval`, `evaluation_duration` (held-out tasks) and
                `evaluation_num_env_runners`.
        """
        super().evaluation(**settings)
        of_judging = {"greedy": greedy, "samples_per_task": samples_per_task}
        own = {name: value for name, value in of_judging.items() if value is not UNSET}
        self.judging_settings = {**self.judging_settings, **own}
        return self

    def validate(self) -> None:
        """Refuse what cannot work or would have no effect.

        Raises:
            ConfigError: Naming the option, and what to use instead.
        """
        check_rllib_options(self)
        if self.env is None:
            raise ConfigError('say what is learned: .environment("rllm/Calculator-v0")')
        if self.lr is not None and not isinstance(self.lr, int | float):
            raise ConfigError(f"lr must be a number or None, got {self.lr!r}")
        for name in ("num_learners", "num_env_runners", "num_engines"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name)}")
        self._check_sharding()
        remote_runners = self.num_env_runners or self.evaluation_num_env_runners
        if remote_runners and self.num_engines == 0:
            raise ConfigError(
                "remote env runners need engines that they can reach: .engine(num_engines=1)"
            )
        if self.evaluation_duration_unit != "episodes" or not isinstance(
            self.evaluation_duration, int
        ):
            raise ConfigError(
                "evaluation_duration is a number of held-out tasks, in episodes; got "
                f"{self.evaluation_duration!r} {self.evaluation_duration_unit}"
            )
        if self.framework_str != "torch":
            raise ConfigError(f"framework must be torch, got {self.framework_str!r}")
        for name in (
            "init_timeout_s",
            "collective_timeout_s",
            "hang_timeout_s",
            "snapshot_every_updates",
        ):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be above 0, got {getattr(self, name)!r}")
        self.check_reporting()
        self.chosen_players()

    def _check_sharding(self) -> None:
        if self.sharding not in SHARDINGS:
            raise ConfigError(
                f"sharding must be one of {', '.join(SHARDINGS)}, got {self.sharding!r}"
            )
        if self.sharding == "fsdp" and (self.num_learners or 0) < 2:
            raise ConfigError(
                f"sharding='fsdp' splits weights over learners, and num_learners is "
                f"{self.num_learners}: .learners(num_learners=2) or more, or sharding='replicate'"
            )
        if self.sharding == "fsdp" and self.learner_settings.get("muon_learning_rate") is not None:
            raise ConfigError(
                "muon_learning_rate is for whole matrices, which sharding='fsdp' splits: leave it "
                "out, or use sharding='replicate'"
            )

    def trainer_config(self) -> TrainerConfig:
        """Return the settings as `rllm train` has them.

        Raises:
            ConfigError: A setting is unknown or out of range.
        """
        is_gym = self.env_class is GymEnv
        settings: dict[str, Any] = {
            "env": {"id": str(self.env)},
            "model": self.model_settings,
            "engine": self.engine_settings,
            "rollout": {"n_parallel_agents": self.num_envs_per_env_runner, **self.rollout_settings},
            "algorithm": {"name": self.algorithm_name, **self.algorithm_settings},
            "learner": {
                "learning_rate": self.lr,
                "max_grad_norm": self.grad_clip,
                "num_epochs": self.num_epochs,
                "minibatch_sequences": self.minibatch_size or 0,
                **self.learner_settings,
            },
            "eval": {
                "num_tasks": self.evaluation_duration,
                "opponents": self.eval_opponents,
                **self.judging_settings,
            },
            "tasks_per_step": self.tasks_per_step,
            "snapshot_every": self.snapshot_every,
            "players": self.player_settings,
            "seed": self.seed or 0,
        }
        if is_gym and self.env_config:
            settings["env"]["kwargs"] = dict(self.env_config)
        for name in ("dataset", "eval_dataset"):
            if isinstance(getattr(self, name), str):
                settings["env"][name] = getattr(self, name)
        # A section without settings would be taken for a setting itself.
        settings = {name: value for name, value in settings.items() if value != {}}
        checked = to_settings(settings, TrainerConfig, config_name=f"{self.algorithm_name}_trainer")
        if checked.learner.decay != "constant":
            raise ConfigError("decay needs a number of steps, which RLlib's runs do not have")
        if checked.rollout.max_staleness:
            raise ConfigError(
                f"rollout max_staleness={checked.rollout.max_staleness} is of `rllm train` and "
                "AgentTrainer; an RLlib algorithm samples and learns in turn: leave it 0"
            )
        return checked

    def datasets(self) -> tuple[Sequence[Any] | Dataset | None, Sequence[Any] | Dataset | None]:
        """Return training and held-out rows that were given as such; names are settings."""
        rows = [None if isinstance(d, str) else d for d in (self.dataset, self.eval_dataset)]
        return rows[0], rows[1]
