"""What is kept of each episode: actions and outcome; while a suite runs, and in the end packed."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import lzma
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.types import Episode, TerminationReason, Trajectory

MAX_UNPACKED_BYTES = 1_000_000_000
"""Of recorded actions; what would unpack to more is refused before it does."""

_FIELDS = ("actions", "reward", "success", "end", "tokens", "turns", "seconds")
_OUTCOMES = frozenset(str(reason) for reason in TerminationReason if not reason.is_failure)


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode that has an outcome. Made by the runner, read by rows and by verification."""

    actions: tuple[str, ...]
    """What the policy did, as the environment got it."""
    reward: float
    """Sum over the episode, undiscounted."""
    success: bool
    """Whether the environment calls the task solved; of a match, whether it was won."""
    end: str
    """Why it ended: a `TerminationReason` that is an outcome."""
    tokens: int
    """Sampled by the model; 0 for a policy without one."""
    turns: int
    """Completions, those cut off included."""
    seconds: float
    """From beginning to end, others running beside it."""


def record_of(
    episode: Episode, trajectory: Trajectory, reward: float, success: bool
) -> EpisodeRecord:
    """Return the record of an episode that has not failed.

    Args:
        episode: Its outcome and figures.
        trajectory: The policy's own.
        reward: The policy's own.
        success: Whether the policy solved it or won.
    """
    steps = trajectory.steps
    # A response that was cut off is a step nobody acted on; only the last can be one.
    acted = [step for step in steps if step.action is not None]
    actions = [step.info.get("oracle_action", step.action) for step in acted]
    return EpisodeRecord(
        actions=tuple(map(str, actions)),
        reward=float(reward),
        success=bool(success),
        end=str(episode.termination_reason),
        tokens=sum(len(step.response_ids) for step in steps),
        turns=len(steps),
        seconds=round(episode.metrics.get("total_seconds", 0.0), 4),
    )


class RecordFile:
    """Records of one entry on disk, one JSON line each, as they come in.

    What is there already is not played again. A line that was cut off in the middle is passed over.

    Args:
        path: The file; its directory is made when the first record is added.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: dict[str, EpisodeRecord] = {}
        self.seconds = 0.0
        """Wall-clock that was spent on playing, in all sessions."""
        text = path.read_text("utf-8") if path.is_file() else ""
        self._is_cut_off = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                row = json.loads(line)
                if "seconds" in row:
                    self.seconds += float(row["seconds"])
                else:
                    self.records.setdefault(str(row["id"]), parse_record(row["record"]))
            except (ValueError, KeyError, TypeError):
                continue

    def add(self, episode_id: str, record: EpisodeRecord) -> None:
        """Keep a record, on disk before this returns."""
        self._write({"id": episode_id, "record": dataclasses.asdict(record)})
        self.records.setdefault(episode_id, record)

    def add_seconds(self, seconds: float) -> None:
        """Keep how long was played."""
        self._write({"seconds": seconds})
        self.seconds += seconds

    def _write(self, row: dict[str, Any]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with open(self._path, "a", encoding="utf-8", newline="\n") as file:
            # In ASCII: an action may hold what UTF-8 cannot.
            file.write(("\n" if self._is_cut_off else "") + json.dumps(row) + "\n")
        self._is_cut_off = False


def pack_records(path: Path, records: Mapping[str, Sequence[EpisodeRecord]]) -> str:
    """Write the records of all entries, compressed.

    Returns:
        SHA-256 of what is in the file before compression, in hexadecimal.
    """
    rows = {
        name: [[getattr(record, field) for field in _FIELDS] for record in entry]
        for name, entry in records.items()
    }
    data = json.dumps(rows, separators=(",", ":")).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(data, preset=9))
    return hashlib.sha256(data).hexdigest()


def unpack_records(path: Path) -> tuple[dict[str, list[EpisodeRecord]], str]:
    """Read what `pack_records` wrote.

    Returns:
        The records by entry, and the SHA-256 of what was compressed, in hexadecimal.

    Raises:
        UserError: There is no such file, or it holds something else.
    """
    try:
        unpacker = lzma.LZMADecompressor(memlimit=1 << 30)
        data = unpacker.decompress(path.read_bytes(), max_length=MAX_UNPACKED_BYTES)
        if not unpacker.eof:
            raise UserError(f"{path}: is cut off, or unpacks to over {MAX_UNPACKED_BYTES} bytes")
        rows = json.loads(data)
        records = {
            name: [parse_record(dict(zip(_FIELDS, row, strict=True))) for row in entry]
            for name, entry in rows.items()
        }
    except (OSError, lzma.LZMAError) as error:
        raise UserError(f"recorded actions cannot be read: {path}: {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path} holds no recorded actions: {error}") from error
    return records, hashlib.sha256(data).hexdigest()


def parse_record(row: Any) -> EpisodeRecord:
    """Return a record of what somebody wrote.

    Raises:
        UserError: A field is missing, or of a wrong type.
    """
    if not isinstance(row, dict) or set(row) != set(_FIELDS):
        raise UserError(f"a record has the fields {', '.join(_FIELDS)}; got {row!r:.120}")
    actions, end = row["actions"], row["end"]
    numbers = [row[name] for name in ("reward", "tokens", "turns", "seconds")]
    are_numbers = all(type(value) in (int, float) and math.isfinite(value) for value in numbers)
    is_record = (
        isinstance(actions, list)
        and all(isinstance(action, str) for action in actions)
        and type(row["success"]) is bool
        and end in _OUTCOMES
        and are_numbers
        and type(row["tokens"]) is type(row["turns"]) is int
        and min(numbers[1:]) >= 0
    )
    if not is_record:
        raise UserError(f"a record has a field of a wrong type: {row!r:.120}")
    return EpisodeRecord(
        tuple(actions), float(row["reward"]), row["success"], end,
        row["tokens"], row["turns"], float(row["seconds"]),
    )  # fmt: skip
