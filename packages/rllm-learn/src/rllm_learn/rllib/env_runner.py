"""RLlib's env runners, playing episodes of language agents; and a group of them that loses none."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium
import ray
from ray.exceptions import RayError, RayTaskError
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.env import INPUT_ENV_SPACES
from ray.rllib.env.env_runner import EnvRunner
from ray.rllib.env.env_runner_group import EnvRunnerGroup
from ray.rllib.utils.checkpoints import Checkpointable

from rllm_agents import AgentExecutionEngine, Episode, RolloutRequest
from rllm_agents.loop_thread import LoopThread
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_learn.assembly import execution_engine
from rllm_learn.config import TrainerConfig
from rllm_learn.errors import TrainingError
from rllm_learn.players import Players
from rllm_learn.rllib.liveness import SIGNS_OF_LIFE, Living, first_done

logger = logging.getLogger(__name__)

_PROBE_SECONDS = 0.5
_LONGEST_WITHOUT_RUNNERS = 120.0
"""Seconds after which a group all of whose runners are lost gives up."""


@dataclass(frozen=True)
class PlaySetting:
    """How one set of tasks is played. Made by the algorithm, sent to every runner."""

    name: str
    """"training" or "evaluation": a runner keeps one execution engine of each name."""
    config: TrainerConfig
    players: Players
    env_args: Mapping[str, Any]
    tokenizer: Any
    engine: RolloutEngine
    """The engine of this process, or a pool's client."""


class LLMEnvRunner(Living, EnvRunner, Checkpointable):
    """Plays episodes; holds neither weights nor rollout engines, so it is cheap to lose."""

    def __init__(self, *, config: Any, **kwargs: Any) -> None:
        """Take an `LLMAlgorithmConfig` and what RLlib says of this runner."""
        super().__init__(config=config, **kwargs)
        self._loop: LoopThread | None = None
        self._engines: dict[str, AgentExecutionEngine] = {}

    def sample(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, requests: Sequence[RolloutRequest], setting: PlaySetting
    ) -> list[Episode]:
        """Run one episode of each request, in their order.

        Args:
            requests: What to play.
            setting: How.
        """
        if self._loop is None:
            self._loop = LoopThread("env-runner")
        if setting.name not in self._engines:
            self._engines[setting.name] = execution_engine(
                setting.config,
                setting.players,
                setting.env_args,
                setting.tokenizer,
                rollout_engine=setting.engine,
            )
        return self._loop.run(self._engines[setting.name].execute_requests(requests))

    def assert_healthy(self) -> None:
        """Say that the constructor has finished."""

    def make_env(self) -> None:
        """Make nothing: each episode makes its environment."""

    def make_module(self) -> None:
        """Make nothing: rollout engines hold the policy."""

    def get_spaces(self) -> dict[str, tuple[gymnasium.Space, gymnasium.Space]]:
        """Return text for observations and actions."""
        text = gymnasium.spaces.Text(65_536)
        return {INPUT_ENV_SPACES: (text, text), DEFAULT_MODULE_ID: (text, text)}

    def get_metrics(self) -> Any:
        """Return nothing of its own: figures come from the episodes."""
        return self.metrics.reduce()

    def get_state(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return an empty state."""
        return {}

    def set_state(self, state: dict[str, Any]) -> None:
        """Take none."""

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what it was made with."""
        return (), {"config": self.config}

    def stop(self) -> None:
        """End threads; again does nothing."""
        for engine in self._engines.values():
            engine.close()
        self._engines.clear()
        if self._loop is not None:
            self._loop.close()
            self._loop = None


class LLMEnvRunnerGroup(EnvRunnerGroup):
    """RLlib's group, whose runners give signs of life while they play."""

    def _make_worker(self, **kwargs: Any) -> Any:
        self._remote_args["concurrency_groups"] = dict(SIGNS_OF_LIFE)
        return super()._make_worker(**kwargs)


def play(
    group: EnvRunnerGroup,
    requests: Sequence[RolloutRequest],
    setting: PlaySetting,
    *,
    hang_timeout: float,
) -> list[Episode]:
    """Run one episode of each request on a group's runners.

    What a runner that dies or hangs had been given is played again by others: requests carry their
    seeds, so it comes out as it would have.

    Args:
        group: With remote runners, or a local one alone.
        requests: What to play.
        setting: How.
        hang_timeout: Seconds without a sign of life after which a runner is taken to hang.

    Returns:
        Episodes in the order of requests.

    Raises:
        TrainingError: All runners are lost and none comes back.
    """
    if group.num_remote_env_runners() == 0:
        local: Any = group.local_env_runner
        return local.sample(requests, setting)
    boxed = ray.put(setting)
    todo = _shares(requests, group.num_remote_env_runners())
    running: dict[Any, tuple[int, list[RolloutRequest]]] = {}
    episodes: dict[str, Episode] = {}
    while todo or running:
        if todo:
            _hand_out(group, todo, running, boxed)
        actors = group._worker_manager.actors()
        calls = {ref: actors[runner] for ref, (runner, _) in running.items()}
        for ref in first_done(calls, hang_timeout=hang_timeout):
            runner, share = running.pop(ref)
            try:
                episodes.update((episode.id, episode) for episode in ray.get(ref))
            except RayTaskError:
                raise
            except RayError as error:  # its process, its machine, or its answer is gone
                first = str(error).strip().splitlines()[0]
                logger.warning(
                    "env runner %d was lost; its %d episodes are played again: %s",
                    runner,
                    len(share),
                    first,
                )
                group._worker_manager.set_actor_state(runner, healthy=False)
                todo.append(share)
    return [episodes[request.id] for request in requests]


def _shares(requests: Sequence[RolloutRequest], count: int) -> list[list[RolloutRequest]]:
    """Cut requests into `count` runs of neighbours, which share a prompt more often than not."""
    size = -(-len(requests) // count)
    return [list(requests[i : i + size]) for i in range(0, len(requests), size)]


def _hand_out(
    group: EnvRunnerGroup,
    todo: list[list[RolloutRequest]],
    running: dict[Any, tuple[int, list[RolloutRequest]]],
    setting: Any,
) -> None:
    """Give every share to the healthy runner that has fewest; waits while there is none."""
    deadline = time.monotonic() + _LONGEST_WITHOUT_RUNNERS
    while not (healthy := group.healthy_env_runner_ids()):
        if time.monotonic() > deadline:
            raise TrainingError("all env runners are lost, and none came back")
        time.sleep(_PROBE_SECONDS)
        group.probe_unhealthy_env_runners()
    actors = group._worker_manager.actors()
    while todo:
        busy = [runner for runner, _ in running.values()]
        runner = min(healthy, key=busy.count)
        share = todo.pop(0)
        running[actors[runner].sample.remote(share, setting)] = (runner, share)
