"""Every setting of a run: its name, type, default and meaning.

The classes are plain dataclasses that OmegaConf reads as typed schemas, so a misspelt key or a
value of another type is refused. Ranges are checked at construction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rllm_learn.algorithms import AlgorithmConfig
from rllm_learn.config.combinations import check_combinations
from rllm_learn.config.players import checked_player
from rllm_learn.errors import require

DTYPES = ("float32", "bfloat16", "float16")
PUBLISH = ("auto", "merged", "adapter")
TRACKERS = {"tensorboard": "", "wandb": "init", "mlflow": "MlflowClient"}
"""What `tracking.to` may name, and what a working library of that name has."""

_UNSET = "null unless tracking.to names {} mlflow"


@dataclass
class EnvConfig:
    """What is learned."""

    id: str = "rllm/Calculator-v0"
    """Any registered Gymnasium id with text observations and actions; `module:id` imports it."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Passed to the environment, for example `env.kwargs.digits=3`."""
    dataset: str | None = None
    """Tasks to train on: a JSONL or JSON file, or a registered name; null draws the
    environment's own."""
    eval_dataset: str | None = None
    """Held-out tasks, likewise; null keeps every eighth row of `env.dataset` (at most) apart."""


@dataclass
class AgentConfig:
    """Who plays."""

    system_prompt: str | None = None
    """First message of each conversation; null for none."""


@dataclass
class ModelConfig:
    """Which policy."""

    path: str = "tiny"
    """A model directory, a hub name such as Qwen/Qwen3-0.6B, or `tiny`."""
    lora_rank: int = 8
    """Rank of the LoRA adapters on all linear layers; 0 trains all parameters."""
    lora_alpha: float = 16.0
    """Adapters are scaled by alpha / rank."""
    dtype: str = "float32"
    """Of the base weights: float32, bfloat16 or float16."""
    device: str = "auto"
    """A torch device; auto is the first GPU, or the CPU where there is none."""
    gradient_checkpointing: bool = False
    """Less memory for about a third more time."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        require(
            self.lora_rank >= 0, "model.lora_rank", self.lora_rank, "0 (all parameters) or more"
        )
        require(self.lora_alpha > 0, "model.lora_alpha", self.lora_alpha, "above 0")
        require(self.dtype in DTYPES, "model.dtype", self.dtype, f"one of {', '.join(DTYPES)}")


@dataclass
class EngineConfig:
    """What samples."""

    name: str = "transformers"
    """transformers, or vllm where it is installed: both return token ids."""
    max_batch_size: int = 256
    """Sequences decoded together."""
    kv_cache_gib: float | None = None
    """vllm only: memory for keys and values in GiB; null is what the batch can need, up to 4 GiB,
    on a CPU, and half of a GPU's memory less the weights."""
    publish: str = "auto"
    """How weights reach vllm: `merged` as whole matrices, `adapter` as LoRA adapters; auto is
    adapters on a GPU, merged elsewhere, where vLLM is several times slower with adapters."""
    sleep: bool = False
    """vllm on a GPU only: hand its memory back while learning. Then
    `engine.vllm_args.gpu_memory_utilization` may be above the default half."""
    vllm_args: dict[str, Any] = field(default_factory=dict)
    """vllm only: more of its engine's arguments, `engine.vllm_args.tensor_parallel_size=2` say."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        require(self.max_batch_size >= 1, "engine.max_batch_size", self.max_batch_size, ">= 1")
        cache = self.kv_cache_gib
        require(cache is None or cache > 0, "engine.kv_cache_gib", cache, "above 0, or null")
        require(self.publish in PUBLISH, "engine.publish", self.publish, " or ".join(PUBLISH))
        if self.name == "transformers":
            none = "unset with engine.name=transformers, which has no such setting"
            require(cache is None, "engine.kv_cache_gib", cache, none)
            require(not self.sleep, "engine.sleep", self.sleep, none)
            require(not self.vllm_args, "engine.vllm_args", self.vllm_args, none)
            require(self.publish != "adapter", "engine.publish", self.publish, "auto or merged")


@dataclass
class RolloutConfig:
    """How episodes are played."""

    temperature: float = 1.0
    """Above 0. Learning uses the logprobs at this temperature too."""
    max_prompt_length: int = 512
    """Tokens of the first prompt; a task with a longer one is not played."""
    max_response_length: int = 256
    """Tokens after the first prompt, the environment's included, over all turns."""
    max_steps: int = 32
    """Turns, where the environment sets no lower limit of its own."""
    n_parallel_agents: int = 256
    """Episodes in flight."""
    isolation: str = "thread"
    """thread, or process for environments that may hang or crash: each plays in a process of its
    own, which is killed and replaced."""
    step_timeout: float | None = 60.0
    """Seconds of one `reset` or `step`; null waits for ever."""
    call_timeout: float | None = 1800.0
    """Seconds of one call of the model; null waits for ever."""
    trajectory_timeout: float | None = None
    """Seconds of one episode, all its attempts included; null for no limit."""
    retry_limit: int = 3
    """Most attempts at an episode that fails for a reason that may pass; 1 never tries again."""
    max_failure_share: float = 0.2
    """Share of failed episodes in a step beyond which the run stops and says why."""
    max_staleness: int = 0
    """Steps, and versions of the weights, that sampling may run ahead of learning; 0: in turn."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        require(self.temperature > 0, "rollout.temperature", self.temperature, "above 0")
        for name in ("max_prompt_length", "max_response_length", "max_steps", "n_parallel_agents"):
            require(getattr(self, name) >= 1, f"rollout.{name}", getattr(self, name), ">= 1")
        require(self.max_staleness >= 0, "rollout.max_staleness", self.max_staleness, ">= 0")
        share = self.max_failure_share
        require(0 <= share <= 1, "rollout.max_failure_share", share, "in [0, 1]")
        require(self.retry_limit >= 1, "rollout.retry_limit", self.retry_limit, ">= 1")
        known = self.isolation in ("thread", "process")
        require(known, "rollout.isolation", self.isolation, "thread or process")
        for name in ("step_timeout", "call_timeout", "trajectory_timeout"):
            value = getattr(self, name)
            require(value is None or value > 0, f"rollout.{name}", value, "above 0, or null")


@dataclass
class LearnerConfig:
    """How batches become updates."""

    learning_rate: float | None = None
    """Peak rate of AdamW. null: 3e-3 for the tiny model's adapters and 1e-3 for all of it; for
    any other model 1e-5 for adapters and 1e-6 for all parameters."""
    warmup_updates: int = 5
    """Steps over which the rate rises linearly."""
    decay: str = "constant"
    """After the warm-up: constant, or cosine to 0 at the last of `num_steps`, also where a step
    takes several optimizer steps (`num_epochs`, `minibatch_sequences`) or none."""
    betas: tuple[float, float] = (0.9, 0.99)
    """Decay rates of AdamW's averages."""
    weight_decay: float = 0.0
    """Of AdamW."""
    muon_learning_rate: float | None = None
    """Peak rate of Muon on inner matrices, with `model.lora_rank=0`; null for AdamW
    alone."""
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this norm."""
    micro_tokens: int = 4096
    """Positions of a pass, where it packs each prompt once: bounds memory. A GPU wants more."""
    num_epochs: int = 1
    """Passes over each batch."""
    minibatch_sequences: int = 0
    """Sequences of one optimizer step; 0 for the whole batch."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        rate = self.learning_rate
        require(
            rate is None or 0 < rate < 1,
            "learner.learning_rate",
            rate,
            "in (0, 1), usually 1e-6 to 3e-3, or null",
        )
        for name in ("warmup_updates", "minibatch_sequences", "weight_decay"):
            require(getattr(self, name) >= 0, f"learner.{name}", getattr(self, name), ">= 0")
        for name in ("micro_tokens", "num_epochs"):
            require(getattr(self, name) >= 1, f"learner.{name}", getattr(self, name), ">= 1")
        require(self.max_grad_norm > 0, "learner.max_grad_norm", self.max_grad_norm, "above 0")
        require(all(0 <= b < 1 for b in self.betas), "learner.betas", self.betas, "in [0, 1)")
        require(
            self.decay in ("constant", "cosine"), "learner.decay", self.decay, "constant or cosine"
        )
        muon = self.muon_learning_rate
        require(
            muon is None or 0 < muon < 1,
            "learner.muon_learning_rate",
            muon,
            "in (0, 1), or null for AdamW alone",
        )


@dataclass
class EvalConfig:
    """When and on what the policy is judged."""

    num_tasks: int = 512
    """Held-out tasks, each different; fewer where a data set has fewer."""
    every_steps: int = 10
    """Steps between evaluations; there is one before the first step and one after the last."""
    greedy: bool = True
    """Also evaluate greedy decoding, beside sampling at `rollout.temperature`."""
    opponents: list[str] = field(default_factory=lambda: ["random"])
    """In games, whom the policy is judged against, each from every seat that learns: random,
    expert, base or a directory with a LoRA adapter. `num_tasks` is then the number of matches."""
    samples_per_task: int = 1
    """Sampled episodes of each held-out task; above 1, pass@k is reported for that k too."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        require(self.num_tasks >= 1, "eval.num_tasks", self.num_tasks, ">= 1")
        require(self.every_steps >= 1, "eval.every_steps", self.every_steps, ">= 1")
        samples = self.samples_per_task
        require(samples >= 1, "eval.samples_per_task", samples, ">= 1")


@dataclass
class CheckpointConfig:
    """When the run is saved."""

    every_steps: int = 20
    """Steps between checkpoints; the last step and an interrupt are saved too."""
    keep: int = 2
    """Newest checkpoints that stay."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        require(self.every_steps >= 1, "checkpoint.every_steps", self.every_steps, ">= 1")
        require(self.keep >= 1, "checkpoint.keep", self.keep, ">= 1")


@dataclass
class TrackingConfig:
    """Where metrics go, beside `metrics.jsonl`."""

    to: list[str] = field(default_factory=lambda: ["tensorboard"])
    """Of tensorboard, wandb and mlflow, for example [tensorboard,wandb]; [] for none. The last two
    need the extra of their name."""
    project: str | None = None
    """With wandb or mlflow: W&B's project, MLflow's experiment; null is `rllm`."""
    run_name: str | None = None
    """With wandb or mlflow: the run's name there; null is the name of the run directory."""
    mlflow_uri: str | None = None
    """With mlflow: its tracking store, for example sqlite:///mlflow.db or http://host:5000; null is
    MLflow's own choice, such as the environment variable MLFLOW_TRACKING_URI."""

    episodes: int = 8
    """Training episodes of each step that are kept, and episodes of each evaluation of which the
    tokens are kept: ids, logprobs, texts, advantages."""

    def __post_init__(self) -> None:
        """Refuse unknown names, and settings without an effect.

        Raises:
            ConfigError: With the setting, its value and what is allowed.
        """
        for name in self.to:
            allowed = f"of {', '.join(TRACKERS)}; metrics.jsonl is always written"
            require(name in TRACKERS, "tracking.to", name, allowed)
        require(len(set(self.to)) == len(self.to), "tracking.to", self.to, "without repetition")
        has_runs = "wandb" in self.to or "mlflow" in self.to
        for name in ("project", "run_name"):
            value = getattr(self, name)
            require(has_runs or value is None, f"tracking.{name}", value, _UNSET.format("wandb or"))
            require(value != "", f"tracking.{name}", value, "a name, or null")
        uri = self.mlflow_uri
        require("mlflow" in self.to or uri is None, "tracking.mlflow_uri", uri, _UNSET.format(""))
        require(self.episodes >= 0, "tracking.episodes", self.episodes, ">= 0")


@dataclass
class TrainerConfig:
    """A reinforcement learning run."""

    env: EnvConfig = field(default_factory=EnvConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    players: dict[str, Any] = field(default_factory=dict)
    """Settings of players by seat of a game or role of a workflow (docs/self-play.md). Naming one
    makes `env.id` a game for several players; seats that are not named play and learn with the
    policy."""
    snapshot_every: int = 10
    """Updates between the copies of a policy that plays as opponent=snapshot."""
    model: ModelConfig = field(default_factory=ModelConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    algorithm: AlgorithmConfig = field(default_factory=AlgorithmConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    num_steps: int = 40
    """Training steps: sample, give credit, update, publish."""
    tasks_per_step: int = 32
    """Different tasks of one step; the algorithm plays each several times."""
    seed: int = 0
    """Of tasks, sampling, adapters and the order of minibatches."""
    deterministic: bool = False
    """Whether runs of one seed are equal bit for bit, however long environments take: sampling in
    rounds, deterministic kernels, and one thread of torch where `torch_threads` is null."""
    run_dir: str | None = None
    """Where everything is written; null makes `runs/<env>-<date>`."""
    torch_threads: int | None = None
    """Threads of one torch operation; null is 1 for the tiny model, else torch's own choice."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        for name in ("num_steps", "tasks_per_step", "snapshot_every"):
            require(getattr(self, name) >= 1, name, getattr(self, name), ">= 1")
        require(self.seed >= 0, "seed", self.seed, ">= 0")
        threads = self.torch_threads
        require(threads is None or threads >= 1, "torch_threads", threads, ">= 1, or null")
        self.players = {name: checked_player(name, given) for name, given in self.players.items()}
        check_combinations(self)


@dataclass
class SFTConfig:
    """A supervised fine-tuning run."""

    data: str | None = None
    """JSONL file with a `messages` list in each row, or `tiny` for the bundled teachers."""
    model: ModelConfig = field(default_factory=ModelConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    num_updates: int = 200
    """Optimizer steps of `batch_sequences` conversations each."""
    batch_sequences: int = 64
    """Conversations of one update."""
    max_length: int = 1024
    """Conversations of more tokens are refused, never cut."""
    seed: int = 0
    """Of the order of rows, adapters, and the bundled teachers."""
    run_dir: str | None = None
    """Where everything is written; null makes `runs/sft-<date>`."""
    torch_threads: int | None = None
    """Threads of one torch operation; null is 1 for the tiny model, else torch's own choice."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        for name in ("num_updates", "batch_sequences", "max_length"):
            require(getattr(self, name) >= 1, name, getattr(self, name), ">= 1")
        require(self.seed >= 0, "seed", self.seed, ">= 0")
        threads = self.torch_threads
        require(threads is None or threads >= 1, "torch_threads", threads, ">= 1, or null")


@dataclass
class DPOFileConfig:
    """A run of DPO on a file of preferences or episodes."""

    data: str | None = None
    """JSONL file with `prompt`, `chosen` and `rejected` in each row (texts, or lists of messages),
    or with episodes as `rllm eval` writes them, several of each task."""
    beta: float = 0.1
    """The larger, the closer the policy stays to the model as it was loaded; above 0."""
    model: ModelConfig = field(default_factory=ModelConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    tracking: TrackingConfig = field(default_factory=TrackingConfig)
    num_updates: int = 30
    """Optimizer steps of `batch_pairs` pairs each; with too many of them all responses become
    unlikely, the chosen ones too."""
    batch_pairs: int = 32
    """Pairs of one update."""
    max_length: int = 1024
    """Conversations of more tokens are refused, never cut."""
    seed: int = 0
    """Of the order of pairs, and adapters."""
    run_dir: str | None = None
    """Where everything is written; null makes `runs/dpo-<date>`."""
    torch_threads: int | None = None
    """Threads of one torch operation; null is 1 for the tiny model, else torch's own choice."""

    def __post_init__(self) -> None:
        """Check ranges; raises ConfigError."""
        for name in ("num_updates", "batch_pairs", "max_length"):
            require(getattr(self, name) >= 1, name, getattr(self, name), ">= 1")
        require(self.beta > 0, "beta", self.beta, "above 0")
        require(self.seed >= 0, "seed", self.seed, ">= 0")
        threads = self.torch_threads
        require(threads is None or threads >= 1, "torch_threads", threads, ">= 1, or null")
        one = "as it is: a pair's pull holds for the weights that scored it; set batch_pairs"
        require(self.learner.num_epochs == 1, "learner.num_epochs", self.learner.num_epochs, one)
        size = self.learner.minibatch_sequences
        require(size == 0, "learner.minibatch_sequences", size, one)
