"""One run of the execution engine under planned faults, and what it left behind."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fault_env import NUM_GRADING, RELEASE, FaultyEnv, open_environments, true_reward
from fault_plan import NUM_TURNS, Deadlines, Faults
from fault_server import ByteTokenizer, FaultServer

from rllm_agents import AgentExecutionEngine, ChatAgent, Episode
from rllm_agents.run_progress import RunProgress

Stop = Callable[[Sequence[Episode]], bool]
"""Whether a run is to be cancelled, given the episodes that have ended."""


@dataclass(frozen=True, slots=True)
class RunSetting:
    """How the engine of a run is made."""

    isolation: str = "thread"
    num_parallel: int = 128
    """Most episodes in flight."""
    deadlines: Deadlines = field(default_factory=Deadlines)


@dataclass(frozen=True)
class Row:
    """What one run gave and left. Made by `run_row`."""

    name: str
    isolation: str
    submitted: int
    returned: int
    lost: int
    """Requests without an Episode; of a cancelled run, those that are not counted as cancelled."""
    duplicated: int
    completed: int
    failed: int
    cancelled: int
    false_rewards: int
    """Episodes with a reward other than their environment gave, or failed ones with any."""
    unlabelled: int
    """Failed episodes without a text, or for a reason that their fault does not explain."""
    envs_open: int
    tasks_left: int
    descriptors_left: int
    processes_left: int
    stuck_threads: int
    """Threads that a hanging call holds at the end of the run; they end when it does."""
    threads_left: int
    """Threads left when nothing hangs any more."""
    retried: int
    wall_seconds: float
    bound_seconds: float
    cancel_seconds: float | None
    reasons: dict[str, int] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether nothing was lost, made up or left behind, within the time."""
        left = self.envs_open, self.tasks_left, self.processes_left, self.threads_left
        wrong = self.lost, self.duplicated, self.false_rewards, self.unlabelled
        in_time = self.wall_seconds <= self.bound_seconds and (self.cancel_seconds or 0.0) < 2.0
        is_clean = abs(self.descriptors_left) <= 2 and self.stuck_threads <= 256
        return not any(left) and not any(wrong) and in_time and is_clean


def run_row(
    name: str,
    plan: Sequence[Faults],
    setting: RunSetting,
    *,
    bound_seconds: float = float("inf"),
    stop: Stop | None = None,
    restart_server_at: int | None = None,
    grade_seconds: float = 0.0,
    allowed: frozenset[str] | None = None,
) -> Row:
    """Run one episode for each entry of a plan, over HTTP, and count what became of it.

    Args:
        name: Of the row.
        plan: Faults of each episode.
        setting: Of the engine.
        bound_seconds: What the wall-clock time is held against.
        stop: When to cancel; None: never.
        restart_server_at: After how many episodes the server goes away and comes back; None: never.
        grade_seconds: How long each verdict takes.
        allowed: Reasons that the faults explain; None: all.
    """
    before = len(os.listdir("/proc/self/fd")), threading.active_count(), _children()
    with tempfile.TemporaryDirectory() as folder, FaultServer(plan) as server:
        tasks = [
            {
                "episode": episode,
                "num_turns": NUM_TURNS,
                "faults": faults,
                "folder": folder,
                "grade_seconds": grade_seconds,
            }
            for episode, faults in enumerate(plan)
        ]
        start = time.perf_counter()
        with _engine(server, setting) as engine:
            ended, tasks_left, cancel_seconds = asyncio.run(
                _play(engine, tasks, stop, (server, restart_server_at))
            )
            wall = time.perf_counter() - start
            progress = engine.progress
        envs_open = open_environments(Path(folder))
        _release(before[1] + 1)  # the server's own
    return _row(
        ended,
        progress,
        name=name,
        isolation=setting.isolation,
        envs_open=envs_open,
        tasks_left=tasks_left,
        descriptors_left=len(os.listdir("/proc/self/fd")) - before[0],
        processes_left=len(_children() - before[2]),
        threads_left=max(0, threading.active_count() - before[1]),
        wall_seconds=wall,
        bound_seconds=bound_seconds,
        cancel_seconds=cancel_seconds,
        unlabelled=sum(_is_unlabelled(episode, allowed) for episode in ended),
    )


def is_grading(ended: Sequence[Episode]) -> bool:
    """Whether verdicts are under way, so that a run is stopped in the middle of them."""
    return NUM_GRADING["now"] > 0 and len(ended) > 0


def _row(ended: Sequence[Episode], progress: RunProgress, **figures: Any) -> Row:
    ids = Counter(episode.id for episode in ended)
    is_counted = progress.submitted == (
        progress.completed + progress.failed + progress.cancelled + progress.in_flight
    )
    unaccounted = progress.submitted - len(ids)
    if figures["cancel_seconds"] is not None and is_counted:
        # Episodes that had ended but were not handed over when the run was stopped.
        unaccounted -= progress.cancelled + (progress.completed + progress.failed - len(ids))
    return Row(
        submitted=progress.submitted,
        returned=len(ended),
        lost=unaccounted,
        duplicated=len(ended) - len(ids),
        completed=sum(not episode.failed for episode in ended),
        failed=sum(episode.failed for episode in ended),
        cancelled=progress.cancelled,
        false_rewards=sum(map(_is_false, ended)),
        stuck_threads=progress.hung_calls,
        retried=progress.retried,
        reasons=dict(Counter(str(e.termination_reason) for e in ended).most_common()),
        **figures,
    )


def _engine(server: FaultServer, setting: RunSetting) -> AgentExecutionEngine:
    deadlines = setting.deadlines
    request_seconds = deadlines.request_seconds
    return AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=FaultyEnv,
        engine_name="openai",
        rollout_engine_args={
            "base_url": server.base_url,
            "request_timeout": request_seconds,
            "max_retries": deadlines.max_retries,
        },
        tokenizer=ByteTokenizer(),
        isolation=setting.isolation,
        n_parallel_agents=setting.num_parallel,
        step_timeout=deadlines.step_seconds,
        # Deadlines of requests come first: the client owns their retries.
        call_timeout=2.0 * deadlines.delay("unanswered"),
        trajectory_timeout=60.0 + 10.0 * request_seconds,
    )


async def _play(
    engine: AgentExecutionEngine,
    tasks: Sequence[dict[str, Any]],
    stop: Stop | None,
    restart: tuple[FaultServer, int | None],
) -> tuple[list[Episode], int, float | None]:
    """Return the episodes, the tasks that the run left behind, and how long cancelling took."""
    ended: list[Episode] = []

    async def consume() -> None:
        async for episode in engine.stream_tasks(tasks):
            ended.append(episode)
            if len(ended) == restart[1]:
                await asyncio.to_thread(restart[0].restart)

    run = asyncio.create_task(consume())
    cancel_seconds: float | None = None
    while stop is not None and not run.done():
        if stop(ended):
            start = time.perf_counter()
            run.cancel()
            await asyncio.wait({run})
            cancel_seconds = time.perf_counter() - start
            break
        await asyncio.sleep(0.002)
    if cancel_seconds is None:
        await run
    await asyncio.sleep(0)
    return ended, len(asyncio.all_tasks()) - 1, cancel_seconds


def _is_false(episode: Episode) -> bool:
    if episode.failed:
        return episode.reward is not None
    return episode.reward != true_reward(episode.task["episode"], NUM_TURNS)


def _is_unlabelled(episode: Episode, allowed: frozenset[str] | None) -> bool:
    if not episode.failed:
        return False
    faults = episode.task["faults"]
    is_explained = allowed is None or (bool(faults) and episode.termination_reason in allowed)
    return not episode.error or not is_explained


def _release(num_threads: int) -> None:
    """Let hanging environments go on, and wait for their threads to end."""
    RELEASE.set()
    deadline = time.monotonic() + 10.0
    while threading.active_count() > num_threads and time.monotonic() < deadline:
        time.sleep(0.01)
    RELEASE.clear()


def _children() -> set[int]:
    """Ids of this process's children, those that ended and were not waited for included."""
    found: set[int] = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path(f"/proc/{entry}/stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(entry))
    return found
