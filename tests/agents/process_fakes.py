"""Environments that a process of their own imports from here."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

from rllm_envs import BaseEnv
from rllm_envs.errors import SandboxError


class TroubledEnv(BaseEnv):
    """Shows its process and its task; `trouble` of the task says what goes wrong, and where."""

    num_made = 0

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        TroubledEnv.num_made += 1
        self._meet("init")

    @staticmethod
    def from_dict(info: dict[str, Any]) -> TroubledEnv:
        return TroubledEnv(info)

    def reset(self) -> Any:
        self._meet("reset")
        return {"question": f"made {TroubledEnv.num_made}"}, {"pid": os.getpid()}

    def step(self, action: Any) -> Any:
        self._meet("step")
        if self.task.get("trouble") == "step:object":
            return object(), 1.0, True, {}
        return f"you said {action}", 1.0, True, {"pid": os.getpid()}

    def close(self) -> None:
        self._meet("close")

    def _meet(self, place: str) -> None:
        where, _, what = self.task.get("trouble", "").partition(":")
        if where == place and what in TROUBLES:
            TROUBLES[what]()


class AsynchronousEnv(BaseEnv):
    """Its methods are coroutine functions."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    @staticmethod
    def from_dict(info: dict[str, Any]) -> AsynchronousEnv:
        return AsynchronousEnv(info.get("seconds", 0.0))

    async def reset(self) -> Any:  # type: ignore[override]
        await asyncio.sleep(0.0)
        return "start", {}

    async def step(self, action: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(self.seconds)
        return "end", 1.0, True, {}

    async def close(self) -> None:  # type: ignore[override]
        await asyncio.sleep(0.0)


async def seconds_to_stop(run: asyncio.Task[Any]) -> float:
    """Cancel a run and return how long it takes to end."""
    start = time.perf_counter()
    run.cancel()
    await asyncio.wait([run])
    assert run.cancelled()
    return time.perf_counter() - start


def _raise(error: BaseException) -> Any:
    raise error


TROUBLES: dict[str, Any] = {
    "error": lambda: _raise(ValueError("broken")),
    "exit": lambda: _raise(SystemExit(3)),
    "cancel": lambda: _raise(asyncio.CancelledError("leaked")),
    "sandbox": lambda: _raise(SandboxError("no fork server")),
    "hang": lambda: time.sleep(600.0),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


class PlacedEnv(BaseEnv):
    """Says which process it is in; the task says what else it does in its one step.

    `seconds`: it waits so long. `marks`: a directory in which it writes a line when it begins and
    when it is closed. `kill_once`: a file; its process dies where that is not there yet. `hang`:
    it never gives the event loop back. `cancel`: it cancels its task. `fork`: seconds that a copy
    of its process sleeps. `raises`: what it raises. `info`: what its info holds.
    """

    blocking = False

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task

    @staticmethod
    def from_dict(info: dict[str, Any]) -> PlacedEnv:
        return PlacedEnv(info)

    async def reset(self) -> Any:  # type: ignore[override]
        self._mark("begun")
        return "start", {}

    async def step(self, action: Any) -> Any:  # type: ignore[override]
        await asyncio.sleep(self.task.get("seconds", 0.0))
        if "fork" in self.task and os.fork() == 0:
            os.setsid()
            time.sleep(self.task["fork"])
            os._exit(0)
        mark = self.task.get("kill_once")
        if mark is not None and not Path(mark).exists():
            Path(mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.task.get("hang"):
            time.sleep(600.0)
        if self.task.get("cancel"):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0.0)
        if "raises" in self.task:
            raise self.task["raises"]
        if self.task.get("info") == "lock":
            return "end", 1.0, True, {"lock": threading.Lock()}
        if self.task.get("info") == "unwilling":
            return "end", 1.0, True, {"text": UnwillingText("not here")}
        return "end", float(action), True, {"pid": os.getpid()}

    async def close(self) -> None:  # type: ignore[override]
        self._mark("closed")

    def _mark(self, what: str) -> None:
        if "marks" in self.task:
            with open(Path(self.task["marks"], f"{what}-{self.task['name']}"), "a") as file:
                file.write(f"{os.getpid()}\n")


class UnwillingText(str):
    """A text that no other process can read."""

    def __reduce__(self) -> Any:
        return _raise, (ValueError("not here"),)


class KillingEnv(PlacedEnv):
    """Kills its process whenever the task says `kill_once`."""

    @staticmethod
    def from_dict(info: dict[str, Any]) -> KillingEnv:
        return KillingEnv(info)

    async def step(self, action: Any) -> Any:  # type: ignore[override]
        if "kill_once" in self.task:
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().step(action)
