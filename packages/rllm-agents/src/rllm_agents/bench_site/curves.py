"""Learning curves as the site draws them, of files that benchmarks wrote."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROWS = "rows"
"""Directory below the curves with one file for each run."""

_MAX_BYTES = 20_000_000
_HEADLINES = ("eval/pass_at_1", "score")
"""Metrics that are shown first."""


def read_curves(directory: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Read the curves of a directory, by name; empty where there is none.

    Of ``NAME.json`` the runs under ``runs`` are those of several seeds. In ``rows/`` a file is one
    run with ``algorithm``, ``task`` and ``seed``, and ``control`` where something was changed on
    purpose; those that agree in all but the seed belong together.

    Returns:
        For each ``name``, ``command``, ``date``, ``machine``, ``metrics`` (names) and ``runs``,
        each with ``seed``, ``steps`` and ``values``: a list of numbers or null for each metric.
        Then, one sentence each, the files that hold no such curve.
    """
    curves: dict[str, dict[str, Any]] = {}
    broken = []
    for path in [*sorted(directory.glob("*.json")), *sorted((directory / ROWS).glob("*.json"))]:
        try:
            _add_file(curves, path, is_row=path.parent.name == ROWS)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            broken.append(f"{path} holds no learning curve: {type(error).__name__}: {error}"[:300])
    found = [curve for _, curve in sorted(curves.items()) if curve["runs"]]
    for curve in found:
        curve["runs"].sort(key=lambda run: run["seed"])
        names = {name for run in curve["runs"] for name in run["values"]}
        curve["metrics"] = sorted(names, key=lambda name: (name not in _HEADLINES, name))
    return found, broken


def _add_file(curves: dict[str, dict[str, Any]], path: Path, *, is_row: bool) -> None:
    """Read a file into the curve that it belongs to."""
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"has over {_MAX_BYTES} bytes, which no curve has")
    data = json.loads(path.read_text("utf-8"))
    if is_row:
        parts = (data["task"], data["algorithm"], data.get("control", ""))
        name = " ".join(str(part) for part in parts if part)
    else:
        name = str(data["name"])
    runs = [_run(one) for one in ([data] if is_row else data["runs"])]
    about = {key: str(data.get(key, "")) for key in ("command", "date", "machine")}
    curve = curves.setdefault(name, {"name": name, **about, "runs": []})
    curve["runs"] += [run for run in runs if run["steps"]]


def _run(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return one run's steps and values; metrics that are no numbers are left out."""
    points: dict[int, dict[str, float]] = {}
    for row in run["curve"]:
        numbers = {
            str(name): float(value)
            for name, value in row.items()
            if name != "step" and type(value) in (int, float) and math.isfinite(value)
        }
        if numbers:
            points.setdefault(int(row["step"]), {}).update(numbers)
    steps = sorted(points)
    names = sorted({name for point in points.values() for name in point})
    values = {name: [points[step].get(name) for step in steps] for name in names}
    return {"seed": int(run["seed"]), "steps": steps, "values": values}
