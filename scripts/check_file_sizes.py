"""Refuse files over 1 MB: data sets, checkpoints and runs do not belong in the repository.

    python scripts/check_file_sizes.py FILE...

Run by the pre-commit hook with the files about to be committed.
"""

from __future__ import annotations

import sys
from pathlib import Path

MAX_BYTES = 1_000_000


def oversized(paths: list[Path]) -> list[tuple[Path, int]]:
    """Return the files above `MAX_BYTES` with their sizes in bytes; missing paths are skipped."""
    sizes = [(path, path.stat().st_size) for path in paths if path.is_file()]
    return [(path, size) for path, size in sizes if size > MAX_BYTES]


def main(arguments: list[str]) -> int:
    """Report each file that is too large; the exit code is 1 if there is one."""
    too_large = oversized([Path(argument) for argument in arguments])
    for path, size in too_large:
        print(
            f"error: {path} has {size:,} bytes, at most {MAX_BYTES:,} are allowed; "
            "keep it outside the repository and read it through RLLM_DATA_DIR",
            file=sys.stderr,
        )
    return int(bool(too_large))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
