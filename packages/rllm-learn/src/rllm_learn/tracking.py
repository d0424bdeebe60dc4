"""Where a run's numbers go: a JSONL file, trackers, a picture of the curve."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rllm_learn.run_dir import write_text
from rllm_learn.trackers import Tracker


class MetricsWriter:
    """Appends each step's metrics to `metrics.jsonl` and hands them to trackers.

    Rows are flushed one by one, so that a killed run leaves all of its complete steps. When a run
    resumes at step n, rows after n, which will be made again, are dropped first. A tracker that
    fails is left out from then on; the run goes on without it.
    """

    def __init__(
        self,
        run_dir: Path,
        trackers: Mapping[str, Tracker] | None = None,
        *,
        resume_step: int = 0,
        warn: Callable[[str], None] = print,
    ):
        """Open the files of a run directory.

        Args:
            run_dir: Exists.
            trackers: By name; closed with the writer.
            resume_step: Steps that are complete; 0 for a new run.
            warn: Told in one line when a tracker fails.
        """
        self._path = run_dir / "metrics.jsonl"
        self.rows = [row for row in read_metrics(self._path) if row["step"] <= resume_step]
        """All rows of the run so far."""
        # Whole at every moment: a run that is killed while it resumes resumes again.
        write_text(self._path, "".join(json.dumps(row) + "\n" for row in self.rows))
        self._file = self._path.open("a", encoding="utf-8")
        self._trackers = dict(trackers or {})
        self._warn = warn

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add one row; numbers that are not finite are written as null."""
        finite = {k: v if math.isfinite(v) else None for k, v in metrics.items()}
        row = {"step": step, **finite}
        self.rows.append(row)
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, lambda t=tracker: t.log(step, metrics))

    def close(self, *, finished: bool = True) -> None:
        """Flush and close; may be called twice.

        Args:
            finished: Whether the run came to its end, which trackers are told.
        """
        with contextlib.suppress(OSError):  # a row that the disk refused; `write` has raised
            self._file.close()
        for name, tracker in list(self._trackers.items()):
            self._guarded(name, lambda t=tracker: t.close(finished=finished))
        self._trackers.clear()

    def _guarded(self, name: str, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:  # a server that is away must not cost the run
            self._trackers.pop(name, None)
            reason = next(iter(str(error).splitlines()), "")
            self._warn(
                f"{name} failed and gets no further metrics ({type(error).__name__}: {reason}); "
                f"{self._path.name} has all of them"
            )


def read_metrics(path: Path) -> list[dict]:
    """Return the complete rows of a metrics file; none when it is absent.

    A last line that was cut by a kill is left out.
    """
    rows = []
    if path.exists():
        for line in path.read_text(encoding="utf-8").split("\n"):
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
    return rows


def plot_curve(path: Path, rows: Sequence[Mapping[str, float]], *, title: str) -> None:
    """Draw held-out pass@1 and the training reward over the steps.

    Args:
        path: A PNG file.
        rows: As `MetricsWriter.rows`.
        title: Above the axes.
    """
    # The Figure object draws without a display and without pyplot's global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    curves = {
        "train/reward": ("training reward", {"color": "0.75", "linewidth": 1.0}),
        "eval/pass_at_1": ("held-out pass@1, sampled", {"color": "C0", "marker": "o"}),
        "eval/greedy_pass_at_1": ("held-out pass@1, greedy", {"color": "C1", "marker": "s"}),
    }
    for key, (label, style) in curves.items():
        points = [(row["step"], row[key]) for row in rows if row.get(key) is not None]
        if points:
            axes.plot(*zip(*points, strict=True), label=label, **style)
    axes.set_xlabel("training step")
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=110)
