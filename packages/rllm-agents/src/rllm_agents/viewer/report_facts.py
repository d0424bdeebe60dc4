"""What a report says of a run: figures, how episodes ended, some episodes to read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rllm_agents.viewer.episode_index import NO_STEP, EpisodeIndex
from rllm_agents.viewer.episode_view import episode_view
from rllm_agents.viewer.metrics_file import MetricsFile
from rllm_agents.viewer.run_files import RunFiles

_WHOLE_RUN = 3600.0
_MAX_EXAMPLE_BYTES = 2**22


@dataclass(frozen=True, slots=True)
class Ending:
    """How often episodes of one kind ended in one way."""

    kind: str
    """``train``, ``eval`` and so on."""
    step: int | None
    """The last step that has such episodes; None where episodes have no step."""
    termination: str
    count: int
    mean_reward: float | None
    """None where none of them has a reward."""


@dataclass(frozen=True, slots=True)
class Example:
    """One episode to read."""

    outcome: str
    """``solved``, ``unsolved`` or ``failed``."""
    row: dict[str, Any]
    """As `EpisodeIndex.row` says."""
    messages: list[dict[str, Any]]
    """As `episode_view` says, of all trajectories."""
    error: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a report says. Made by `gather`, read by the pages and the plots."""

    name: str
    figures: list[tuple[str, Any]]
    """Names and values of the run's summary."""
    metrics: list[dict[str, Any]]
    """Rows of `metrics.jsonl`."""
    endings: list[Ending]
    rewards: np.ndarray
    """Of the newest episodes of `rewards_of`, without those that failed."""
    rewards_of: str
    """Their kind, and step; "" where there are none."""
    examples: list[Example]
    settings: str


def gather(path: Path) -> Facts:
    """Read a run.

    Args:
        path: A run directory, or a JSONL file of episodes.

    Raises:
        UserError: There is no run at this place.
    """
    files = RunFiles(path)
    index = EpisodeIndex(files)
    while index.advance(_WHOLE_RUN):
        pass
    metrics = MetricsFile(files.metrics)
    metrics.read_on()
    newest = dict(_newest(index))
    chosen = next((k for k in ("eval", "episodes", *newest) if k in newest), "")
    numbers = newest.get(chosen, np.zeros(0, np.int64))
    rewards = index.columns().reward[numbers]
    return Facts(
        name=files.name,
        figures=_figures(files.summary()),
        metrics=metrics.rows,
        endings=[ending for kind in newest for ending in _endings(index, kind, newest[kind])],
        rewards=rewards[~np.isnan(rewards)],
        rewards_of=_named(index, chosen, numbers),
        examples=list(_examples(index, numbers)),
        settings=files.settings_text(),
    )


def _newest(index: EpisodeIndex) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each kind and the numbers of its episodes of the last step."""
    columns = index.columns()
    for number, kind in enumerate(index.kinds.texts):
        of_kind = columns.kind == number
        last = columns.step[of_kind].max()
        yield kind, np.flatnonzero(of_kind & (columns.step == last))


def _endings(index: EpisodeIndex, kind: str, numbers: np.ndarray) -> Iterator[Ending]:
    columns = index.columns()
    terminations, rewards = columns.termination[numbers], columns.reward[numbers]
    step = int(columns.step[numbers[0]])
    values, counts = np.unique(terminations, return_counts=True)
    for value, count in sorted(zip(values, counts, strict=True), key=lambda pair: -pair[1]):
        known = rewards[(terminations == value) & ~np.isnan(rewards)]
        yield Ending(
            kind,
            None if step == NO_STEP else step,
            index.terminations.texts[value],
            int(count),
            float(known.mean()) if len(known) else None,
        )


def _examples(index: EpisodeIndex, numbers: np.ndarray) -> Iterator[Example]:
    """Yield the first solved, the first unsolved and the first failed episode."""
    columns = index.columns()
    failed = np.isnan(columns.reward[numbers])
    solved = columns.is_correct[numbers] & ~failed
    for outcome, mask in (("solved", solved), ("unsolved", ~solved & ~failed), ("failed", failed)):
        for number in numbers[mask].tolist():
            if index.num_bytes(number) > _MAX_EXAMPLE_BYTES:
                continue
            view = episode_view(index.record(number) or {})
            messages = [m for part in view["trajectories"] for m in part["messages"]]
            yield Example(outcome, index.row(number), messages, view["error"])
            break


def _figures(summary: dict[str, Any]) -> list[tuple[str, Any]]:
    figures: list[tuple[str, Any]] = []
    for name, value in summary.items():
        if name == "pass_at_k" and isinstance(value, dict):
            for k, estimate in value.items():
                if isinstance(estimate, dict) and {"value", "low", "high"} <= estimate.keys():
                    bounds = f"{estimate['low']:.3f} to {estimate['high']:.3f}"
                    figures.append((f"pass@{k}", f"{estimate['value']:.3f} (95 %: {bounds})"))
        elif isinstance(value, str | int | float):
            figures.append((name, value))
    return figures


def _named(index: EpisodeIndex, kind: str, numbers: np.ndarray) -> str:
    if not len(numbers):
        return ""
    step = int(index.columns().step[numbers[0]])
    return kind if step == NO_STEP else f"{kind} at step {step}"
