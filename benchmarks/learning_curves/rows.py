"""The rows of the matrix: which runs there are, and how one becomes a JSON file."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bases import base_of

from rllm_agents import SamplingParams
from rllm_agents.evaluation import evaluate_tasks
from rllm_learn import AgentTrainer
from rllm_learn.assembly import assemble
from rllm_learn.config import SFTConfig, TrainerConfig, load_config, to_settings
from rllm_learn.evaluator import opponent_scores
from rllm_learn.players import GivenPlayers, choose_players
from rllm_learn.sft import train_supervised
from rllm_learn.tracking import read_metrics

RESULTS = Path(__file__).parent.parent / "results" / "learning_curves"
ROWS = RESULTS / "rows"
ALGORITHMS = ("grpo", "remax", "ppo")
CONTROLS = ("sft", "wrong_sign")
SEEDS = range(5)
CONTROL_SEEDS = range(3)


@dataclass(frozen=True)
class Task:
    """What is learned in a row."""

    title: str
    settings: tuple[str, ...]
    """Of `rllm train`, but for algorithm, model, seed and directory."""
    threshold: float
    """The score up to which CPU seconds and tokens are counted."""
    steps: int
    score: str = "eval/pass_at_1"
    """The held-out figure; for a game the mean over its named opponents."""
    ppo: tuple[str, ...] = ()
    """Further settings of PPO."""


SHARED = (
    "torch_threads=1",
    "tracking.to=[]",
    "tracking.episodes=0",
    "checkpoint.every_steps=1000",
    "eval.greedy=false",
    "eval.every_steps=4",
    "learner.warmup_updates=2",
)
TASKS = {
    "arithmetic": Task(
        "sums and differences of three digits, one turn",
        ("env.id=rllm/Arithmetic-v0", "eval.num_tasks=192", "rollout.max_response_length=96"),
        threshold=0.5,
        steps=12,
    ),
    "calculator": Task(
        "products with a calculator to call, two turns",
        ("env.id=rllm/Calculator-v0", "eval.num_tasks=192", "rollout.max_response_length=96"),
        threshold=0.6,
        steps=12,
    ),
    "guess": Task(
        "a number out of 15 in four guesses, up to four turns",
        (
            "env.id=rllm/GuessNumber-v0",
            "env.kwargs={width: 15, max_low: 50, max_turns: 4}",
            "model.lora_rank=0",
            "eval.num_tasks=80",
            "eval.samples_per_task=3",
            "rollout.max_response_length=192",
            "learner.learning_rate=1e-3",
        ),
        ppo=("algorithm.critic_learning_rate=3e-3",),
        threshold=0.6,
        steps=16,
    ),
    "dilemma": Task(
        "self-play of one round of the prisoner's dilemma",
        (
            "env.id=rllm/PrisonersDilemma-v0",
            "env.kwargs.num_rounds=1",
            "players={player_0: {}, player_1: {}}",
            "eval.opponents=[random,expert]",
            "eval.num_tasks=256",
            "model.lora_rank=0",
            "tasks_per_step=8",
            "learner.learning_rate=1e-3",
            "rollout.max_response_length=32",
        ),
        ppo=("algorithm.critic_learning_rate=3e-3", "algorithm.value_clip=null"),
        threshold=0.8,
        steps=12,
        score="eval/score",
    ),
}


@dataclass(frozen=True, order=True)
class Row:
    """One training run."""

    task: str
    algorithm: str
    control: str
    """"" for none. The sft control has no algorithm: "sft" stands in its place."""
    seed: int

    @property
    def name(self) -> str:
        """Of its file."""
        parts = [self.task, self.algorithm, self.control if self.control == "wrong_sign" else ""]
        return "-".join([*filter(None, parts), f"seed{self.seed}"])

    @property
    def path(self) -> Path:
        """Its file."""
        return ROWS / f"{self.name}.json"

    @property
    def command(self) -> str:
        """What makes it."""
        algorithm = "" if self.control == "sft" else f" --algorithm {self.algorithm}"
        control = f" --control {self.control}" if self.control else ""
        script = "python benchmarks/learning_curves/matrix.py run"
        return f"{script}{algorithm} --task {self.task} --seed {self.seed}{control}"


def all_rows() -> list[Row]:
    """Return every row, so ordered that few seeds of everything come before many of anything."""
    rounds: list[list[Row]] = [[], [], []]
    for seed in SEEDS:
        late = 0 if seed < 3 else 2
        rounds[late] += [Row(t, a, "", seed) for a in ALGORITHMS for t in TASKS]
        if seed in CONTROL_SEEDS:
            late = 0 if seed < 1 else 1
            rounds[late] += [Row(t, "sft", "sft", seed) for t in TASKS]
            rounds[late] += [Row(t, a, "wrong_sign", seed) for a in ALGORITHMS for t in TASKS]
    return [row for rows in rounds for row in rows]


def run_row(row: Row) -> None:
    """Make one row and write it; a run that was cut short starts anew."""
    model, data = base_of(row.task)
    run_dir = Path("runs") / "matrix" / row.name
    shutil.rmtree(run_dir, ignore_errors=True)
    started, cpu_started = perf_counter(), process_time()
    make = _imitate if row.control == "sft" else _train
    curve, settings = make(row, model, data, run_dir)
    record = {
        "algorithm": row.algorithm,
        "task": row.task,
        "control": row.control,
        "seed": row.seed,
        "pass_at_1_before": curve[0]["score"],
        "pass_at_1_after": curve[-1]["score"],
        "tokens": curve[-1]["tokens"],
        "seconds": round(perf_counter() - started, 1),
        "cpu_seconds": round(process_time() - cpu_started, 1),
        "steps": curve[-1]["step"],
        "curve": curve,
        "command": row.command,
        "settings": settings,
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, {os.cpu_count()} cores",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("rllm-learn", "torch", "transformers")},
        },
    }
    ROWS.mkdir(parents=True, exist_ok=True)
    partial = row.path.with_suffix(".partial")
    partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, row.path)
    shutil.rmtree(run_dir)


def _train(row: Row, model: str, data: str, run_dir: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Do what `rllm train` does, and return the held-out curve and the settings."""
    task = TASKS[row.task]
    settings = [f"model.path={model}", f"num_steps={task.steps}", *SHARED, *task.settings]
    if row.algorithm == "ppo":
        settings += task.ppo
    if row.control == "wrong_sign":
        settings.append("algorithm.loss=wrong_sign:wrong_sign")
    name = f"{row.algorithm}_trainer"
    config = load_config(name, [f"seed={row.seed}", f"run_dir={run_dir}", *settings])
    AgentTrainer(config=to_settings(config, TrainerConfig, config_name=name)).train()
    return held_out_curve(read_metrics(run_dir / "metrics.jsonl"), task.score), settings


def held_out_curve(rows: list[dict[str, Any]], score: str) -> list[dict[str, Any]]:
    """Return each evaluation with what was sampled and computed in the steps before it.

    Args:
        rows: Of `metrics.jsonl`, in their order.
        score: A figure, or the beginning of the figures whose mean is taken.
    """
    curve: list[dict[str, Any]] = []
    spent = {"tokens": 0.0, "cpu_seconds": 0.0, "seconds": 0.0}
    for row in rows:
        if "time/step_seconds" in row:
            rate, seconds = row["time/sampled_tokens_per_second"], row["time/sample_seconds"]
            spent["tokens"] += rate * seconds
            spent["cpu_seconds"] += row["time/step_cpu_seconds"]
            spent["seconds"] += row["time/step_seconds"]
        values = [
            value
            for name, value in row.items()
            if name == score or (name.startswith(f"{score}/") and name.count("/") == 2)
        ]
        if values:
            curve.append(
                {
                    "step": row["step"],
                    "score": round(sum(values) / len(values), 4),
                    "tokens": round(spent["tokens"]),
                    "cpu_seconds": round(spent["cpu_seconds"], 2),
                    "seconds": round(spent["seconds"], 2),
                }
            )
    return curve


def _imitate(
    row: Row, model: str, data: str, run_dir: Path
) -> tuple[list[dict[str, Any]], list[str]]:
    """Imitate the teacher further, and judge the model before and after."""
    task = TASKS[row.task]
    given = [f"seed={row.seed}", f"model.path={model}", *SHARED, *task.settings]
    config = to_settings(
        load_config("grpo_trainer", given), TrainerConfig, config_name="grpo_trainer"
    )
    conversations = config.tasks_per_step * 8
    settings = [
        f"data={data}",
        f"model.path={model}",
        f"model.lora_rank={config.model.lora_rank}",
        f"num_updates={task.steps}",
        f"batch_sequences={conversations}",
        f"learner.learning_rate={1e-3 if config.model.lora_rank == 0 else 3e-3}",
        f"learner.warmup_updates={config.learner.warmup_updates}",
        "tracking.to=[]",
        "torch_threads=1",
    ]
    sft = load_config("sft", [f"seed={row.seed}", f"run_dir={run_dir}", *settings])
    before = _judged(config, model, task.score)
    started, cpu_started = perf_counter(), process_time()
    train_supervised(to_settings(sft, SFTConfig, config_name="sft"))
    spent = {
        "cpu_seconds": round(process_time() - cpu_started, 2),
        "seconds": round(perf_counter() - started, 2),
    }
    after = _judged(config, str(run_dir / "model"), task.score)
    return [
        {"step": 0, "score": before, "tokens": 0, "cpu_seconds": 0.0, "seconds": 0.0},
        {"step": task.steps, "score": after, "tokens": 0, **spent},
    ], settings


def _judged(config: TrainerConfig, model: str, score: str) -> float:
    """Return the held-out score of a model, on the tasks that a training run judges it on."""
    config = replace(config, model=replace(config.model, path=model, lora_rank=0))
    players = choose_players(config, GivenPlayers())
    with asyncio.Runner() as runner:
        parts = assemble(config, players, (None, None), runner)
        result = runner.run(
            evaluate_tasks(
                parts.eval_engine,
                parts.eval_tasks,
                samples_per_task=config.eval.samples_per_task,
                sampling=SamplingParams(temperature=config.rollout.temperature),
                seed=config.seed,
            )
        )
        parts.close()
    scores = {name: s for name, s in opponent_scores(result).items() if "/" not in name}
    value = sum(scores.values()) / len(scores) if scores else result.pass_at_1
    return round(value, 4)
