"""Size, packages and import time of environment suites, each in an environment of its own.

    uv run python benchmarks/performance/env_packages.py

Installs from the package registry with uv into a temporary folder, which goes at the end.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
SUITES = {
    "rllm-envs": (str(REPOSITORY / "packages" / "rllm-envs"), "rllm_envs"),
    "gymnasium alone": ("gymnasium", "gymnasium"),
    "GEM": ("gem-llm", "gem"),
    "TextArena": ("textarena", "textarena"),
    "reasoning-gym": ("reasoning-gym", "reasoning_gym"),
    "verifiers": ("verifiers", "verifiers"),
}


def main() -> None:
    """Print one row for each suite."""
    parser = argparse.ArgumentParser(description="Size and import time of environment suites.")
    parser.add_argument("--python", default="3.11", help="version of Python (default 3.11)")
    options = parser.parse_args()
    print(f"{'suite':<20}{'MB':>8}{'packages':>10}{'import s':>10}")
    for name, (requirement, module) in SUITES.items():
        with tempfile.TemporaryDirectory(prefix="rllm-suite-") as folder:
            print(f"{name:<20}{measured(Path(folder), requirement, module, options.python)}")


def measured(folder: Path, requirement: str, module: str, python: str) -> str:
    """Install one suite and return its figures as a row."""
    subprocess.run(["uv", "venv", "-q", "--python", python, str(folder)], check=True)
    interpreter = folder / "bin" / "python"
    command = ["uv", "pip", "install", "-q", "--link-mode", "copy", "--python", str(interpreter)]
    # Outside of the workspace, whose constraints are not those of a user.
    done = subprocess.run([*command, requirement], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        return f"  does not install: {done.stderr.strip().splitlines()[-1][:80]}"
    (packages,) = folder.glob("lib/python*/site-packages")
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file()) / 1e6
    seconds = []
    for _ in range(4):  # the first compiles the files
        start = time.perf_counter()
        done = subprocess.run([interpreter, "-c", f"import {module}"], capture_output=True)
        seconds.append(time.perf_counter() - start)
    imported = f"{min(seconds[1:]):>10.2f}" if done.returncode == 0 else f"{'fails':>10}"
    return f"{size:>8.0f}{len(list(packages.glob('*.dist-info'))):>10}{imported}"


if __name__ == "__main__":
    main()
