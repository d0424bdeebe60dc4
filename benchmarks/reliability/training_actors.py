"""What becomes of training over RLlib when one of its processes, or a machine, is lost or hangs."""

from __future__ import annotations

import contextlib
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import ray
from ray.cluster_utils import Cluster
from ray.exceptions import RayActorError
from training_cluster import hold_room, local_ray, two_nodes
from training_driver import FaultRow

from rllm_learn.rllib import GRPOConfig
from rllm_learn.rllib.readiness import StartError

HANG_TIMEOUT = 5.0
LEARNING_RATE = 3e-4
"""So low that rewards are still neither 0 nor 1 after 140 steps: equal ones mean something."""
_MARGIN = 16.0
"""Seconds beside `HANG_TIMEOUT` that finding a loss may take: 5 between looks, 1 for a second look,
10 until Ray has ended the process."""
_INIT_TIMEOUT = 240.0
_NODE_INIT_TIMEOUT = 60.0
_LONGEST_STEP = 600.0
_AGENTS = ("ray::DashboardAgent", "ray::RuntimeEnvAgent")
_AGENTS_END = 180.0
"""Seconds after which these two helpers of Ray's, which hold nothing of ours, have ended too."""
_SIGNS = ("lost", "hangs")
"""Words of the log that say that a loss was found."""


def actor_rows(times: int, seed: int) -> Iterator[FaultRow]:
    """Kill and stop learners, engines and env runners in the middle of steps.

    Args:
        times: Of each kind and signal.
        seed: Draws the moments.
    """
    draw = random.Random(seed)
    with local_ray(), _watching() as noticed:
        undisturbed = _Undisturbed()
        algo = _config(num_learners=2, num_env_runners=2, num_engines=1).build_algo()
        rewards = [_step(algo)]
        began = time.monotonic()
        rewards.append(_step(algo))
        step_seconds = time.monotonic() - began
        for name, find in (
            ("a learner", _learner),
            ("an engine", _engine),
            ("an env runner", _env_runner),
        ):
            for word, number in (("kill -9", signal.SIGKILL), ("SIGSTOP", signal.SIGSTOP)):
                row = FaultRow(f"{word} of {name}", runs=1)
                row.bound_seconds = HANG_TIMEOUT + _MARGIN + step_seconds
                began = time.monotonic()
                for _ in range(times):
                    process = find(algo)
                    noticed.clear()
                    delay = draw.uniform(0.0, step_seconds)
                    strike = _Strike(process, number, delay)
                    rewards.append(_step(algo))
                    strike.join()
                    if not noticed:  # it fell after what the process had to do
                        rewards.append(_step(algo))
                    _account(row, strike, noticed)
                    row.from_last_save += _are_equal(row, rewards, undisturbed)
                    row.processes_left += _is_left(process)
                row.equal_runs = int(_are_equal(row, rewards, undisturbed))
                row.seconds = time.monotonic() - began
                yield row
        algo.stop()
        yield _driver_row(times, undisturbed, step_seconds)
        undisturbed.stop()


def _driver_row(times: int, undisturbed: _Undisturbed, step_seconds: float) -> FaultRow:
    """Kill a driver and with it Ray, again and again: no process stays, and the next goes on."""
    row = FaultRow("kill -9 of a driver that started Ray", runs=1)
    began = time.monotonic()
    draw = random.Random(times)
    with tempfile.TemporaryDirectory(prefix="rllm-driver-") as scratch:
        rewards: dict[int, float] = {}
        agents: list[psutil.Process] = []
        for _ in range(times):
            saved = _saves(Path(scratch))
            last = int(saved[-1].name[5:]) if saved else 0
            command = [sys.executable, __file__, scratch]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as driver:
                assert driver.stdout is not None
                lines = [driver.stdout.readline()]
                time.sleep(draw.uniform(0.0, step_seconds))
                started = psutil.Process(driver.pid).children(recursive=True)
                driver.kill()
                lines += driver.stdout.read().splitlines()
            pairs = [line.split() for line in lines if line.strip()]
            rewards |= {int(step): float(reward) for step, reward in pairs}
            row.struck += 1
            row.from_last_save += int(pairs[0][0]) == last + 1
            if len(started) < 5:
                row.problems.append(f"only {len(started)} processes were there")
            _, left = psutil.wait_procs(started, timeout=HANG_TIMEOUT + _MARGIN)
            of_ray = [process for process in left if _name(process) in _AGENTS]
            row.processes_left += len(left) - len(of_ray)
            agents += of_ray
    row.processes_left += len(psutil.wait_procs(agents, timeout=_AGENTS_END)[1])
    expected = undisturbed.rewards(max(rewards))
    row.equal_runs = int(all(expected[step - 1] == reward for step, reward in rewards.items()))
    row.seconds = time.monotonic() - began
    return row


def _name(process: psutil.Process) -> str:
    """Return the first word of a process' command line; "" where it has ended."""
    try:
        return next(iter(process.cmdline()), "")
    except psutil.NoSuchProcess:
        return ""


def _saves(directory: Path) -> list[Path]:
    return sorted(directory.glob("step-*"))


def _train_and_save(directory: Path) -> None:
    """Go on from the last save, and save and print every step, until killed."""
    with local_ray():
        algo = _config(num_learners=1, num_env_runners=1, num_engines=1).build_algo()
        if saved := _saves(directory):
            algo.restore_from_path(str(saved[-1]))
        while True:
            reward = _step(algo)
            step = algo._progress.step
            whole = directory / f"step-{step:04d}"
            temporary = directory / f".step-{step:04d}"
            algo.save_to_path(str(temporary))
            temporary.rename(whole)  # whole or absent
            print(step, repr(reward), flush=True)


def node_rows(scratch: Path) -> Iterator[FaultRow]:
    """Take one of two machines away: with room on the other, and without.

    Args:
        scratch: An empty directory, for a save.
    """
    with local_ray():
        began = time.monotonic()
        undisturbed = _Undisturbed()
        expected = undisturbed.rewards(5)
        undisturbed.stop()
        step_seconds = (time.monotonic() - began) / 5
    yield _node_with_room(expected, step_seconds)
    yield _node_without_room(expected, scratch)


def _node_with_room(expected: list[float], step_seconds: float) -> FaultRow:
    row = FaultRow("one of two machines, with room on the other", runs=1)
    with two_nodes() as (cluster, second), _watching() as noticed:
        began = time.monotonic()
        # As long as the room is held, one of the runners does not fit beside the rest.
        held = hold_room(cluster, 0.9)
        config = _config(num_learners=0, num_env_runners=2, num_engines=1, runner_cpus=0.7)
        algo = config.build_algo()
        ray.kill(held)
        rewards = [_step(algo), _step(algo)]
        noticed.clear()
        strike = _NodeStrike(cluster, second, step_seconds / 2)
        rewards.append(_step(algo))
        strike.join()
        rewards += [_step(algo), _step(algo)]
        row.bound_seconds = HANG_TIMEOUT + _MARGIN + step_seconds
        _account(row, strike, noticed)
        row.from_last_save = row.equal_runs = int(rewards == expected)
        row.seconds = time.monotonic() - began
        algo.stop()
    return row


def _node_without_room(expected: list[float], scratch: Path) -> FaultRow:
    """One clear error; then the save goes on with what is left."""
    row = FaultRow("one of two machines, without room on the other", runs=1)
    with two_nodes() as (cluster, second), _watching() as noticed:
        began = time.monotonic()
        # Beside a learner, an env runner and the engine, all that there is.
        held = hold_room(cluster, 0.5)
        config = _config(num_learners=2, num_env_runners=1, num_engines=1, learner_cpus=1.0)
        algo = config.fault_tolerance(init_timeout_s=_NODE_INIT_TIMEOUT).build_algo()
        rewards = [_step(algo), _step(algo)]
        path = algo.save_to_path(str(scratch / "saved"))
        noticed.clear()
        strike = _NodeStrike(cluster, second, 0.0)
        strike.join()
        try:
            _step(algo)
            row.problems.append("went on with fewer learners than it was given")
        except StartError as error:
            if "learners" not in str(error) or "CPU" not in str(error):
                row.problems.append(f"unclear: {error}")
        row.bound_seconds = HANG_TIMEOUT + _MARGIN + _NODE_INIT_TIMEOUT
        _account(row, strike, noticed)
        algo.stop()
        ray.kill(held)
        again = _config(num_learners=1, num_env_runners=1, num_engines=1).build_algo()
        again.restore_from_path(path)
        rewards += [_step(again) for _ in expected[2:]]
        row.from_last_save = row.equal_runs = int(rewards == expected)
        row.seconds = time.monotonic() - began
        again.stop()
    return row


class _Strike:
    """Sends a signal to a process after a while, from a thread."""

    def __init__(self, process: int, number: int, delay: float) -> None:
        self._process, self._number = process, number
        self.time = float("inf")
        """When it struck; never, as long as it has not."""
        self._timer = threading.Timer(delay, self._strike)
        self._timer.start()

    def _strike(self) -> None:
        self.time = time.monotonic()
        os.kill(self._process, self._number)

    def join(self) -> None:
        """Wait until it has struck."""
        self._timer.join()


class _NodeStrike(_Strike):
    """Takes a machine away, all its processes killed."""

    def __init__(self, cluster: Cluster, node: Any, delay: float) -> None:
        self._cluster, self._node = cluster, node
        super().__init__(0, signal.SIGKILL, delay)

    def _strike(self) -> None:
        self.time = time.monotonic()
        self._cluster.remove_node(self._node, allow_graceful=False)


def _account(row: FaultRow, strike: _Strike, noticed: list[float]) -> None:
    row.struck += 1
    if not noticed:
        row.problems.append("the log does not say that anything was lost")
        return
    found = max(0.0, min(noticed) - strike.time)
    row.found_seconds = max(row.found_seconds or 0.0, found)


def _are_equal(row: FaultRow, rewards: list[float], undisturbed: _Undisturbed) -> bool:
    """Whether steps came out as undisturbed ones; the first that did not is a problem."""
    pairs = zip(rewards, undisturbed.rewards(len(rewards)), strict=True)
    first = next(((i, *pair) for i, pair in enumerate(pairs, start=1) if pair[0] != pair[1]), None)
    if first is not None:
        row.problems.append("step {}: reward {}, undisturbed {}".format(*first))
    return first is None


def _is_left(process: int) -> bool:
    """Whether a process that was struck is still there."""
    try:
        psutil.Process(process).wait(timeout=_MARGIN)
    except psutil.NoSuchProcess:
        return False
    except psutil.TimeoutExpired:
        return True
    return False


def _config(
    *,
    num_learners: int,
    num_env_runners: int,
    num_engines: int,
    learner_cpus: float = 0.5,
    runner_cpus: float = 0.25,
) -> GRPOConfig:
    return (
        GRPOConfig()
        .environment("rllm/Calculator-v0")
        .model("tiny")
        .lora(rank=8)
        .env_runners(num_env_runners=num_env_runners, num_cpus_per_env_runner=runner_cpus)
        .engine(num_engines=num_engines, num_cpus=0.25)
        .learners(num_learners=num_learners, num_cpus_per_learner=learner_cpus)
        .training(lr=LEARNING_RATE, tasks_per_step=4, group_size=4)
        .evaluation(evaluation_duration=8)
        .fault_tolerance(hang_timeout_s=HANG_TIMEOUT, init_timeout_s=_INIT_TIMEOUT)
    )


class _Undisturbed:
    """The same run in this process, made as far as is asked for."""

    def __init__(self) -> None:
        self._algo = _config(num_learners=0, num_env_runners=0, num_engines=0).build_algo()
        self._rewards: list[float] = []

    def rewards(self, steps: int) -> list[float]:
        """Return the rewards of the first steps."""
        while len(self._rewards) < steps:
            self._rewards.append(_step(self._algo))
        return self._rewards[:steps]

    def stop(self) -> None:
        self._algo.stop()


def _step(algo: Any) -> float:
    """Train until the next step is complete; return its reward."""
    before = algo._progress.step
    deadline = time.monotonic() + _LONGEST_STEP
    while time.monotonic() < deadline:
        result = algo.train()
        if algo._progress.step > before:
            return float(result["env_runners"]["episode_return_mean"])
    raise TimeoutError(f"step {before} was not complete after {_LONGEST_STEP:g} s")


def _learner(algo: Any) -> int:
    return algo.learner_group.foreach_learner(lambda _: os.getpid())[1]


def _engine(algo: Any) -> int:
    pool = algo._parts._pool
    while True:
        try:
            ray.get(pool.readiness())  # one that still starts has nothing to lose
            return pool.process_ids()[0]
        except RayActorError:
            time.sleep(0.5)


def _env_runner(algo: Any) -> int:
    group = algo.env_runner_group
    return group.foreach_env_runner(lambda _: os.getpid(), local_env_runner=False)[0]


@contextlib.contextmanager
def _watching() -> Iterator[list[float]]:
    """Yield a list to which the time is added whenever the log says that something was lost."""
    noticed: list[float] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if any(word in record.getMessage() for word in _SIGNS):
                noticed.append(time.monotonic())

    handler = Handler(level=logging.WARNING)
    loggers = [logging.getLogger(name) for name in ("rllm_learn", "rllm_agents")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield noticed
    finally:
        for logger in loggers:
            logger.removeHandler(handler)


if __name__ == "__main__":
    _train_and_save(Path(sys.argv[1]))
