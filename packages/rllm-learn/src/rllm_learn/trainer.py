"""AgentTrainer: alternate between sampling and learning, and leave a run directory behind."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from rllm_agents import BaseAgent, ChatAgent, Workflow
from rllm_agents.loop_thread import LoopThread
from rllm_agents.player import EpisodePlayer
from rllm_envs import Dataset, GymEnv
from rllm_learn import run_dir
from rllm_learn.assembly import Parts, assemble, choose_sampler, is_asynchronous
from rllm_learn.config import TrainerConfig, to_settings
from rllm_learn.core.checkpoint import (
    CheckpointError,
    flush_to_disk,
    in_one_line,
    latest_checkpoint,
    save_checkpoint,
)
from rllm_learn.core.generators import generator_states, set_generator_states
from rllm_learn.display import Display
from rllm_learn.episode_recorder import EpisodeRecorder
from rllm_learn.errors import TrainingError
from rllm_learn.evaluator import Evaluator
from rllm_learn.interrupts import interrupt_deferred
from rllm_learn.players import GivenPlayers, choose_players, split_players
from rllm_learn.resources import Stopwatch
from rllm_learn.settings import deterministic_torch
from rllm_learn.step import Progress, StepReport, train_step
from rllm_learn.trackers import open_trackers, require_trackers
from rllm_learn.tracking import MetricsWriter, plot_curve

MAX_NON_FINITE_STEPS = 3
"""Updates in a row without a finite gradient after which the run stops."""
_DISK_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


class AgentTrainer:
    """Trains an agent's policy on an environment by reinforcement learning.

    Example:
        ```python
        trainer = AgentTrainer(
            agent_class=ChatAgent,
            env_class=GymEnv,
            config={"num_steps": 40},
            env_args={"env_id": "rllm/Arithmetic-v0"},
        )
        summary = trainer.train()
        ```
    """

    def __init__(  # noqa: PLR0913  (the keyword arguments that users of the field know)
        self,
        agent_class: type[BaseAgent] | EpisodePlayer = ChatAgent,
        env_class: type | None = GymEnv,
        config: Any = None,
        train_dataset: Dataset | Sequence[dict[str, Any]] | None = None,
        val_dataset: Dataset | Sequence[dict[str, Any]] | None = None,
        agent_args: Mapping[str, Any] | None = None,
        env_args: Mapping[str, Any] | None = None,
        *,
        workflow_class: Callable[..., Workflow] | None = None,
        workflow_args: Mapping[str, Any] | None = None,
        players: Mapping[str, Mapping[str, Any]] | None = None,
        resume: bool = False,
    ):
        """Check the settings; nothing is loaded before `train`.

        Args:
            agent_class: Made anew for each episode as `agent_class(**agent_args)`; or what plays
                episodes itself, such as `rllm_agents.gateway.AgentProgram`.
            env_class: Made anew for each episode as `env_class.from_dict({**task, **env_args})`.
                What plays itself gets `{**task, **env_args}` instead, and None needs data sets.
            config: A TrainerConfig, a DictConfig as `hydra.main` gives it, a mapping of what
                differs from `grpo_trainer`, or None.
            train_dataset: Tasks to train on; None draws them from `config.env`.
            val_dataset: Held-out tasks; None holds some of `train_dataset` out, or draws them
                from the environment's test split.
            agent_args: Arguments of every agent; None takes `config.agent`.
            env_args: Arguments of every environment; None takes `config.env`.
            workflow_class: Plays the tasks in place of an agent and an environment, called with a
                `rollout_engine` and `workflow_args`; it needs data sets. Each call is learned from
                as its role's, with that role's reward, compared with its role's others of the task.
            workflow_args: Its keyword arguments.
            players: By seat of a game or role of a workflow, the settings of `config.players`, and
                for seats also `agent_class` and `agent_args`.
            resume: Go on with the run in `config.run_dir`.

        Raises:
            ConfigError: A setting is unknown, out of range, or does not go with another.
        """
        self.config = to_settings(config, TrainerConfig, config_name="grpo_trainer")
        settings, agents = split_players(players)
        if settings:
            self.config = replace(self.config, players={**self.config.players, **settings})
        if workflow_class is not None:
            # What the run, its directory and its summary are called after.
            name = getattr(workflow_class, "__name__", type(workflow_class).__name__)
            self.config = replace(self.config, env=replace(self.config.env, id=name))
        given = GivenPlayers(
            agent_class, env_class, agent_args, env_args, workflow_class, workflow_args, agents
        )
        self._players = choose_players(self.config, given)
        self._datasets = train_dataset, val_dataset
        self._resume = resume

    def train(self) -> dict[str, Any]:
        """Run to the last step and return the summary that is also in `summary.json`.

        Everything is written to the run directory: `config.yaml`, `metrics.jsonl`, what trackers
        write, `curve.png`, `episodes/`, `checkpoints/`, the trained `adapter/` (or `model/`).

        Raises:
            ConfigError: A setting turns out wrong when its model, data or environment is opened.
            TrainingError: The run cannot go on.
            KeyboardInterrupt: After a checkpoint of the last complete step was written.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._train()
        # A notebook's cell runs inside a loop; the run gets a thread, and a loop, of its own.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(self._train).result()

    def _train(self) -> dict[str, Any]:
        config = self.config
        path = Path(config.run_dir or run_dir.default_run_dir(config.env.id.rpartition("/")[2]))
        if self._resume:
            run_dir.check_resumable(path, config)
        else:
            run_dir.check_unused(path)
        require_trackers(config.tracking)
        with ExitStack() as stack:
            stack.enter_context(deterministic_torch(config.deterministic))
            if is_asynchronous(config):
                runner = LoopThread("rllm-sampling")
                stack.callback(runner.close)
            else:
                runner = stack.enter_context(asyncio.Runner())
            parts = assemble(config, self._players, self._datasets, runner)
            stack.callback(parts.close)
            if isinstance(runner, LoopThread):
                stack.callback(runner.cancel_all)  # episodes end before their engine does
            # From here on something is written, so a mistake above leaves no directory behind.
            stack.enter_context(run_dir.locked(path))
            if not self._resume:
                run_dir.start(path, config)
            try:
                return _Run(config, path, parts, resume=self._resume).run()
            except OSError as error:
                if error.errno not in _DISK_ERRORS:
                    raise
                raise TrainingError(
                    f"{path} cannot be written to: {error}; {_how_to_go_on(path)}"
                ) from error


class _Run:
    """One run of the loop over assembled parts."""

    def __init__(self, config: TrainerConfig, path: Path, parts: Parts, *, resume: bool):
        self.config = config
        self.path = path
        self.parts = parts
        self.algorithm = parts.algorithm
        self.stopwatch = Stopwatch()
        self.progress = Progress()
        self.display = Display(config.num_steps)
        if resume:
            self._restore()
        self.sampler = choose_sampler(config, parts, self.progress)
        step = self.progress.step
        trackers = open_trackers(config.tracking, path, asdict(config), resume_step=step)
        self.writer = MetricsWriter(path, trackers, resume_step=step, warn=self.display.line)
        self.recorder = EpisodeRecorder(
            path, parts.tokenizer, num_episodes=config.tracking.episodes, resume_step=step
        )
        self.evaluator = Evaluator(config, parts, self.writer, self.recorder)

    def run(self) -> dict[str, Any]:
        """Sample, learn, publish, step after step; evaluate and save now and then."""
        config, parts = self.config, self.parts
        non_finite = 0
        with self.display:
            self.display.line(f"run directory: {self.path}")
            try:
                self._evaluate_if_due()
                while self.progress.step < config.num_steps:
                    report = train_step(
                        self.sampler,
                        parts.learner,
                        self.algorithm,
                        parts.tasks,
                        self.progress,
                        num_tasks=config.tasks_per_step,
                        record=self._report,
                    )
                    non_finite = self._count_non_finite(report, non_finite)
                    self._evaluate_if_due()
                    if self._is_due(config.checkpoint.every_steps):
                        self._save()
            except KeyboardInterrupt:
                self._save_after_interrupt()
                raise
            finally:
                self.writer.close(finished=self.progress.step >= config.num_steps)
        return self._finish()

    def _is_due(self, every_steps: int) -> bool:
        return self.progress.step % every_steps == 0 or self.progress.step == self.config.num_steps

    def _report(self, report: StepReport) -> None:
        self.writer.write(self.progress.step, report.metrics)
        self.recorder.write_training(self.progress.step, report.episodes, report.sequences)
        self.display.step(self.progress.step, self.writer.rows)
        if report.skipped is not None:
            self.display.line(f"step {self.progress.step}: {report.skipped}; no update")

    def _count_non_finite(self, report: StepReport, before: int) -> int:
        if report.metrics.get("learner/skipped_steps", 0.0) == 0.0:
            return 0
        if before + 1 >= MAX_NON_FINITE_STEPS:
            ids = [e.id for e in report.episodes[:8]]
            raise TrainingError(
                f"{before + 1} steps in a row had a gradient that is not finite; the weights are "
                f"those of before. Lower learner.learning_rate; the last episodes are {ids}"
            )
        return before + 1

    def _evaluate_if_due(self) -> None:
        """Evaluate unless it was done, as before an interrupt that came later in the same step."""
        step = self.progress.step
        if self._is_due(self.config.eval.every_steps) and not self.evaluator.has_evaluated(step):
            self.display.line(self.evaluator.evaluate(step))

    def _save(self) -> None:
        def write(directory: Path) -> None:
            # Into an open file: of a full disk torch itself says something else.
            for name, state in (
                ("learner.pt", self.parts.learner.state_dict()),
                ("generators.pt", generator_states()),
            ):
                with (directory / name).open("wb") as file:
                    torch.save(state, file)
            run_dir.write_json(directory / "state.json", asdict(self.progress))

        try:
            for name in ("metrics.jsonl", "episodes/train.jsonl"):
                if (self.path / name).exists():
                    flush_to_disk(self.path / name)
            save_checkpoint(
                self.path / "checkpoints",
                self.progress.step,
                write,
                keep=self.config.checkpoint.keep,
            )
        except CheckpointError as error:
            raise TrainingError(f"{error}; {_how_to_go_on(self.path)}") from error

    def _save_after_interrupt(self) -> None:
        """Save the steps that are complete; a second interrupt waits until that is done."""
        with interrupt_deferred():
            self._save()
            self.display.line(
                f"interrupted: {self.progress.step} of {self.config.num_steps} steps are saved; "
                f"go on with `rllm train --resume run_dir={self.path}`"
            )

    def _restore(self) -> None:
        checkpoint, rejected = latest_checkpoint(self.path / "checkpoints")
        for line in rejected:
            self.display.line(line)
        if checkpoint is None:
            self.display.line(f"no checkpoint in {self.path}: starting from step 0")
            return
        state = torch.load(checkpoint.path / "learner.pt", weights_only=True)
        self.parts.learner.load_state_dict(state)
        set_generator_states(torch.load(checkpoint.path / "generators.pt", weights_only=True))
        self.progress = Progress(**run_dir.read_json(checkpoint.path / "state.json"))
        self.parts.sampler.publish(
            self.parts.learner.export_weights(), self.progress.weights_version
        )
        self.display.line(f"resumed at step {self.progress.step}")

    def _finish(self) -> dict[str, Any]:
        try:
            saved = self.parts.save_policy(self.path)
        except (OSError, RuntimeError, SafetensorError) as error:
            raise TrainingError(
                f"the policy could not be written to {self.path}: {in_one_line(error)}; "
                f"{_how_to_go_on(self.path)}"
            ) from error
        plot_curve(
            self.path / "curve.png",
            self.writer.rows,
            title=f"{self.config.algorithm.title} on {self.config.env.id}",
        )
        summary = {
            **self.evaluator.summary(),
            "steps": self.progress.step,
            "weights_versions": self.progress.weights_version,
            "seed": self.config.seed,
            **self.stopwatch.elapsed(),
            "run_dir": str(self.path),
            "policy": str(saved),
        }
        run_dir.write_json(self.path / "summary.json", summary)
        return summary


def _how_to_go_on(path: Path) -> str:
    return f"make room, then go on from the last save with `rllm train --resume run_dir={path}`"
