"""docs/learning.md: the rows of the matrix as tables and plots."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from plan import ALGORITHMS, ROWS, TASKS

DOCS = Path(__file__).parent.parent.parent / "docs"
T_QUANTILES = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Of Student's t at 0.975, for 1 to 9 degrees of freedom."""
NAMES = {"grpo": "GRPO", "remax": "ReMax", "ppo": "PPO", "sft": "imitation"}
CONTROL_NAMES = {"": "", "sft": "", "wrong_sign": ", wrong sign"}
INTRODUCTION = """# Learning curves

PPO, GRPO and ReMax on four tasks, with several seeds each, and beside them what must not learn. All
start from a model of 0.16 million parameters that was fine-tuned on a teacher who leaves much to be
found: the bundled `tiny` for arithmetic and the calculator, for the other two one that the script
makes first. A row is one run:

```bash
script=benchmarks/learning_curves/matrix.py
uv run python $script run --algorithm ppo --task retry --seed 0
uv run python $script run --algorithm ppo --task retry --seed 0 --control wrong_sign
uv run python $script run --task retry --seed 0 --control sft
uv run python $script all      # every row that is not there yet
uv run python $script table    # this page
```

The score is pass@1 on held-out tasks, sampled at temperature 1; in self-play the mean over matches
against two named frozen opponents, `random` and `expert`, neither of which the policy trains
against (a win is 1, a draw a half). Held-out tasks are told apart by their hash and never trained
on. Intervals are Student's t over seeds, at 95 %. CPU seconds are those of the process: the whole
row with loading and evaluations, or, up to a score, the training steps alone until the first
evaluation that reaches it. Tokens are those sampled for training.
"""
CONTROLS = """## Controls

*Wrong sign* is the same run with the advantages negated, by a loss of its own that the settings
choose (`algorithm.loss=wrong_sign:wrong_sign`, see
[algorithms.md](algorithms.md#advantages-and-losses-of-your-own)). *Imitation* is further
fine-tuning on the teacher of the base model, for as many conversations as the others play: what the
base gains from more of the same, without a reward.
"""


def write_page() -> None:
    """Write docs/learning.md and its plots from the rows that are there."""
    rows = read_rows()
    (DOCS / "learning.md").write_text(page(rows), encoding="utf-8")
    for task in TASKS:
        own = [row for row in rows if row["task"] == task]
        if own:
            draw(task, own, DOCS / "images" / f"learning-{task}.png")
    print(page(rows))


def read_rows() -> list[dict[str, Any]]:
    """Return all rows, in the order of their names."""
    return [json.loads(path.read_text("utf-8")) for path in sorted(ROWS.glob("*.json"))]


def page(rows: Sequence[dict[str, Any]]) -> str:
    """Return the Markdown of the page."""
    parts = [INTRODUCTION, _made_with(rows), "## Rise of the held-out score\n"]
    parts.append(_table(rows, [(t, a, "") for t in TASKS for a in ALGORITHMS]))
    for task, settings in TASKS.items():
        if any(row["task"] == task for row in rows):
            parts.append(
                f"**{task}**: {settings.title}.\n\n![{task}](images/learning-{task}.png)\n"
            )
    controls = [(t, a, "wrong_sign") for t in TASKS for a in ALGORITHMS]
    controls += [(t, "sft", "sft") for t in TASKS]
    parts += [CONTROLS, _table(rows, sorted(controls))]
    parts.append(
        "Rows, with settings and curves: "
        "[benchmarks/results/learning_curves/rows](../benchmarks/results/learning_curves/rows).\n"
    )
    return "\n".join(parts)


def _made_with(rows: Sequence[dict[str, Any]]) -> str:
    def most(values: Sequence[str]) -> str:
        return ", ".join(value for value, _ in Counter(values).most_common())

    dates = sorted(row["date"] for row in rows)
    versions = most([", ".join(f"{k} {v}" for k, v in row["versions"].items()) for row in rows])
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    return (
        f"{len(rows)} rows, {when}; {most([row['machine'] for row in rows])}, one thread a run, "
        f"beside other work; {versions}.\n"
    )


def _table(rows: Sequence[dict[str, Any]], kinds: Sequence[tuple[str, str, str]]) -> str:
    lines = [
        "| task | algorithm | seeds | before | after | rise | 95 % | CPU s a row | up to score | "
        "CPU s | tokens |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for task, algorithm, control in kinds:
        own = [
            row
            for row in rows
            if (row["task"], row["algorithm"], row["control"]) == (task, algorithm, control)
        ]
        if own:
            name = f"{NAMES[algorithm]}{CONTROL_NAMES[control]}"
            lines.append(f"| {task} | {name} | {_figures(own, TASKS[task].threshold)} |")
    return "\n".join(lines) + "\n"


def _figures(rows: Sequence[dict[str, Any]], threshold: float) -> str:
    before = [row["pass_at_1_before"] for row in rows]
    after = [row["pass_at_1_after"] for row in rows]
    mean, half = mean_and_half_width([b - a for a, b in zip(before, after, strict=True)])
    interval = "-" if half is None else f"{mean - half:+.3f} to {mean + half:+.3f}"
    reached = [point for row in rows if (point := first_at(row["curve"], threshold)) is not None]
    share = "" if len(reached) == len(rows) else f" ({len(reached)} of {len(rows)})"
    cpu = tokens = "-"
    if reached and rows[0]["control"] == "":
        cpu = f"{fmean(point['cpu_seconds'] for point in reached):.0f}{share}"
        tokens = f"{fmean(point['tokens'] for point in reached):,.0f}"
    return (
        f"{len(rows)} | {fmean(before):.3f} | {fmean(after):.3f} | {mean:+.3f} | {interval} | "
        f"{fmean(row['cpu_seconds'] for row in rows):.0f} | {threshold:g} | {cpu} | {tokens}"
    )


def first_at(curve: Sequence[dict[str, Any]], threshold: float) -> dict[str, Any] | None:
    """Return the first evaluation that reaches a score; None where none does."""
    return next((point for point in curve if point["score"] >= threshold), None)


def mean_and_half_width(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean and half the width of its 95 % t-interval; None for fewer than two values."""
    if len(values) < 2:
        return fmean(values), None
    return fmean(values), T_QUANTILES[len(values) - 2] * stdev(values) / sqrt(len(values))


def draw(task: str, rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw each algorithm's mean score with its interval, and its wrong-sign control dashed."""
    from matplotlib.figure import Figure  # the page's text is made without it

    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.add_subplot()
    for index, algorithm in enumerate((*ALGORITHMS, "sft")):
        for control, style in (("", "-o"), ("wrong_sign", "--"), ("sft", ":s")):
            own = [r for r in rows if (r["algorithm"], r["control"]) == (algorithm, control)]
            if not own:
                continue
            steps = [point["step"] for point in own[0]["curve"]]
            found = [
                mean_and_half_width([row["curve"][place]["score"] for row in own])
                for place in range(len(steps))
            ]
            label = f"{NAMES[algorithm]}{CONTROL_NAMES[control]} ({len(own)})"
            means = [mean for mean, _ in found]
            axes.plot(steps, means, style, color=f"C{index}", markersize=4, label=label)
            low = [mean - (half or 0.0) for mean, half in found]
            high = [mean + (half or 0.0) for mean, half in found]
            axes.fill_between(steps, low, high, color=f"C{index}", alpha=0.15, linewidth=0)
    axes.set_xlabel("training step")
    axes.set_ylabel("held-out score")
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(f"{task}: mean over seeds and 95 % interval")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
