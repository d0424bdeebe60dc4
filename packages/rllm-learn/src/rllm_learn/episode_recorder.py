"""Keeps episodes of a run for people to read: conversations, tokens, advantages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rllm_agents import Episode
from rllm_agents.evaluation import episode_record, write_records
from rllm_agents.renderer import ChatTokenizer
from rllm_learn.core.batch import TokenSequence


class EpisodeRecorder:
    """Writes `episodes/train.jsonl` and one file for each evaluation.

    Tokens take some forty bytes each, so they are kept of a bounded number of episodes a step.
    """

    def __init__(
        self,
        run_dir: Path,
        tokenizer: ChatTokenizer | None,
        *,
        num_episodes: int,
        resume_step: int = 0,
    ):
        """Make the directory; where a run resumes, drop what will be played again.

        Args:
            run_dir: Exists.
            tokenizer: Says what each token reads as; None leaves the texts of tokens out.
            num_episodes: Training episodes of each step that are kept, and episodes of each
                evaluation whose tokens are kept.
            resume_step: Steps that are complete; 0 for a new run.
        """
        self._directory = run_dir / "episodes"
        self._directory.mkdir(exist_ok=True)
        self._train = self._directory / "train.jsonl"
        self._tokenizer = tokenizer
        self._num_episodes = num_episodes
        if self._train.exists():
            _keep_steps(self._train, resume_step)

    def write_training(
        self, step: int, episodes: Sequence[Episode], sequences: Sequence[TokenSequence]
    ) -> None:
        """Keep the first training episodes of a step.

        Args:
            step: Number of the step, from 1.
            episodes: All of the step's, members of a group side by side.
            sequences: What the step learned from. A token record that is among them gets
                ``advantages``, one per id, and ``weight``; without them it was not learned from.
        """
        # A sequence and the record it was made from share one tuple of ids; equal ids may have
        # been sampled twice, with different rewards.
        learned = {id(s.sampled.token_ids): s for s in sequences}
        kept = episodes[: self._num_episodes]
        records = [self._record(episode, step, with_tokens=True) for episode in kept]
        for episode, record in zip(kept, records, strict=True):
            parts = record.get("trajectories", [record])
            for trajectory, part in zip(episode.trajectories, parts, strict=True):
                for tokens, written in zip(
                    trajectory.token_records, part["token_records"], strict=True
                ):
                    _add_credit(written, learned.get(id(tokens.token_ids)))
        write_records(self._train, records, append=True)

    def write_evaluation(self, kind: str, step: int, episodes: Sequence[Episode]) -> None:
        """Keep all episodes of an evaluation, the first of them with their tokens.

        Args:
            kind: First part of the file's name: ``eval`` or ``eval-greedy``.
            step: Training steps before it.
            episodes: In the order of the tasks.
        """
        records = (
            self._record(episode, step, with_tokens=index < self._num_episodes)
            for index, episode in enumerate(episodes)
        )
        write_records(self._directory / f"{kind}-{step:06d}.jsonl", records)

    def _record(self, episode: Episode, step: int, *, with_tokens: bool) -> dict[str, Any]:
        return episode_record(
            episode, with_tokens=with_tokens, tokenizer=self._tokenizer, step=step
        )


def _add_credit(record: dict[str, Any], sequence: TokenSequence | None) -> None:
    if sequence is not None:
        record["advantages"] = [float(a) for a in sequence.advantages]
        record["weight"] = float(sequence.weight)


def _keep_steps(path: Path, last: int) -> None:
    """Drop the lines of later steps, and one that was cut by a kill."""
    kept = path.with_name(f".{path.name}.writing")
    with path.open("rb") as lines, kept.open("wb") as file:
        file.writelines(line for line in lines if _step_of(line) <= last)
    kept.replace(path)


def _step_of(line: bytes) -> float:
    try:
        record = json.loads(line)
    except ValueError:
        return float("inf")
    step = record.get("step") if isinstance(record, Mapping) else None
    return step if isinstance(step, int) else float("inf")
