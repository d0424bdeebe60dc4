"""Judges the policy on held-out tasks during a run, and keeps episodes for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rllm_agents import Episode, SamplingParams
from rllm_agents.evaluation import EvaluationResult, evaluate_tasks, write_episodes
from rllm_learn.assembly import Parts
from rllm_learn.config import TrainerConfig
from rllm_learn.tracking import MetricsWriter


class Evaluator:
    """Plays the same held-out tasks with the newest weights, sampled and greedy."""

    def __init__(self, config: TrainerConfig, path: Path, parts: Parts, writer: MetricsWriter):
        """Take the run's parts; `path` is its directory."""
        self._config = config
        self._episodes = path / "episodes"
        self._episodes.mkdir(exist_ok=True)
        self._parts = parts
        self._writer = writer

    @property
    def has_evaluated(self) -> bool:
        """Whether the run has an evaluation already, perhaps from before it was resumed."""
        return any("eval/pass_at_1" in row for row in self._writer.rows)

    def evaluate(self, step: int) -> str:
        """Evaluate, write metrics and episodes, and return a line for the display."""
        sampled = self._play(self._config.rollout.temperature, self._config.eval.samples_per_task)
        write_episodes(self._episodes / f"eval-{step:06d}.jsonl", sampled.episodes)
        metrics = _metrics(sampled, "")
        line = f"step {step}: held-out pass@1 {sampled.pass_at_1:.3f}"
        best = self._config.eval.samples_per_task
        if best > 1:
            line += f", pass@{best} {metrics.get(f'eval/pass_at_{best}', float('nan')):.3f}"
        if self._config.eval.greedy:
            greedy = self._play(0.0, 1)
            write_episodes(self._episodes / f"eval-greedy-{step:06d}.jsonl", greedy.episodes)
            metrics |= _metrics(greedy, "greedy_")
            line += f" sampled, {greedy.pass_at_1:.3f} greedy"
        self._writer.write(step, metrics)
        failed = int(metrics["eval/failed_episodes"])
        return f"{line} ({sampled.num_tasks} tasks{f', {failed} failed' if failed else ''})"

    def write_group(self, step: int, episodes: Sequence[Episode]) -> None:
        """Keep the first training episodes of a step: one task, played several times."""
        first = [e for e in episodes if e.task == episodes[0].task]
        write_episodes(self._episodes / "train.jsonl", first, append=True)

    def summary(self) -> dict[str, Any]:
        """Return the first and the last evaluation of the whole run."""
        rows = [row for row in self._writer.rows if "eval/pass_at_1" in row]
        summary: dict[str, Any] = {
            "env": self._config.env.id,
            "eval_tasks": int(rows[-1]["eval/tasks"]),
        }
        best = self._config.eval.samples_per_task
        for name in dict.fromkeys(("pass_at_1", f"pass_at_{best}", "greedy_pass_at_1")):
            if f"eval/{name}" in rows[0] and f"eval/{name}" in rows[-1]:
                summary[f"{name}_before"] = rows[0][f"eval/{name}"]
                summary[f"{name}_after"] = rows[-1][f"eval/{name}"]
        return summary

    def _play(self, temperature: float, samples_per_task: int) -> EvaluationResult:
        # The seed is the same at every step, so that evaluations differ by the weights alone.
        return self._parts.runner.run(
            evaluate_tasks(
                self._parts.eval_engine,
                self._parts.eval_tasks,
                samples_per_task=samples_per_task,
                sampling=SamplingParams(temperature=temperature),
                seed=self._config.seed,
            )
        )


def _metrics(result: EvaluationResult, prefix: str) -> dict[str, float]:
    estimates = result.pass_at_k.estimates if result.pass_at_k is not None else {}
    return {
        f"eval/{prefix}pass_at_1": result.pass_at_1,
        **{f"eval/{prefix}pass_at_{k}": estimate.value for k, estimate in estimates.items()},
        f"eval/{prefix}reward": result.mean_reward or 0.0,
        f"eval/{prefix}failed_episodes": float(result.num_failed),
        f"eval/{prefix}response_tokens": result.mean_response_tokens,
        f"eval/{prefix}turns": result.mean_turns,
        f"eval/{prefix}tasks": float(result.num_tasks),
    }
