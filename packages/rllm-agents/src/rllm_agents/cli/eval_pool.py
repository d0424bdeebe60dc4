"""`rllm eval` and `rllm serve` over several engines in processes of their own."""

from __future__ import annotations

from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.cli.eval_settings import EngineSettings
from rllm_agents.errors import UserError
from rllm_agents.rollout_engines import find_engine

_OF_POOLS = ("num_cpus_per_engine", "num_gpus_per_engine")


def check_pool_settings(engine: EngineSettings) -> None:
    """Refuse settings of a pool that cannot be or do nothing.

    Raises:
        UserError: With the setting, and what to do.
    """
    if engine.num_engines is None:
        for key in _OF_POOLS:
            if getattr(engine, key) is not None:
                raise UserError(f"engine.{key} does nothing without engine.num_engines")
        return
    check_count("engine.num_engines", engine.num_engines)
    for key in _OF_POOLS:
        number = getattr(engine, key)
        if number is not None and number < 0:
            raise UserError(f"engine.{key} must be 0 or more, or null, got {number}")
    find_engine("pool")


def with_pool(
    engine: EngineSettings, arguments: dict[str, Any], torch_threads: int | None
) -> tuple[str, dict[str, Any]]:
    """Return the rollout engine to make and its arguments: a pool where several are asked for.

    Args:
        engine: Checked settings.
        arguments: Of one engine.
        torch_threads: Of one operation of an engine in a process of its own.
    """
    if engine.num_engines is None:
        return engine.name, arguments
    cpus = engine.num_cpus_per_engine
    pool = {
        "engine": engine.name,
        "num_engines": engine.num_engines,
        "model": arguments["model"],
        "engine_args": {key: value for key, value in arguments.items() if key != "model"},
        "num_gpus": engine.num_gpus_per_engine,
        "torch_threads": torch_threads,
        **({} if cpus is None else {"num_cpus": cpus}),
    }
    return "pool", pool
