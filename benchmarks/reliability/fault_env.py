"""An environment that does what its task says, faults included, and writes down its life."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rllm_envs import BaseEnv
from rllm_envs.errors import GradingError

RELEASE = threading.Event()
"""Set to let environments go on that hang in this process."""
NUM_GRADING = Counter[str]()
"""Verdicts under way in this process, under "now"."""


class FaultyEnv(BaseEnv):
    """Asks for one answer a turn and rewards exactly the episode's own.

    Args:
        task: `episode` (int), `num_turns`, `faults` (see fault_plan), `folder` (where lives and
            earlier faults are written down), `grade_seconds`.
    """

    def __init__(self, task: dict[str, Any]) -> None:
        """Write down that the environment lives, or fail."""
        self.episode, self.num_turns = task["episode"], task["num_turns"]
        self.faults, self.folder = task["faults"], Path(task["folder"])
        self.grade_seconds = task.get("grade_seconds", 0.0)
        self.turn = 0
        self.life = uuid.uuid4().hex
        if self._meets("construction raises", turn=None):
            raise ValueError("construction is broken")
        self._note("open")

    @staticmethod
    def from_dict(info: dict[str, Any]) -> FaultyEnv:
        """Make one from a task."""
        return FaultyEnv(info)

    def reset(self) -> tuple[Any, dict[str, Any]]:
        """Ask the first question."""
        if self._meets("reset raises", turn=None):
            raise ValueError("reset is broken")
        return self._question(), {}

    def step(self, action: Any) -> Any:
        """Judge an answer, or fail in the way that is planned for this turn."""
        for name, fault in _STEP_FAULTS.items():
            if self._meets(name):
                broken = fault(self, self.faults[name]["variant"])
                if broken is not None:
                    return broken
        is_right = action == answer_of(self.episode, self.turn)
        reward: Any = reward_of(self.episode, self.turn) if is_right else -1.0
        self.turn += 1
        done = self.turn == self.num_turns
        if done:
            reward = self._grade(reward)
        if self._meets("observation of 10 MB, or no text", turn=self.turn - 1):
            variant = self.faults["observation of 10 MB, or no text"]["variant"]
            return "x" * 10_000_000 if variant % 2 else _Unprintable(), reward, done, {}
        return self._question(), reward, done, {}

    def close(self) -> None:
        """Write down the end, and fail where that is planned."""
        self._note("close")
        if self._meets("close raises", turn=None):
            raise ValueError("close is broken")

    def _question(self) -> str:
        return f"episode {self.episode} turn {self.turn}"

    def _meets(self, name: str, turn: int | None = -1) -> bool:
        """Whether a fault is planned for now; None: in any turn; -1: in this one."""
        fault = self.faults.get(name)
        if fault is None:
            return False
        return turn is None or fault["turn"] == (self.turn if turn == -1 else turn)

    def is_first_time(self, name: str) -> bool:
        """Whether no earlier attempt at the episode has met a fault that comes once."""
        if self.faults[name]["times"] > 1:
            return True
        try:
            mark = self.folder / f"{self.episode}-{name.replace(' ', '-')}"
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _grade(self, reward: float) -> Any:
        """Judge the episode, by a grader that may fail as well."""
        NUM_GRADING["now"] += 1
        try:
            RELEASE.wait(self.grade_seconds)
            if "grader raises" in self.faults:
                raise GradingError("no verdict")
            if "grader hangs" in self.faults:
                RELEASE.wait()
            name = "grader's process killed"
            if name in self.faults and self.is_first_time(name):
                _ask_grader_that_dies()
            return float("inf") if "verdict not finite" in self.faults else reward
        finally:
            NUM_GRADING["now"] -= 1

    def _note(self, event: str) -> None:
        line = f"{event} {self.life} {os.getpid()}\n".encode()
        ledger = os.open(self.folder / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(ledger, line)
        finally:
            os.close(ledger)


class _Unprintable:
    def __str__(self) -> str:
        raise ValueError("this observation has no text")

    __repr__ = __str__


def answer_of(episode: int, turn: int) -> str:
    """What the model says in one turn of one episode, and of no other."""
    return f"answer {episode} {turn}"


def reward_of(episode: int, turn: int) -> float:
    """What the right answer earns; sums differ between neighbouring episodes."""
    return 1.0 + (episode % 7) / 8 + turn


def true_reward(episode: int, num_turns: int) -> float:
    """What an episode earns that nothing went wrong in."""
    return sum(reward_of(episode, turn) for turn in range(num_turns))


def open_environments(folder: Path) -> int:
    """Environments that were opened, not closed exactly once, and whose process still lives."""
    ledger = folder / "ledger"
    events = [line.split() for line in ledger.read_text().splitlines()] if ledger.exists() else []
    closed = Counter(life for event, life, _ in events if event == "close")
    opened = {life: int(pid) for event, life, pid in events if event == "open"}
    twice = sum(count > 1 for count in closed.values())
    return twice + sum(closed[life] == 0 and _lives(pid) for life, pid in opened.items())


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _raises(env: FaultyEnv, variant: int) -> None:
    name = "step raises, or loses a connection once"
    if variant % 2:
        raise ValueError("step is broken")
    if env.is_first_time(name):
        raise ConnectionResetError("the environment's server is away")


def _exits(env: FaultyEnv, variant: int) -> None:
    raise SystemExit(3)


def _leaks(env: FaultyEnv, variant: int) -> None:
    raise asyncio.CancelledError("leaked")


def _hangs(env: FaultyEnv, variant: int) -> None:
    RELEASE.wait()


def _dies(env: FaultyEnv, variant: int) -> None:
    if env.is_first_time("segfault or SIGKILL"):
        if variant % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        ctypes.string_at(0)


def _ask_grader_that_dies() -> None:
    """Start a process that grades, kill it before it answers, and find that out."""
    grader = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    grader.kill()
    answer, _ = grader.communicate()
    if not answer:
        raise GradingError(f"the grader's process ended with {grader.returncode}")


_BAD_REWARDS = (float("nan"), None, "1.0")
_STEP_FAULTS: dict[str, Callable[[FaultyEnv, int], Any]] = {
    "step raises, or loses a connection once": _raises,
    "asynchronous hang": lambda env, variant: asyncio.sleep(3600.0),
    "synchronous hang": _hangs,
    "SystemExit": _exits,
    "leaked cancellation": _leaks,
    "wrong tuple": lambda env, variant: ("observation", 1.0, True, False, {}),
    "reward NaN, None or text": lambda env, variant: (
        "observation",
        _BAD_REWARDS[variant % 3],
        True,
        {},
    ),
    "segfault or SIGKILL": _dies,
}
