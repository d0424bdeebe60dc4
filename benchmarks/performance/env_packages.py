"""Size, packages and import time of environment suites, each in an environment of its own.

    uv run python benchmarks/performance/env_packages.py --write

Installs from the package registry with uv into a temporary folder, which goes at the end. Import
times are medians and ranges over laps, after a first import that compiles the files.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from peers.installation import version_in

from results import Table, with_range, write_result

REPOSITORY = Path(__file__).resolve().parents[2]
SUITES = {
    "rllm-envs": ("rllm-envs", str(REPOSITORY / "packages" / "rllm-envs"), "rllm_envs"),
    "gymnasium alone": ("gymnasium", "gymnasium", "gymnasium"),
    "GEM": ("gem-llm", "gem-llm", "gem"),
    "TextArena": ("textarena", "textarena", "textarena"),
    "reasoning-gym": ("reasoning-gym", "reasoning-gym", "reasoning_gym"),
    "verifiers": ("verifiers", "verifiers", "verifiers"),
}
"""Package, what is installed for it, and the module that is imported."""


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description="Size and import time of environment suites.")
    parser.add_argument("--python", default="3.11", help="version of Python (default 3.11)")
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=list(SUITES))
    parser.add_argument("--laps", type=int, default=3, help="imports that are timed (default 3)")
    parser.add_argument("--write", action="store_true", help="write the result file")
    options = parser.parse_args()
    figures: dict[str, dict[str, Any]] = {}
    for name in options.suites:
        with tempfile.TemporaryDirectory(prefix="rllm-suite-") as folder:
            figures[name] = measured(Path(folder), name, options.python, options.laps)
        print(f"measured {name}", file=sys.stderr)
    shown = table(figures)
    print(shown.markdown())
    if options.write:
        settings = {"python": options.python, "laps": options.laps}
        print(write_result("env_packages", settings, figures, {"suites": shown}))


def measured(folder: Path, name: str, python: str, laps: int) -> dict[str, Any]:
    """Install one suite and return its figures.

    Raises:
        SystemExit: It cannot be installed or imported.
    """
    package, requirement, module = SUITES[name]
    subprocess.run(["uv", "venv", "-q", "--python", python, str(folder)], check=True)
    interpreter = folder / "bin" / "python"
    command = ["uv", "pip", "install", "-q", "--link-mode", "copy", "--python", str(interpreter)]
    # Outside of the workspace, whose constraints are not those of a user.
    done = subprocess.run([*command, requirement], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name} does not install: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    (packages,) = folder.glob("lib/python*/site-packages")
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file()) / 1e6
    seconds = []
    for _ in range(laps + 1):
        start = time.perf_counter()
        done = subprocess.run(
            [interpreter, "-c", f"import {module}"], capture_output=True, text=True
        )
        seconds.append(time.perf_counter() - start)
        if done.returncode:
            sys.exit(f"{name} cannot be imported: {done.stderr.strip().splitlines()[-1]}")
    return {
        "version": version_in(interpreter, package),
        "megabytes": size,
        "packages": len(list(packages.glob("*.dist-info"))),
        "import_seconds": seconds[1:],
    }


def table(figures: dict[str, dict[str, Any]]) -> Table:
    """Return a row for each suite."""
    columns = ("suite", "version", "MB", "packages", "import, s")
    rows = []
    for name, row in figures.items():
        sizes = (f"{row['megabytes']:.0f}", str(row["packages"]))
        rows.append((name, row["version"], *sizes, with_range(row["import_seconds"], ".2f")))
    return Table.of(columns, rows)


if __name__ == "__main__":
    main()
