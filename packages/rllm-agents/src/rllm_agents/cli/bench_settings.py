"""What `rllm bench` can be told: typed settings with their defaults and meanings."""

from __future__ import annotations

from dataclasses import dataclass, field

from rllm_agents.cli.eval_settings import (
    AgentSettings,
    EngineSettings,
    ModelSettings,
    SamplingSettings,
)

RESULTS = "benchmarks/results/leaderboard"
CURVES = "benchmarks/results/learning_curves"


@dataclass
class BenchRunSettings:
    """Everything that `rllm bench run` can be told."""

    suite: str = "quick"
    """A suite that ships with rllm, or a .yaml file."""
    policy: str | None = None
    """random, heuristic or oracle; tiny, a model directory or hub name; the directory of a training
    run or of an adapter; or the http address of a server. Null is model.path."""
    name: str | None = None
    """Of the row; null makes one from the policy, and the seed where it is not 0."""
    seed: int = 0
    """Of tasks, opponents and sampling."""
    adapter: str | None = None
    """A LoRA adapter's directory, merged into the model."""
    model: ModelSettings = field(default_factory=ModelSettings)
    engine: EngineSettings = field(default_factory=EngineSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    n_parallel_agents: int = 256
    """Most episodes in flight in one process."""
    workers: int | None = None
    """Processes that play; null is one for each core without a model, else 1."""
    torch_threads: int | None = None
    """Threads of one torch operation; null is 1 for the tiny model, else torch's own choice."""
    results: str = RESULTS
    """Where rows are written: RESULTS/<suite>/<name>.json."""
    cache: str = "runs/bench"
    """Where episodes are kept as they come in; what is there is not played again."""


@dataclass
class BenchTableSettings:
    """Everything that `rllm bench table` can be told."""

    suite: str = "quick"
    """A suite that ships with rllm, or a .yaml file."""
    results: str = RESULTS
    """Where the rows are."""
    page: str | None = None
    """A Markdown page with marks of the suite, between which the table is written too."""


@dataclass
class BenchSiteSettings:
    """Everything that `rllm bench site` can be told."""

    results: str = RESULTS
    """Where the rows are."""
    curves: str = CURVES
    """Where learning curves are; none are shown where it is not there."""
    tasks: int = 2
    """So many tasks of each entry and seed are shown with transcripts; 0 shows none."""
