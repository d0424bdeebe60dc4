"""What plays whole episodes in place of an agent and an environment that take turns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias, runtime_checkable

from rllm_agents.rollout import RolloutSetting
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode

PlayEpisode: TypeAlias = Callable[[RolloutRequest], Awaitable[Episode]]
"""Plays one request to its Episode, whatever happens in it; only cancellation is raised."""


@runtime_checkable
class EpisodePlayer(Protocol):
    """Plays episodes itself. Given to an AgentExecutionEngine in place of an agent class."""

    def playing(
        self, setting: RolloutSetting, env_args: Mapping[str, Any]
    ) -> AbstractAsyncContextManager[PlayEpisode]:
        """Make ready to play on the running event loop, until the block ends.

        Args:
            setting: What all episodes share.
            env_args: Added to every task.
        """
        ...
