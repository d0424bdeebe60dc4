"""Where each episode stands, and the few facts about it that lists and filters need."""

from __future__ import annotations

import hashlib
import json
import os
import time
from array import array
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from rllm_agents.viewer.growing_file import GrowingFile
from rllm_agents.viewer.json_lines import parse_head, parse_object
from rllm_agents.viewer.run_files import EpisodeFile, RunFiles

NO_STEP = -1
"""Step of an episode that belongs to none."""
_BULK = frozenset({"messages", "steps", "token_records", "trajectories"})
_NEEDED = frozenset({"id", "task", "reward", "is_correct", "termination_reason"})
_QUESTION_KEYS = ("question", "problem", "prompt", "instruction", "text", "task")
_MAX_LABEL = 200
_MAX_KINDS = 100
_OTHER = "other"


class Names:
    """Numbers for texts that come again and again.

    Args:
        limit: How many different ones are told apart; None for all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.texts: list[str] = []
        """Text by number."""
        self._numbers: dict[str, int] = {}
        self._limit = limit

    def number(self, text: str, key: str | None = None) -> int:
        """Return the number of a text, or of its key where texts may be equal by accident."""
        key = text if key is None else key
        is_full = self._limit is not None and len(self.texts) >= self._limit - 1
        if is_full and key not in self._numbers:
            key = text = _OTHER
        found = self._numbers.setdefault(key, len(self.texts))
        if found == len(self.texts):
            self.texts.append(text)
        return found


@dataclass(frozen=True, slots=True)
class Columns:
    """The facts of all episodes so far, an array each. Made by the index, read by `select`."""

    kind: np.ndarray
    step: np.ndarray
    """`NO_STEP` where there is none."""
    task: np.ndarray
    termination: np.ndarray
    reward: np.ndarray
    """NaN where the episode failed."""
    is_correct: np.ndarray

    def __len__(self) -> int:
        """Number of episodes."""
        return len(self.kind)


class EpisodeIndex:
    """Reads the episode files of a run as they grow, a little at a time.

    One thread calls `advance`; any other may read at the same time what was read before.

    Args:
        files: Of the run.
        generation: How often the run's episodes were counted anew before.
    """

    def __init__(self, files: RunFiles, generation: int = 0) -> None:
        self.generation = generation
        """Numbers of episodes hold within one generation."""
        self._files = files
        self.kinds = Names(_MAX_KINDS)
        self.terminations = Names(_MAX_KINDS)
        self.tasks = Names()
        """Labels of tasks, for reading."""
        self.ids: list[str] = []
        self.size = 0
        """Bytes of all files when they were last looked at."""
        self._paths: list[Path] = []
        self._growing: dict[Path, tuple[GrowingFile, EpisodeFile]] = {}
        self._kind, self._step, self._task, self._termination = (array("i") for _ in range(4))
        self._reward, self._is_correct = array("d"), array("b")
        self._file, self._offset, self._length = array("i"), array("q"), array("q")
        self._num_rows = 0
        self._num_bad_lines = 0
        self._columns: Columns | None = None

    def __len__(self) -> int:
        """Number of episodes so far."""
        return self._num_rows

    @property
    def num_bad_lines(self) -> int:
        """Lines that are no JSON object, or too long."""
        too_long = sum(growing.num_too_long for growing, _ in list(self._growing.values()))
        return self._num_bad_lines + too_long

    @property
    def num_bytes_read(self) -> int:
        """Bytes of all files that are behind us."""
        return sum(growing.offset for growing, _ in list(self._growing.values()))

    def advance(self, seconds: float) -> bool:
        """Read on for about so long; return whether there may be more.

        Raises:
            FileReplacedError: A file was written anew, as by a run that is resumed: this index is
                of no more use.
        """
        end = time.monotonic() + seconds
        for file in self._files.episode_files():
            if file.path not in self._growing:
                self._paths.append(file.path)
                self._growing[file.path] = (GrowingFile(file.path), file)
        self.size = sum(growing.size() for growing, _ in self._growing.values())
        for number, path in enumerate(self._paths):
            growing, file = self._growing[path]
            for offset, line in growing.lines():
                self._add(number, file, offset, line)
                if time.monotonic() > end:
                    return True
        return False

    def _add(self, number: int, file: EpisodeFile, offset: int, line: bytes) -> None:
        head = parse_head(line, _BULK, _NEEDED)
        if head is None:
            self._num_bad_lines += bool(line.strip())
            return
        task = head.get("task")
        self._file.append(number)
        self._offset.append(offset)
        self._length.append(len(line))
        self._kind.append(self.kinds.number(file.kind))
        self._step.append(_step(head.get("step"), file.step))
        self._task.append(self.tasks.number(_label(task), _key(task)))
        self._termination.append(self.terminations.number(_short(head.get("termination_reason"))))
        self._reward.append(_reward(head.get("reward")))
        self._is_correct.append(head.get("is_correct") is True)
        self.ids.append(_short(head.get("id")))
        self._num_rows += 1  # last: other threads see whole rows only

    def columns(self) -> Columns:
        """Return the facts of all episodes so far."""
        columns, num_rows = self._columns, self._num_rows
        if columns is None or len(columns) != num_rows:
            named = (self._kind, self._step, self._task, self._termination)
            kind, step, task, termination = (np.array(c[:num_rows], np.int32) for c in named)
            columns = Columns(
                kind=kind,
                step=step,
                task=task,
                termination=termination,
                reward=np.array(self._reward[:num_rows], np.float64),
                is_correct=np.array(self._is_correct[:num_rows], np.bool_),
            )
            self._columns = columns
        return columns

    def row(self, number: int) -> dict[str, Any]:
        """Return the facts of one episode as JSON values."""
        reward, step = self._reward[number], self._step[number]
        return {
            "number": number,
            "id": self.ids[number],
            "kind": self.kinds.texts[self._kind[number]],
            "step": None if step == NO_STEP else step,
            "task": self.tasks.texts[self._task[number]],
            "task_number": self._task[number],
            "reward": None if reward != reward else reward,
            "is_correct": bool(self._is_correct[number]),
            "termination": self.terminations.texts[self._termination[number]],
        }

    def num_bytes(self, number: int) -> int:
        """Return how long the line of one episode is."""
        return self._length[number]

    def lines(self, first: int, stop: int) -> Iterator[bytes]:
        """Yield the whole lines of episodes in a row; b"" where a file has gone meanwhile."""
        with ExitStack() as stack:
            opened, file = -1, None
            for number in range(first, stop):
                if self._file[number] != opened:
                    stack.close()
                    opened = self._file[number]
                    file = _open(self._paths[opened])
                    if file is not None:
                        stack.enter_context(file)
                if file is None:
                    yield b""
                else:
                    yield os.pread(file.fileno(), self._length[number], self._offset[number])

    def record(self, number: int) -> dict[str, Any] | None:
        """Return one episode as it was written; None where its file was exchanged meanwhile."""
        return parse_object(next(self.lines(number, number + 1)))


def _open(path: Path) -> BinaryIO | None:
    try:
        return path.open("rb")
    except OSError:
        return None


def _step(value: Any, of_file: int | None) -> int:
    step = value if type(value) is int else of_file
    return step if step is not None and 0 <= step < 2**31 else NO_STEP


def _reward(value: Any) -> float:
    is_number = type(value) in (int, float) and abs(value) < 1e300
    return float(value) if is_number else float("nan")


def _key(task: Any) -> str:
    text = json.dumps(task, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def _label(task: Any) -> str:
    """Return what a person knows a task by."""
    if isinstance(task, dict):
        texts = (task[key] for key in _QUESTION_KEYS if isinstance(task.get(key), str))
        task = next(texts, task)
    return _short(task)


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_LABEL else f"{text[:_MAX_LABEL]}..."
