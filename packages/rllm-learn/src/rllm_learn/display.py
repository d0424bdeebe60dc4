"""What a person watching a run sees: progress, time left, the newest figures."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

LINES_WITHOUT_TERMINAL = 10
"""How many step lines a run prints where there is no terminal to redraw."""


class Display:
    """A progress bar that stays at the bottom, with lines above it.

    On a terminal every step moves the bar; elsewhere every tenth part of the run prints a line,
    so that a log stays short.
    """

    def __init__(self, num_steps: int, *, first_step: int = 0, unit: str = "step"):
        """Prepare a display.

        Args:
            num_steps: Steps of the whole run.
            first_step: Steps that are complete already.
            unit: What one step is called.
        """
        self._console = Console()
        self._num_steps = num_steps
        self._unit = unit
        self._progress = Progress(
            TextColumn(f"{unit}"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task(
            "run", total=num_steps, completed=first_step, figures=""
        )

    def __enter__(self) -> Display:
        """Start to draw."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop drawing and leave the lines."""
        self._progress.stop()

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        """Show that a step is complete.

        Args:
            step: Steps complete, from 1.
            figures: A few numbers by name.
        """
        text = "  ".join(f"{name} {value:.3g}" for name, value in figures.items())
        self._progress.update(self._task, completed=step, figures=text)
        every = max(self._num_steps // LINES_WITHOUT_TERMINAL, 1)
        if not self._console.is_terminal and step % every == 0:
            self.line(f"{self._unit} {step}/{self._num_steps}  {text}")
