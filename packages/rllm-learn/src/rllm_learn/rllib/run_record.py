"""What an algorithm of RLlib leaves for `rllm view` and `rllm report`: a run directory."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from rllm_agents.evaluation import EvaluationResult
from rllm_agents.renderer import ChatTokenizer
from rllm_learn import run_dir
from rllm_learn.config import TrainerConfig
from rllm_learn.episode_recorder import EpisodeRecorder
from rllm_learn.errors import ConfigError
from rllm_learn.evaluator import evaluation_metrics, evaluation_summary, opponent_scores
from rllm_learn.step import Progress, StepReport
from rllm_learn.tracking import MetricsWriter


class RunRecord:
    """Writes settings, metrics and episodes as `AgentTrainer` does. Owned by `LLMAlgorithm`.

    The directory is taken when the first step or evaluation begins: only then it is known whether
    the algorithm goes on from a checkpoint. Where it does, what was written of later steps is
    dropped.

    Args:
        path: The run directory.
        config: The settings as `rllm train` has them.
        tokenizer: Says what each token reads as.
        num_episodes: Training episodes of each step that are kept.
    """

    def __init__(
        self, path: Path, config: TrainerConfig, tokenizer: ChatTokenizer, num_episodes: int
    ) -> None:
        self._path = path
        self._config = config
        self._tokenizer = tokenizer
        self._num_episodes = num_episodes
        self._held = ExitStack()
        self._files: tuple[MetricsWriter, EpisodeRecorder] | None = None

    def open(self, progress: Progress) -> None:
        """Take the directory, unless it is taken already.

        Raises:
            ConfigError: It holds another run, is in use, or cannot be written.
        """
        if self._files is not None:
            return
        has_run = (self._path / run_dir.CONFIG).exists()
        if has_run and progress.step == 0:
            raise ConfigError(
                f"run_dir {str(self._path)!r} holds a run already: go on from its checkpoint "
                "with restore_from_path, or choose another run_dir"
            )
        self._held.enter_context(run_dir.locked(self._path))
        if not has_run:
            run_dir.start(self._path, self._config)
        writer = MetricsWriter(self._path, resume_step=progress.step)
        self._held.callback(writer.close)
        recorder = EpisodeRecorder(
            self._path,
            self._tokenizer,
            num_episodes=self._num_episodes,
            resume_step=progress.step,
        )
        self._files = writer, recorder

    def step(self, step: int, report: StepReport) -> None:
        """Keep a step's figures and its first episodes.

        Args:
            step: Its number, from 1.
            report: As `train_step` returns it.
        """
        writer, recorder = self._open_files()
        writer.write(step, report.metrics)
        recorder.write_training(step, report.episodes, report.sequences)

    def evaluation(
        self, step: int, results: dict[str, EvaluationResult], *, began: float, seconds: float
    ) -> None:
        """Keep an evaluation.

        Args:
            step: Training steps before it.
            results: By prefix of their figures: "" sampled, "greedy_" greedy.
            began: Seconds since 1970.
            seconds: How long it took.
        """
        writer, recorder = self._open_files()
        metrics: dict[str, float] = {}
        for prefix, result in results.items():
            metrics |= evaluation_metrics(result, prefix)
            kind = "eval" if prefix == "" else f"eval-{prefix.rstrip('_')}"
            recorder.write_evaluation(kind, step, result.episodes)
        scores = opponent_scores(results[""])
        metrics |= {f"eval/score/{name}": value for name, value in scores.items()}
        metrics |= {"time/eval_began": began, "time/eval_seconds": seconds}
        writer.write(step, metrics)

    def close(self, progress: Progress) -> None:
        """Write what it came to, and let the directory go; it may be opened again."""
        if self._files is not None:
            writer, _ = self._files
            summary = {
                **evaluation_summary(writer.rows, self._config),
                "steps": progress.step,
                "weights_versions": progress.weights_version,
                "seed": self._config.seed,
                "run_dir": str(self._path),
            }
            run_dir.write_json(self._path / "summary.json", summary)
        self._files = None
        self._held.close()

    def _open_files(self) -> tuple[MetricsWriter, EpisodeRecorder]:
        assert self._files is not None  # the algorithm opens it before it plays
        return self._files
