"""Judges the policy on held-out tasks during a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from time import perf_counter, time
from typing import Any

from rllm_agents import SamplingParams
from rllm_agents.evaluation import EvaluationResult, evaluate_tasks, match_score
from rllm_learn.assembly import Parts
from rllm_learn.config import TrainerConfig
from rllm_learn.episode_recorder import EpisodeRecorder
from rllm_learn.tracking import MetricsWriter


class Evaluator:
    """Plays the same held-out tasks with the newest weights, sampled and greedy."""

    def __init__(
        self,
        config: TrainerConfig,
        parts: Parts,
        writer: MetricsWriter,
        recorder: EpisodeRecorder,
    ):
        """Take the run's parts, and where figures and episodes go."""
        self._config = config
        self._parts = parts
        self._writer = writer
        self._recorder = recorder

    def has_evaluated(self, step: int) -> bool:
        """Whether the run has an evaluation of a step, perhaps from before it was resumed."""
        rows = self._writer.rows
        return any(row["step"] == step and "eval/pass_at_1" in row for row in rows)

    def evaluate(self, step: int) -> str:
        """Evaluate, write metrics and episodes, and return a line for the display."""
        began, started = time(), perf_counter()
        sampled = self._play(self._config.rollout.temperature, self._config.eval.samples_per_task)
        self._recorder.write_evaluation("eval", step, sampled.episodes)
        scores = opponent_scores(sampled)
        metrics = evaluation_metrics(sampled, "")
        metrics |= {f"eval/score/{name}": value for name, value in scores.items()}
        line = f"step {step}: held-out pass@1 {sampled.pass_at_1:.3f}"
        best = self._config.eval.samples_per_task
        if best > 1:
            line += f", pass@{best} {metrics.get(f'eval/pass_at_{best}', float('nan')):.3f}"
        if self._config.eval.greedy:
            greedy = self._play(0.0, 1)
            self._recorder.write_evaluation("eval-greedy", step, greedy.episodes)
            metrics |= evaluation_metrics(greedy, "greedy_")
            line += f" sampled, {greedy.pass_at_1:.3f} greedy"
        metrics |= {"time/eval_began": began, "time/eval_seconds": perf_counter() - started}
        self._writer.write(step, metrics)
        failed = int(metrics["eval/failed_episodes"])
        for name, value in scores.items():
            if "/" not in name:
                line += f", score {value:.3f} against {name}"
        return f"{line} ({sampled.num_tasks} tasks{f', {failed} failed' if failed else ''})"

    def summary(self) -> dict[str, Any]:
        """Return the first and the last evaluation of the whole run."""
        return evaluation_summary(self._writer.rows, self._config)

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


def evaluation_summary(
    rows: Sequence[Mapping[str, float]], config: TrainerConfig
) -> dict[str, Any]:
    """Return the first and the last evaluation of a run.

    Args:
        rows: As `MetricsWriter.rows`; without an evaluation there are no figures.
        config: The run's settings.
    """
    rows = [row for row in rows if "eval/pass_at_1" in row]
    summary: dict[str, Any] = {"env": config.env.id}
    if rows:
        summary["eval_tasks"] = int(rows[-1]["eval/tasks"])
    best = config.eval.samples_per_task
    for name in dict.fromkeys(("pass_at_1", f"pass_at_{best}", "greedy_pass_at_1")):
        if rows and f"eval/{name}" in rows[0] and f"eval/{name}" in rows[-1]:
            summary[f"{name}_before"] = rows[0][f"eval/{name}"]
            summary[f"{name}_after"] = rows[-1][f"eval/{name}"]
    return summary


def opponent_scores(result: EvaluationResult) -> dict[str, float]:
    """Return by opponent, and by opponent and seat, the mean score of matches."""
    outcomes: dict[str, list[float]] = defaultdict(list)
    for episode in result.episodes:
        if "opponent" in episode.info and not episode.failed:
            # An adapter's directory is a name of one part here.
            opponent = episode.info["opponent"].strip("/").replace("/", ".")
            score = match_score(episode, episode.info["seat"])
            outcomes[opponent].append(score)
            outcomes[f"{opponent}/{episode.info['seat']}"].append(score)
    return {name: sum(own) / len(own) for name, own in outcomes.items()}


def evaluation_metrics(result: EvaluationResult, prefix: str) -> dict[str, float]:
    """Return an evaluation's figures for `metrics.jsonl`.

    Args:
        result: What was played.
        prefix: Before each name: "" sampled, "greedy_" greedy.
    """
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
