"""Make uv.lock address-free: versions and edges stay, places to download from go.

A lock file without addresses works behind any mirror. uv reads it as preferences: it resolves
again, keeps each pinned version, and writes the full file into the work tree. So the file in the
work tree carries addresses after most uv commands, and the committed one never does.

    python scripts/clean_lock.py                  # rewrite uv.lock of this repository
    python scripts/clean_lock.py --check FILE     # exit code 1 if FILE ("-": stdin) needs it

Run by `make lock` and by the pre-commit hook. Only the standard library is used, so that any
Python from 3.11 on runs it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

LOCK_FILE = Path(__file__).resolve().parent.parent / "uv.lock"

REGISTRY_WORD = "index"
"""Stands in each `registry = "..."` instead of the index's address."""

_REGISTRY = re.compile(r'\bregistry = "[^"]*"')
_METADATA_TABLE = re.compile(r"\[package\.metadata(\.[^\]]+)?\]")
_ADDRESS = re.compile(r"\w+://")


class LockError(Exception):
    """The text is no lock file, or depends on something that only an address can name."""


def clean(text: str) -> str:
    """Return the lock file without addresses; cleaning a clean one changes nothing.

    Dropped: `sdist = {...}` lines, `wheels = [...]` blocks, and the `[package.metadata]` tables
    with their sub-tables (uv believes a lock that has them and then finds nothing to download).

    Raises:
        LockError: The text is not a uv lock file, or an address is left, as for a dependency on
            a git repository.
    """
    kept: list[str] = []
    in_wheels = in_metadata = False
    for line in text.splitlines():
        if in_wheels:
            in_wheels = line != "]"
            continue
        if line.startswith("["):
            in_metadata = _METADATA_TABLE.fullmatch(line) is not None
        if in_metadata or line.startswith("sdist = "):
            continue
        if line.startswith("wheels = ["):
            in_wheels = not line.endswith("]")
            continue
        if line == "" and kept and kept[-1] == "":
            continue
        kept.append(_REGISTRY.sub(f'registry = "{REGISTRY_WORD}"', line))
    cleaned = "\n".join(kept).rstrip("\n") + "\n"
    if pins(cleaned) != pins(text):
        raise LockError("cleaning would change the pinned versions: an unknown layout of uv.lock")
    _require_no_address(cleaned)
    return cleaned


def pins(text: str) -> list[tuple[str, str]]:
    """Return name and version of every package, in the file's order ("": no version).

    Raises:
        LockError: The text is not a uv lock file of format version 1.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise LockError(f"not valid TOML: {error}") from error
    packages = document.get("package")
    if document.get("version") != 1 or not isinstance(packages, list):
        raise LockError("not a uv lock file: it needs `version = 1` and [[package]] tables")
    return [(package["name"], package.get("version", "")) for package in packages]


def _require_no_address(text: str) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        if _ADDRESS.search(line):
            raise LockError(
                f"line {number} of the cleaned file still holds an address: {line.strip()[:120]!r};"
                " depend on a released version of that package instead of a git or URL source"
            )


def main(arguments: list[str] | None = None) -> int:
    """Clean or check the file named on the command line.

    Returns:
        The exit code: 0, or 1 when `--check` finds addresses, or 2 for a file that cannot be read.
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", nargs="?", default=str(LOCK_FILE), help='"-": standard input')
    parser.add_argument("--check", action="store_true", help="change nothing, answer by exit code")
    options = parser.parse_args(arguments)
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text("utf-8")
        cleaned = clean(text)
    except (OSError, UnicodeDecodeError, LockError) as error:
        print(f"error: {options.file}: {error}", file=sys.stderr)
        return 2
    if options.check:
        if cleaned == text:
            return 0
        print(f"error: {options.file} holds addresses; run scripts/clean_lock.py", file=sys.stderr)
        return 1
    if options.file == "-":
        sys.stdout.write(cleaned)
    elif cleaned != text:
        Path(options.file).write_text(cleaned, "utf-8")
        print(f"removed the addresses from {options.file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
