"""Plots of a report, drawn by Matplotlib as PNG."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.viewer.report_facts import Facts

_HEADLINE = ("train/reward", "eval/pass_at_1", "eval/greedy_pass_at_1")
_PANELS = (
    "train/response_tokens",
    "train/turns",
    "learner/entropy",
    "learner/kl",
    "learner/grad_norm",
    "learner/sampler_gap",
)
_TIMES = ("sample", "learn", "publish", "eval")
_DPI = 110


def plots(facts: Facts) -> dict[str, tuple[str, bytes]]:
    """Return what can be drawn of a run: name -> title and PNG.

    Raises:
        UserError: Matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # heavy, and only a report draws
    except ImportError as error:
        raise UserError(
            "rllm report draws with matplotlib: pip install 'rllm-agents[report]'"
        ) from error
    make = matplotlib.figure.Figure
    drawn: dict[str, tuple[str, bytes]] = {}
    headline = [name for name in _HEADLINE if _points(facts.metrics, name)[0]]
    if headline:
        drawn["curve"] = ("Reward and held-out pass@1", _curve(make, facts.metrics, headline))
    panels = [name for name in _PANELS if _points(facts.metrics, name)[0]]
    if panels:
        drawn["learning"] = ("Learning", _panels(make, facts.metrics, panels))
    if len(facts.rewards):
        drawn["rewards"] = (f"Rewards: {facts.rewards_of}", _histogram(make, facts))
    seconds = list(_seconds(facts.metrics))
    if seconds:
        drawn["time"] = ("Where the time went", _bars(make, seconds))
    return drawn


def _points(rows: Sequence[dict[str, Any]], name: str) -> tuple[list[int], list[float]]:
    kept = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
    return [step for step, _ in kept], [value for _, value in kept]


def _curve(make: Any, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> bytes:
    figure = make(figsize=(7.5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for name in names:
        axes.plot(*_points(rows, name), label=name, marker="o", markersize=3, linewidth=1.4)
    axes.set_xlabel("training step")
    axes.grid(alpha=0.3)
    axes.legend()
    return _png(figure)


def _panels(make: Any, rows: Sequence[dict[str, Any]], names: Sequence[str]) -> bytes:
    num_rows = (len(names) + 2) // 3
    figure = make(figsize=(7.5, 2.1 * num_rows), layout="constrained")
    for place, name in enumerate(names, start=1):
        axes = figure.add_subplot(num_rows, 3, place)
        axes.plot(*_points(rows, name), linewidth=1.2)
        axes.set_title(name, fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(alpha=0.3)
    return _png(figure)


def _histogram(make: Any, facts: Facts) -> bytes:
    figure = make(figsize=(7.5, 2.6), layout="constrained")
    axes = figure.add_subplot()
    axes.hist(facts.rewards, bins=20)
    axes.set_xlabel("reward")
    axes.set_ylabel("episodes")
    axes.grid(alpha=0.3, axis="y")
    return _png(figure)


def _seconds(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    for part in _TIMES:
        values = _points(rows, f"time/{part}_seconds")[1]
        if values:
            yield part, sum(values)


def _bars(make: Any, seconds: Sequence[tuple[str, float]]) -> bytes:
    total = sum(value for _, value in seconds) or 1.0
    figure = make(figsize=(7.5, 0.5 + 0.4 * len(seconds)), layout="constrained")
    axes = figure.add_subplot()
    labels = [f"{name}  {value:.1f} s, {value / total:.0%}" for name, value in seconds]
    axes.barh(labels, [value for _, value in seconds])
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    return _png(figure)


def _png(figure: Any) -> bytes:
    # The Figure object draws without a display and without pyplot's global state.
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=_DPI, format="png", metadata={"Software": None})
    return buffer.getvalue()
