"""How the environments of an engine are made: here, or in processes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.isolated_envs import EnvProcesses, IsolatedEnv
from rllm_agents.limits import RolloutLimits
from rllm_envs import GymEnv

ISOLATIONS = ("thread", "process")


class EnvMaker:
    """Makes the environment of each episode.

    Args:
        env_class: Its ``from_dict({**task, **env_args})`` makes one; None where nothing is made.
        env_args: Added to every task.
        isolation: "thread" or "process".
        limits: Time limits of calls.

    Raises:
        UserError: There is no such isolation, or the class cannot be made in another process.
    """

    def __init__(
        self, env_class: Any, env_args: Mapping[str, Any], isolation: str, limits: RolloutLimits
    ) -> None:
        if isolation not in ISOLATIONS:
            raise UserError(f"isolation must be one of {', '.join(ISOLATIONS)}, got {isolation!r}")
        self._env_class = env_class
        self._env_args = env_args
        self._limits = limits
        is_isolated = isolation == "process"
        if is_isolated and env_class is None:
            raise UserError('isolation="process" is for environments, and there is no env_class')
        self._processes = EnvProcesses(env_class) if is_isolated else None
        self.may_block = not is_isolated and may_block_when_made(env_class)
        """Whether `make` may block; an IsolatedEnv only takes its process when it is used."""

    @property
    def num_processes(self) -> int:
        """Processes that live."""
        return 0 if self._processes is None else self._processes.num_living

    def make(self, task: Mapping[str, Any]) -> Any:
        """Make the environment of a task."""
        fields = {**task, **self._env_args}
        if self._processes is None:
            return self._env_class.from_dict(fields)
        limits = self._limits
        return IsolatedEnv(
            self._processes, fields, limits.step_timeout_seconds, limits.close_timeout_seconds
        )

    def close(self) -> None:
        """End all processes."""
        if self._processes is not None:
            self._processes.close()


def may_block_when_made(env_class: Any) -> bool:
    """Whether constructing an environment of a class may block."""
    # gymnasium.make returns at once. On the event loop, episodes begin in the order of requests
    # in every run, which keeps batches of the rollout engine, and so the last bits, the same.
    if isinstance(env_class, type) and issubclass(env_class, GymEnv):
        return False
    return getattr(env_class, "blocking", True) is not False
