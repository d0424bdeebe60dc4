"""Checkpoints that are whole or absent, whenever the process dies.

A checkpoint is written to a temporary directory, every file is flushed to disk, a manifest with
sizes and SHA-256 sums is added, and the directory is renamed. Which one is the newest is derived
from the directories, never stored, and one whose manifest does not verify is passed over.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d{8})")


class CheckpointError(RuntimeError):
    """A checkpoint cannot be written, or none can be read."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A verified checkpoint on disk. Made by `save_checkpoint` and `latest_checkpoint`."""

    step: int
    """Training steps that were complete when it was written."""
    path: Path


def save_checkpoint(
    root: Path, step: int, write: Callable[[Path], None], *, keep: int
) -> Checkpoint:
    """Write one checkpoint, then delete the oldest beyond `keep`.

    Args:
        root: The directory of checkpoints; made if absent.
        step: Complete training steps, at least 0. One that exists already is replaced.
        write: Writes all files under the directory it is given.
        keep: Newest checkpoints that stay, at least 1.

    Raises:
        CheckpointError: Writing failed, for example because the disk is full; the checkpoints
            that were there are untouched.
    """
    final = root / f"step-{step:08d}"
    temporary = root / f".writing-step-{step:08d}"
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        write(temporary)
        files = _files(temporary)
        manifest = {name: _fingerprint(temporary / name) for name in files}
        (temporary / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for name in [*files, MANIFEST]:
            _flush(temporary / name)
        _flush(temporary)
        shutil.rmtree(final, ignore_errors=True)
        temporary.rename(final)
        _flush(root)
    except (OSError, RuntimeError) as error:  # torch reports a full disk as a RuntimeError
        shutil.rmtree(temporary, ignore_errors=True)
        raise CheckpointError(
            f"checkpoint of step {step} could not be written to {root}: {error}; "
            "earlier checkpoints are untouched"
        ) from error
    for old in sorted(_complete_names(root))[:-keep]:
        shutil.rmtree(root / old, ignore_errors=True)
    return Checkpoint(step, final)


def latest_checkpoint(root: Path) -> tuple[Checkpoint | None, list[str]]:
    """Find the newest checkpoint that verifies.

    Returns:
        The checkpoint, or None when there is none; and for each newer one that was passed over a
        line that names the damaged file.
    """
    rejected = []
    for name in sorted(_complete_names(root), reverse=True):
        problem = _verify(root / name)
        if problem is None:
            return Checkpoint(int(name.removeprefix("step-")), root / name), rejected
        rejected.append(f"{name} is passed over: {problem}")
    return None, rejected


def _complete_names(root: Path) -> list[str]:
    return [p.name for p in root.iterdir() if _NAME.fullmatch(p.name)] if root.is_dir() else []


def _files(directory: Path) -> list[str]:
    return sorted(str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file())


def _fingerprint(path: Path) -> dict[str, int | str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _verify(directory: Path) -> str | None:
    """Return what is wrong with a checkpoint directory, None if nothing is."""
    try:
        manifest = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
        for name, expected in manifest.items():
            if _fingerprint(directory / name) != expected:
                return f"{name} is not what its manifest says"
    except (OSError, ValueError, AttributeError) as error:
        return f"{MANIFEST} or a file that it names cannot be read ({error})"
    return None


def _flush(path: Path) -> None:
    """Make a file's or a directory's content survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
