"""Where and with what a row was made: versions, machine, commit, sources, weights."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path

import rllm_envs

_PACKAGES = ("rllm-envs", "rllm-agents", "gymnasium", "numpy", "torch", "transformers", "vllm")
_END_BYTES = 1 << 20
_SOURCES = Path(next(iter(rllm_envs.__path__)))


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that decide what comes out."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def hardware() -> dict[str, str | int | float]:
    """Return processor, cores that this process may use, memory in GiB, and system."""
    return {
        "processor": _processor(),
        "cores": num_cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def commit() -> str:
    """Return the commit of the checkout that the environments come from.

    With ``+changes`` where sources differ from it; "" where they are no checkout.
    """
    here = _SOURCES
    if _git(here, "ls-files", "--error-unmatch", "__init__.py") is None:
        return ""
    head = _git(here, "rev-parse", "--short=12", "HEAD")
    if head is None:
        return ""
    return f"{head}+changes" if _git(here, "status", "--porcelain", "--", "../../..") else head


@cache
def environment_digest() -> str:
    """Return the SHA-256 of all sources of ``rllm_envs``, in hexadecimal."""
    root = _SOURCES
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def weights_digest(directory: Path) -> str:
    """Return a SHA-256 that tells models, or adapters, apart, in hexadecimal.

    Of each file it takes the size and the first and last MiB; of an adapter's configuration all
    but the place of its model.
    """
    digest = hashlib.sha256()
    for path in sorted(directory.iterdir()):
        if path.suffix not in (".safetensors", ".json", ".jinja") or not path.is_file():
            continue
        if path.name == "adapter_config.json":
            config = json.loads(path.read_text("utf-8"))
            config.pop("base_model_name_or_path", None)
            digest.update(json.dumps(config, sort_keys=True).encode())
            continue
        size = path.stat().st_size
        digest.update(f"{path.name}\0{size}\0".encode())
        with open(path, "rb") as file:
            digest.update(file.read(_END_BYTES))
            if size > _END_BYTES:
                file.seek(max(_END_BYTES, size - _END_BYTES))
                digest.update(file.read())
    return digest.hexdigest()


def _processor() -> str:
    try:
        listed = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return platform.processor() or "unknown"
    found = re.search(r"^model name\s*: (.+)$", listed, re.MULTILINE)
    return found[1].strip() if found is not None else platform.machine()


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        finished = subprocess.run(
            ["git", *arguments], cwd=directory, capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return finished.stdout.strip() if finished.returncode == 0 else None
