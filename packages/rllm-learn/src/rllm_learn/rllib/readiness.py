"""Wait for actors, but not for ever: say what is missing instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError, RayTaskError

from rllm_learn.errors import ConfigError, LearnError


class StartError(LearnError):
    """Actors could not be started."""


def wait_until_ready(
    pending: Mapping[str, Sequence[Any]], asked: Mapping[str, float], *, timeout: float
) -> None:
    """Return when every reference has resolved.

    Args:
        pending: What is waited for, in words -> references.
        asked: Resources that all actors need together, "CPU" and "GPU" for example.
        timeout: Seconds.

    Raises:
        ConfigError: Ray has not the resources; the message says how many are missing.
        StartError: An actor's construction failed, or the time is over though there is room.
    """
    names = {ref: name for name, refs in pending.items() for ref in refs}
    ready, late = ray.wait(list(names), num_returns=len(names), timeout=timeout)
    for ref in ready:
        try:
            ray.get(ref)
        except (RayActorError, RayTaskError) as error:
            cause = getattr(error, "cause", None)
            raise StartError(f"{names[ref]} could not be started: {error}") from (cause or error)
    if not late:
        return
    counts = {name: sum(names[ref] == name for ref in late) for name in pending}
    waiting = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    cluster = ray.cluster_resources()
    missing = {
        kind: number - cluster.get(kind, 0.0)
        for kind, number in asked.items()
        if number > cluster.get(kind, 0.0) + 1e-6
    }

    def listed(amounts: Mapping[str, float]) -> str:
        return ", ".join(f"{amounts.get(k, 0.0):g} {k}" for k, number in asked.items() if number)

    needs, has = listed(asked), listed(cluster)
    if missing:
        raise ConfigError(
            f"not started after {timeout:g} s: {waiting}. The actors need {needs} together, the "
            f"cluster has {has}: ask for fewer actors, give each a fraction (num_cpus_per_learner, "
            "num_cpus_per_env_runner, num_cpus_per_engine), or start Ray with more"
        )
    left = listed(ray.available_resources())
    raise StartError(
        f"not started after {timeout:g} s: {waiting}. The actors need {needs} together; the "
        f"cluster has {has}, of which {left} is free now: end what else runs on it, or wait "
        "longer with .fault_tolerance(init_timeout_s=...)"
    )
