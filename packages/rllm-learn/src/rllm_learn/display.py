"""What a person watching a run sees: progress, the newest figures, where the time goes.

On a terminal a view stays at the bottom and is drawn again with each step; elsewhere every tenth
part of the run prints a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

LINES_WITHOUT_TERMINAL = 10
"""How many step lines a run prints where there is no terminal to redraw."""
TRAINING_FIGURES = {
    "reward": "train/reward",
    "turns": "train/turns",
    "tokens": "train/response_tokens",
    "held-out pass@1": "eval/pass_at_1",
    "greedy pass@1": "eval/greedy_pass_at_1",
    "entropy": "learner/entropy",
    "KL": "learner/kl",
    "clipped": "learner/clip_fraction",
    "gap to sampler": "learner/sampler_gap",
    "tokens/s": "time/sampled_tokens_per_second",
}
"""What a training run shows: label -> metric. A metric that the run does not have has no row."""
_FIGURES_OF_A_LINE = 3
_HISTORY = 32
"""Values in the little picture of a figure."""
_BLOCKS = "▁▂▃▄▅▆▇█"
_PHASES = {
    "sampling": ("time/sample_seconds", "cyan"),
    "scoring": ("time/score_seconds", "magenta"),
    "learning": ("time/learn_seconds", "green"),
    "sync": ("time/sync_seconds", "yellow"),
    "other": (None, "bright_black"),
}
_SPLIT_WIDTH = 32


class Display:
    """Shows a run while it goes on."""

    def __init__(
        self,
        num_steps: int,
        *,
        first_step: int = 0,
        unit: str = "step",
        figures: Mapping[str, str] | None = None,
        console: Console | None = None,
    ):
        """Prepare a display.

        Args:
            num_steps: Steps of the whole run.
            first_step: Steps that are complete already.
            unit: What one step is called.
            figures: Label -> metric, of which the first three stand in printed lines; None is
                `TRAINING_FIGURES`.
            console: Where it goes; None is standard output.
        """
        self._console = console or Console()
        self._num_steps = num_steps
        self._unit = unit
        self._figures = TRAINING_FIGURES if figures is None else figures
        self._progress = Progress(
            TextColumn(f"{unit}"),
            MofNCompleteColumn(),
            BarColumn(bar_width=_SPLIT_WIDTH),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        self._task = self._progress.add_task("run", total=num_steps, completed=first_step)
        self._live = Live(self._progress, console=self._console, transient=True)

    def __enter__(self) -> Display:
        """Start to draw."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing and leave the lines."""
        self._live.stop()

    def line(self, text: str) -> None:
        """Print a line above the view."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def step(self, step: int, rows: Sequence[Mapping[str, Any]]) -> None:
        """Show that a step is complete.

        Args:
            step: Steps complete, from 1.
            rows: Of the run so far, as `MetricsWriter.rows`.
        """
        self._progress.update(self._task, completed=step)
        if self._console.is_terminal:
            self._live.update(Group(self._progress, *figures_view(rows, self._figures)))
        elif step % max(self._num_steps // LINES_WITHOUT_TERMINAL, 1) == 0:
            labels = list(self._figures)[:_FIGURES_OF_A_LINE]
            newest = {label: _series(rows, self._figures[label])[-1:] for label in labels}
            text = "  ".join(f"{label} {value[0]:.3g}" for label, value in newest.items() if value)
            self.line(f"{self._unit} {step}/{self._num_steps}  {text}")


def figures_view(rows: Sequence[Mapping[str, Any]], figures: Mapping[str, str]) -> list[Any]:
    """Return what is drawn under the progress bar.

    Args:
        rows: Of the run so far.
        figures: Label -> metric.

    Returns:
        A table of the figures that the rows have, each with its newest value and a picture of its
        last ones, and the time of the newest step in parts, where it was measured.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bright_black")
    table.add_column(justify="right")
    table.add_column(no_wrap=True)
    for label, name in figures.items():
        values = _series(rows, name)
        if values:
            table.add_row(label, f"{values[-1]:.4g}", sparkline(values[-_HISTORY:]))
    split = _time_split(rows)
    return [table] if split is None else [table, split]


def sparkline(values: Sequence[float]) -> str:
    """Return a picture of values, a character each, from the lowest of them to the highest."""
    low, high = min(values), max(values)
    if high == low:
        return _BLOCKS[0] * len(values)
    top = len(_BLOCKS) - 1
    return "".join(_BLOCKS[round((value - low) / (high - low) * top)] for value in values)


def _series(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [row[name] for row in rows if row.get(name) is not None]


def _time_split(rows: Sequence[Mapping[str, Any]]) -> Text | None:
    """Return a bar of the newest step's time, in proportion, and the shares in words."""
    timed = next((row for row in reversed(rows) if row.get("time/step_seconds")), None)
    if timed is None:
        return None
    total = timed["time/step_seconds"]
    shares = {label: timed.get(key, 0.0) / total for label, (key, _) in _PHASES.items() if key}
    shares["other"] = max(0.0, 1.0 - sum(shares.values()))
    bar, words, drawn, reached = Text(f"{total:.1f} s a step "), Text(), 0, 0.0
    for label, share in shares.items():
        reached += share
        until = round(reached * _SPLIT_WIDTH)
        bar.append("█" * (until - drawn), style=_PHASES[label][1])
        drawn = max(drawn, until)
        words.append(f"  {label} {share:.0%}", style=_PHASES[label][1])
    return bar + words
