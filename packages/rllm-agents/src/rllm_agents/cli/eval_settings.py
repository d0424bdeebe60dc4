"""What `rllm eval` can be told: typed settings with their defaults and meanings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class EnvSettings:
    """What is played."""

    id: str = "rllm/Calculator-v0"
    """Any registered Gymnasium id with text observations and actions; `module:id` imports it."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Arguments of the environment, such as env.kwargs.max_turns=2."""
    dataset: str | None = None
    """Tasks from a JSONL or JSON file or a registered data set; null draws the env's own."""
    split: str = "test"
    """Part of a registered data set, or of the tasks that the environment draws."""
    first_seed: int = 0
    """Where the search for seeds with different tasks begins."""


@dataclass
class ModelSettings:
    """Who plays."""

    path: str | None = None
    """A model directory, a hub name such as Qwen/Qwen3-0.6B, or tiny, which ships with rllm; null
    is tiny, or with engine=openai what the server serves."""
    dtype: str | None = None
    """float32, bfloat16 or float16; null takes what is stored."""
    device: str | None = None
    """A torch device; null takes the first GPU, or the CPU where there is none."""


@dataclass
class EngineSettings:
    """What samples."""

    name: str = "transformers"
    """The rollout engine."""
    max_batch_size: int | None = None
    """Most sequences sampled at once; null is 256. Of engines that load the model here."""
    kv_cache_gib: float | None = None
    """Of engine=vllm: memory for keys and values in GiB; null is what the batch can need, up to
    4 GiB, on a CPU, and half of a GPU's memory less the weights."""
    vllm_args: dict[str, Any] = field(default_factory=dict)
    """Of engine=vllm: more of its engine's arguments."""
    num_engines: int | None = None
    """Engines in processes of their own, over Ray; null samples in this one. Of engines that load
    the model here."""
    num_cpus_per_engine: float | None = None
    """With engine.num_engines: CPUs that Ray reserves for each; null is 1."""
    num_gpus_per_engine: float | None = None
    """With engine.num_engines: GPUs that Ray reserves for each; null is 1 (of vLLM
    tensor_parallel_size) where there are any."""
    base_url: str | None = None
    """Of engine=openai: where the server is, such as http://localhost:8000/v1."""
    model: str | None = None
    """Of engine=openai: the server's name of the model; null is model.path, or the only one."""
    api_key_env: str | None = None
    """Of engine=openai: environment variable with the server's key; null is OPENAI_API_KEY."""


@dataclass
class AgentSettings:
    """How observations are put to the model."""

    name: str = "chat"
    """Which agent: chat, code, game, math or react."""
    system_prompt: str | None = None
    """First message of each conversation; null is the agent's own. Not of agent.name=math."""


@dataclass
class SamplingSettings:
    """How tokens are drawn."""

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """In (0, 1]."""
    top_k: int = 0
    """0 keeps the whole distribution."""
    max_tokens: int | None = None
    """Most tokens of one turn; null leaves it to max_response_length."""


@dataclass
class EvalSettings:
    """Everything that `rllm eval` can be told."""

    env: EnvSettings = field(default_factory=EnvSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    policy: str = "model"
    """model, or oracle: the environment's own answers, which needs no model and no torch."""
    num_tasks: int | None = None
    """Different tasks; null takes all rows of a data set, else 512."""
    samples_per_task: int = 1
    """Episodes of each task; pass@k is reported for every k up to this many."""
    seed: int = 0
    """Of all sampling; the tasks do not depend on it."""
    max_prompt_length: int | None = None
    """Most tokens of the first prompt; null takes what the model has beside the response."""
    max_response_length: int | None = None
    """Most tokens after it, over all turns; null takes a quarter of the model's, at most 8192."""
    max_steps: int = 64
    """Most turns of an episode; the environment usually ends it before."""
    n_parallel_agents: int = 256
    """Most episodes in flight."""
    n_processes: int = 0
    """Further processes that play the episodes, of engine=openai or policy=oracle: for environments
    that cost more time than one core has; 0: this process plays."""
    isolation: str = "thread"
    """thread, or process for environments that may hang or crash: each plays in a process of its
    own, which is killed and replaced."""
    step_timeout: float | None = 600.0
    """Seconds that one step of an environment may take; null waits for ever."""
    call_timeout: float | None = 1800.0
    """Seconds of one call of the model; null waits for ever."""
    trajectory_timeout: float | None = 7200.0
    """Seconds of one episode, all its attempts included; null waits for ever."""
    retry_limit: int = 3
    """Most attempts at an episode that fails for a reason that may pass; 1 never tries again."""
    torch_threads: int | None = None
    """Threads of one torch operation; null is 1 for the tiny model, else torch's own choice."""
    episodes_with_tokens: int | None = 100
    """Of how many episodes, the first to end, the ids, logprobs and texts of all tokens are saved;
    null: of all, for training elsewhere."""
    run_dir: str | None = None
    """Where episodes.jsonl, summary.json and tasks.csv go; null makes runs/eval-<date>-<time>."""
