"""`rllm eval`: play tasks with a policy and report how many it solves."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from rllm_agents.agents import TEXT_AGENTS
from rllm_agents.cli.eval_display import EpisodeProgress, print_result
from rllm_agents.cli.eval_pool import check_pool_settings, with_pool
from rllm_agents.cli.eval_run_dir import (
    EPISODES,
    SUMMARY,
    TASKS,
    free_run_dir,
    resumed_settings,
    start,
)
from rllm_agents.cli.eval_server import check_server_settings, server_arguments
from rllm_agents.cli.eval_settings import EvalSettings
from rllm_agents.cli.overrides import parse_settings, settings_table
from rllm_agents.errors import UserError
from rllm_agents.evaluation import (
    EpisodeLog,
    EvaluationResult,
    OracleEnv,
    env_tasks,
    evaluation_requests,
    oracle_misses,
    play_requests,
    summarize,
    write_task_table,
)
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.models import resolve_model_path
from rllm_agents.rollout_engines import ROLLOUT_ENGINES
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import SamplingParams
from rllm_envs import GymEnv

POLICIES = ("model", "oracle")
_DEFAULT_POSITIONS = 4096
"""Of a model whose configuration does not say."""
_SERVED_POSITIONS = 32_768
"""Of a server that does not say; a default, and no bound of what may be asked."""
_LONGEST_DEFAULT_RESPONSE = 8192


class EvalCommand(click.Command):
    """Shows the settings below the options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options, then all settings with default and meaning."""
        super().format_options(ctx, formatter)
        with formatter.section("Settings and their defaults"):
            formatter.write_dl(settings_table(EvalSettings), col_max=40)


HELP = """Play tasks with a policy and report pass@k, rewards and how episodes ended.

Without arguments the tiny model plays 512 held-out tasks of the calculator environment. Every
episode goes to RUN_DIR/episodes.jsonl as it ends, one JSON object a line; the figures go to
RUN_DIR/summary.json, those of each task to RUN_DIR/tasks.csv. A run that was stopped goes on with
--resume run_dir=RUN_DIR: episodes with an outcome are not played again.

\b
  rllm eval
  rllm eval sampling.temperature=0 num_tasks=100 run_dir=runs/greedy
  rllm eval env=rllm/Arithmetic-v0 env.kwargs.digits=2
  rllm eval env=rllm/Math-v0 env.dataset=test.jsonl model=Qwen/Qwen3-0.6B samples_per_task=4
  rllm eval env=rllm/FrozenLake-v0 agent.name=game max_response_length=500
  rllm eval env=rllm/Math-v0 env.dataset=test.jsonl policy=oracle
  rllm eval engine=openai engine.base_url=http://localhost:8000/v1 model=Qwen/Qwen3-4B
  rllm eval --resume run_dir=runs/greedy num_tasks=200

With policy=oracle the environment answers itself: that checks a data set and its grading, and the
rows that cannot be graded are listed. env=, model= and engine= are short for env.id=, model.path=
and engine.name=.
"""


@click.command("eval", cls=EvalCommand, help=HELP)
@click.option("--resume", is_flag=True, help="Go on with the run in run_dir=.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
def command(settings: tuple[str, ...], resume: bool) -> None:
    """Run `rllm eval`."""
    checked = resumed_settings(settings) if resume else parse_settings(EvalSettings, settings)
    check_policy(checked)
    run_dir = Path(checked.run_dir or "").expanduser() if resume else free_run_dir(checked)
    wall, cpu = time.perf_counter(), time.process_time()
    result, num_played = play(checked, run_dir, None if resume else settings)
    misses = oracle_misses(result.episodes) if checked.policy == "oracle" else None
    seconds = time.perf_counter() - wall
    summary = {
        **result.figures(),
        "num_played": num_played,
        "seconds": seconds,
        "cpu_seconds": time.process_time() - cpu,
        "seed": checked.seed,
        "settings": asdict(checked),
        **({} if misses is None else {"oracle_misses": misses}),
    }
    text = json.dumps(summary, indent=2, default=str)
    (run_dir / SUMMARY).write_text(text + "\n", "utf-8")
    write_task_table(run_dir / TASKS, result.by_task)
    print_result(result, misses, seconds=seconds, run_dir=run_dir)


def check_policy(settings: EvalSettings) -> None:
    """Find mistakes that need neither a model nor an environment to be seen.

    Raises:
        UserError: The policy or the engine does not exist, or what it needs is not installed.
    """
    if settings.policy not in POLICIES:
        raise UserError(f"policy must be {' or '.join(POLICIES)}, got {settings.policy!r}")
    if settings.agent.name not in TEXT_AGENTS:
        raise UserError(
            f"agent.name={settings.agent.name!r} does not exist here; there is "
            f"{', '.join(TEXT_AGENTS)}"
        )
    agent_args(settings)
    sampling_params(settings)
    if settings.episodes_with_tokens is not None and settings.episodes_with_tokens < 0:
        raise UserError(
            "episodes_with_tokens must be 0 or more, or null for all, got "
            f"{settings.episodes_with_tokens}"
        )
    if settings.torch_threads is not None and settings.torch_threads < 1:
        raise UserError(f"torch_threads must be at least 1, or null, got {settings.torch_threads}")
    if settings.policy == "oracle":
        return
    if settings.engine.name == "pool":
        raise UserError(
            "engine.name names what samples, engine=vllm say; engine.num_engines=2 makes a pool"
        )
    engines = {
        name: entry
        for name, entry in ROLLOUT_ENGINES.items()
        if entry.takes_model and name != "pool"
    }
    entry = engines.get(settings.engine.name)
    if entry is None:
        raise UserError(
            f"engine.name={settings.engine.name!r} does not exist here; "
            f"there is {', '.join(engines)}"
        )
    if entry.requires is not None and importlib.util.find_spec(entry.requires) is None:
        raise UserError(
            f"engine.name={settings.engine.name!r} needs {entry.requires}, which is not "
            f"installed: {entry.install}"
        )
    check_server_settings(settings, is_remote=entry.is_remote)
    check_pool_settings(settings.engine)
    if settings.engine.name != "vllm":
        for key in ("kv_cache_gib", "vllm_args"):
            if getattr(settings.engine, key):
                raise UserError(f"engine.{key} is for engine=vllm; leave it out")


def agent_args(settings: EvalSettings) -> dict[str, Any]:
    """Return the arguments of the agent.

    Raises:
        UserError: It has no system prompt to be replaced.
    """
    prompt = settings.agent.system_prompt
    if prompt is None:
        return {}
    if settings.agent.name == "math":
        raise UserError("agent.system_prompt does nothing with agent.name=math; leave it out")
    return {"system_prompt": prompt}


def sampling_params(settings: EvalSettings) -> SamplingParams:
    """Return how tokens are drawn.

    Raises:
        UserError: A value is out of range.
    """
    try:
        return SamplingParams(**asdict(settings.sampling))
    except ValueError as error:
        raise UserError(f"sampling.{error}") from error


def play(
    settings: EvalSettings, run_dir: Path, arguments: Sequence[str] | None
) -> tuple[EvaluationResult, int]:
    """Choose tasks, make the engine, and play; each episode is saved as it ends.

    Args:
        settings: Of this run.
        run_dir: Its directory.
        arguments: What a new run was told; None where one goes on.

    Returns:
        The figures of all episodes, and how many were played here.

    Raises:
        UserError: Something named in the settings is not there, or does not fit.
    """
    # Data and names first: they are cheap to be wrong about, and loading torch takes seconds.
    tasks, env_args = env_tasks(
        settings.env.id,
        env_kwargs=settings.env.kwargs,
        dataset=settings.env.dataset,
        split=settings.env.split,
        num_tasks=settings.num_tasks,
        first_seed=settings.env.first_seed,
    )
    requests = evaluation_requests(
        tasks,
        samples_per_task=settings.samples_per_task,
        sampling=sampling_params(settings),
        seed=settings.seed,
    )
    progress = EpisodeProgress(len(requests))
    with progress, make_engine(settings, env_args, progress.add) as engine:
        if arguments is not None:
            start(run_dir, settings, arguments)
        log = EpisodeLog(
            run_dir / EPISODES,
            episodes_with_tokens=settings.episodes_with_tokens,
            tokenizer=None if engine.renderer is None else engine.renderer.tokenizer,
        )
        with log:
            return play_logged(engine, requests, log, progress, len(tasks))


def play_logged(
    engine: AgentExecutionEngine,
    requests: Sequence[RolloutRequest],
    log: EpisodeLog,
    progress: EpisodeProgress,
    num_tasks: int,
) -> tuple[EvaluationResult, int]:
    """Play what a log has no outcome of; a ctrl-C leaves there what has ended.

    Returns:
        The figures of all episodes, and how many were played here.

    Raises:
        UserError: The log is of other requests, or cannot be written to.
    """
    num_played = len(log.missing(requests))
    for episode in log.judged:
        progress.add(episode)
    try:
        episodes = asyncio.run(play_requests(engine, requests, log))
    except KeyboardInterrupt:
        progress.stop()
        ended = f"{len(log.episodes)} of {len(requests)} episodes"
        go_on = f"rllm eval --resume run_dir={log.path.parent}"
        click.echo(f"interrupted: {ended} are in {log.path}; go on with `{go_on}`", err=True)
        raise
    return summarize(episodes, num_tasks=num_tasks), num_played


def make_engine(
    settings: EvalSettings, env_args: dict[str, Any], on_episode: Any
) -> AgentExecutionEngine:
    """Make what plays episodes.

    Raises:
        UserError: The model is not there or its lengths do not fit.
    """
    players: dict[str, Any] = {
        "agent_class": TEXT_AGENTS[settings.agent.name],
        "agent_args": agent_args(settings),
        "env_class": GymEnv,
        "env_args": env_args,
        "max_steps": settings.max_steps,
        "n_parallel_agents": settings.n_parallel_agents,
        "n_processes": settings.n_processes,
        "isolation": settings.isolation,
        "step_timeout": settings.step_timeout,
        "call_timeout": settings.call_timeout,
        "trajectory_timeout": settings.trajectory_timeout,
        "retry_limit": settings.retry_limit,
        "on_episode": on_episode,
    }
    if settings.policy == "oracle":
        players["env_class"] = OracleEnv
        return AgentExecutionEngine(
            **players, engine_name="scripted", rollout_engine_args={"responses": [""]}
        )
    # It warns of prompts over the model's length; they are counted in the table.
    logging.getLogger("transformers.tokenization_utils_base").setLevel(logging.ERROR)
    name = settings.engine.name
    if ROLLOUT_ENGINES[name].is_remote:
        arguments, tokenizer, positions = server_arguments(settings)
        players["tokenizer"] = tokenizer
    else:
        name, arguments, positions = local_engine(settings)
    prompt, response = fitting_lengths(settings, positions)
    return AgentExecutionEngine(
        **players,
        engine_name=name,
        rollout_engine_args=arguments,
        max_prompt_length=prompt,
        max_response_length=response,
    )


def local_engine(settings: EvalSettings) -> tuple[str, dict[str, Any], int]:
    """Name and arguments of an engine that loads the model here, and the model's positions.

    Raises:
        UserError: The model is not there.
    """
    path = resolve_model_path(settings.model.path or "tiny")
    threads = torch_threads(settings)
    batch_size = settings.engine.max_batch_size
    arguments = {
        "model": str(path),
        "dtype": settings.model.dtype,
        "device": settings.model.device,
        **({} if batch_size is None else {"max_batch_size": batch_size}),
    }
    if settings.engine.name == "vllm":
        arguments["kv_cache_gib"] = settings.engine.kv_cache_gib
        arguments["vllm_args"] = settings.engine.vllm_args
    if threads is not None and settings.engine.num_engines is None:
        import torch  # takes seconds, and an oracle needs none

        torch.set_num_threads(threads)
    return *with_pool(settings.engine, arguments, threads), positions_of(path)


def torch_threads(settings: EvalSettings) -> int | None:
    """Return the threads of one operation, None for torch's choice: a tiny model wants one."""
    if settings.torch_threads is None and settings.model.path in (None, "tiny"):
        return 1
    return settings.torch_threads


def positions_of(path: Path) -> int:
    """Return the most tokens that a model in a directory takes.

    Raises:
        UserError: It has no configuration.
    """
    try:
        config = json.loads((path / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path / 'config.json'} cannot be read: {error}") from error
    named = {**config, **config.get("text_config", {})}
    return int(named.get("max_position_embeddings") or _DEFAULT_POSITIONS)


def fitting_lengths(settings: EvalSettings, positions: int | None) -> tuple[int, int]:
    """Return the most tokens of first prompt and of response, together within the model's.

    Args:
        settings: May name either, or both.
        positions: The model's; None where nobody knows.

    Raises:
        UserError: Those asked for are too many.
    """
    prompt, response = settings.max_prompt_length, settings.max_response_length
    for name, value in (("max_prompt_length", prompt), ("max_response_length", response)):
        if value is not None and (value < 1 or (positions is not None and value >= positions)):
            allowed = "at least 1" if positions is None else f"in [1, {positions - 1}]"
            raise UserError(f"{name} must be {allowed} for this model, got {value}")
    room = positions or _SERVED_POSITIONS
    if response is None:
        rest = room - prompt if prompt is not None else room // 4
        response = min(_LONGEST_DEFAULT_RESPONSE, max(1, rest))
    if prompt is None:
        prompt = max(1, room - response)
    if positions is not None and prompt + response > positions:
        raise UserError(
            f"max_prompt_length={prompt} and max_response_length={response} together exceed the "
            f"model's {positions} positions"
        )
    return prompt, response
