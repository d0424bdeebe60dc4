"""Makes a row of the matrix: one training run, or one control, as a JSON file."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import shutil
from dataclasses import replace
from datetime import date
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from bases import base_of
from plan import ROWS, SHARED, TASKS, Row

from rllm_agents import SamplingParams
from rllm_agents.evaluation import evaluate_tasks
from rllm_learn import AgentTrainer
from rllm_learn.assembly import assemble
from rllm_learn.config import SFTConfig, TrainerConfig, load_config, to_settings
from rllm_learn.evaluator import opponent_scores
from rllm_learn.players import GivenPlayers, choose_players
from rllm_learn.sft import train_supervised
from rllm_learn.tracking import read_metrics


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


def _train(
    row: Row, model: str, data: str, run_dir: Path
) -> tuple[list[dict[str, Any]], list[str]]:
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
