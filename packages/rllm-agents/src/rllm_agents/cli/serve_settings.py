"""What `rllm serve` can be told: typed settings with their defaults and meanings."""

from __future__ import annotations

from dataclasses import dataclass, field

from rllm_agents.cli.eval_settings import EngineSettings, ModelSettings, SamplingSettings


@dataclass
class ServeSettings:
    """Everything that `rllm serve` can be told."""

    model: ModelSettings = field(default_factory=ModelSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    """For requests that do not say otherwise."""
    name: str | None = None
    """What clients call the model; null is model.path, or the name on the server behind."""
    host: str = "127.0.0.1"
    """Address to listen on; one that other machines reach needs token_file."""
    port: int = 8000
    """0 takes a free one."""
    token_file: str | None = None
    """Where to write a random token, readable by the owner alone, that requests must carry."""
    tool_parser: str = "qwen"
    """How the model is told of tools and writes calls."""
    episodes: str | None = None
    """JSONL file to which each session is appended when it ends, with ids and logprobs of its
    tokens; null keeps none."""
    max_calls: int = 1024
    """Most calls of one session."""
    max_sessions: int = 1024
    """Most sessions that are open at a time."""
    idle_seconds: float = 3600.0
    """After how long without a call a session is dropped."""
    max_prompt_length: int | None = None
    """Most tokens of a session's first prompt; null takes what the model has beside the answers."""
    max_response_length: int | None = None
    """Most tokens after it, over all calls; null takes a quarter of the model's, at most 8192."""
    torch_threads: int | None = None
    """Threads of one torch operation; null is 1 for the tiny model, else torch's own choice."""
    verbose: bool = False
    """Whether to write a line for each request."""
