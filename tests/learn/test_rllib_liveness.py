"""Who hangs is found and ended; who is busy is left alone. On real Ray."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest
import ray
from ray.exceptions import RayActorError

from rllm_learn.rllib.liveness import SIGNS_OF_LIFE, Living, finish, first_done

HANG_TIMEOUT = 3.0
"""More than a thread may have to wait for its turn on a busy machine."""


@pytest.fixture(scope="module")
def workers() -> Iterator[list[Any]]:
    class Worker(Living):  # in a function, since Ray's workers do not find this module
        def pid(self) -> int:
            return os.getpid()

        def work(self, seconds: float) -> float:
            time.sleep(seconds)
            return seconds

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    made = ray.remote(concurrency_groups=dict(SIGNS_OF_LIFE))(Worker)
    both = [made.options(num_cpus=0.5, max_restarts=1).remote() for _ in range(2)]
    ray.get([worker.pid.remote() for worker in both])
    yield both
    ray.shutdown()


def test_a_call_that_takes_longer_than_the_bound_is_waited_for(workers: list[Any]) -> None:
    first, second = workers
    calls = {first.work.remote(8.0): first, second.work.remote(0.0): second}
    assert finish(calls, hang_timeout=HANG_TIMEOUT) == [8.0, 0.0]


def test_a_process_that_is_stopped_is_ended_within_the_bound_and_there_again(
    workers: list[Any],
) -> None:
    stopped, other = workers
    process = ray.get(stopped.pid.remote())
    calls = {stopped.work.remote(0.1): stopped, other.work.remote(0.2): other}
    (pending, _) = calls
    os.kill(process, signal.SIGSTOP)
    deadline = time.monotonic() + 60.0
    while pending in calls and time.monotonic() < deadline:
        for reference in first_done(calls, hang_timeout=HANG_TIMEOUT):
            del calls[reference]
    assert pending not in calls
    with pytest.raises(RayActorError):
        ray.get(pending)
    assert ray.get(other.work.remote(0.0)) == 0.0
    while time.monotonic() < deadline:
        try:
            again = ray.get(stopped.pid.remote())
            break
        except RayActorError:
            time.sleep(0.2)
    assert again != process
