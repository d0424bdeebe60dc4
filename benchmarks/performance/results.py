"""Where the figures of these scripts go: one JSON file each, with what they were taken on.

`scripts/write_performance_page.py` puts the tables of these files into the pages under docs/.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import packages_distributions, version
from pathlib import Path
from statistics import median, quantiles
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "performance"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text. Made by a script, or read from its result; shown on a page."""

    columns: tuple[str, ...]
    """Titles."""
    rows: tuple[tuple[str, ...], ...]
    """As many cells in each as there are columns."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{len(row)} cells for {len(self.columns)} columns: {list(row)}")

    @staticmethod
    def of(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
        """Make one of any iterables."""
        return Table(tuple(columns), tuple(tuple(row) for row in rows))

    def markdown(self) -> str:
        """Return it in Markdown, without a newline at its end."""
        lines = [_line(self.columns), "|---" * len(self.columns) + "|"]
        return "\n".join([*lines, *map(_line, self.rows)])


def _line(cells: Iterable[str]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def with_range(values: Sequence[float], form: str) -> str:
    """Return the median and, of several values, the lowest and the highest.

    Args:
        values: One of each lap.
        form: How a figure is written, as in `format`.
    """
    return _spread(median(values), min(values), max(values), form, len(values))


def with_quartiles(values: Sequence[float], form: str) -> str:
    """Return the median and, of several values, the first and the third quartile.

    Args:
        values: One of each lap.
        form: How a figure is written, as in `format`.
    """
    if len(values) == 1:
        return format(values[0], form)
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return _spread(middle, low, high, form, len(values))


def _spread(middle: float, low: float, high: float, form: str, count: int) -> str:
    if count == 1:
        return format(middle, form)
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def installed(*modules: str) -> dict[str, str]:
    """Return packages and versions of what is imported, without marks of a build like `+cpu`."""
    packages = packages_distributions()
    names = [packages[module][0] for module in modules]
    return {name: version(name).partition("+")[0] for name in names}


def write_result(
    name: str,
    settings: Mapping[str, Any],
    figures: Any,
    tables: Mapping[str, Table],
    versions: Mapping[str, str] | None = None,
    folder: Path = RESULTS,
) -> Path:
    """Write a result file and return its place.

    Args:
        name: Of the result: the script's, or with the part of it that was measured behind it.
        settings: What was measured, and how much of it.
        figures: What came out, lap by lap: objects, lists, text and numbers.
        tables: The same as pages show it, by short keys.
        versions: Of the packages that matter, by name; Python's own is always there.
        folder: Where the file goes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    content = {
        "name": name,
        "command": command(),
        "date": date.today().isoformat(),
        "machine": machine(),
        "load_average": round(os.getloadavg()[0], 1),
        "versions": {"Python": platform.python_version(), **(versions or {})},
        "settings": settings,
        "figures": figures,
        "tables": {key: asdict(table) for key, table in tables.items()},
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def command() -> str:
    """Return how this script was started, from the repository's root."""
    script = f"benchmarks/performance/{Path(sys.argv[0]).name}"
    threads = os.environ.get("OMP_NUM_THREADS")
    start = f"OMP_NUM_THREADS={threads} python" if threads else "python"
    return f"{start} {shlex.join([script, *sys.argv[1:]])}"


def machine() -> str:
    """Return processor, cores and memory of this machine, and never its name."""
    cores, kind = os.cpu_count(), f"{platform.machine()} {platform.system()}"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{_processor()}, {cores} cores, {memory:.0f} GiB, {kind}"


def _processor() -> str:
    """Linux tells its model in a file; elsewhere the platform knows a family at best."""
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown processor"
