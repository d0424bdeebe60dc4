"""Environments of their own for packages that we compare ourselves with."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

CACHE = Path.home() / ".cache" / "rllm-benchmarks"


def python_with(name: str, requirements: Sequence[str]) -> Path:
    """Return the interpreter of an environment with packages from the registry.

    It is made by uv, and kept for the next run.

    Args:
        name: Of the environment.
        requirements: What is installed; others than those of an earlier run are put in its place.
    """
    folder = CACHE / name
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "-q", "--python", "3.11", str(folder)], check=True)
    # Outside of the workspace, whose constraints are not those of a user.
    install = ["uv", "pip", "install", "-q", "--python", str(python), *requirements]
    subprocess.run(install, cwd=folder, check=True)
    return python


def version_in(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    done = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.strip()
