"""A game for several players as a workflow, so that matches run, retry and train as others do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import ChatAgent
from rllm_agents.errors import UserError
from rllm_agents.match import MatchSetting, run_match, seats_of
from rllm_agents.match_players import Player, Script
from rllm_agents.types import Episode
from rllm_agents.workflow import Workflow


class MatchWorkflow(Workflow):
    """One match a task; the engine's model plays every seat that no opponent takes.

    A task is ``{"seed": 3}``, from which the environment draws the game, or the game itself as
    ``reset(options={"task": ...})`` takes it. A seat's trajectory has the seat's name as its role,
    so players of one seat and task are compared with each other.

    Args:
        env: See `run_match`; an id, or a function that makes the environment.
        opponents: Who plays the other seats, by their names.
        agent_cls: Agent of the model's seats.
        agent_args: Keyword arguments of `agent_cls`.
        env_kwargs: Arguments of the environment.
        max_steps: Most turns of one player.
        **kwargs: Of `Workflow`.
    """

    def __init__(
        self,
        *,
        env: str | Callable[[], Any],
        opponents: Mapping[str, Player | Script] | None = None,
        agent_cls: Callable[..., BaseAgent] = ChatAgent,
        agent_args: Mapping[str, Any] | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        max_steps: int = 64,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._env, self._env_kwargs = env, dict(env_kwargs or {})
        self._agent_cls, self._agent_args = agent_cls, dict(agent_args or {})
        self._opponents, self._max_steps = dict(opponents or {}), max_steps
        self._seats = seats_of(env, self._env_kwargs)
        unknown = [name for name in self._opponents if name not in self._seats]
        if unknown or len(self._opponents) == len(self._seats):
            raise UserError(
                f"opponents must leave a seat of {', '.join(self._seats)} to the model, got "
                f"{', '.join(self._opponents)}"
            )

    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode:
        """Play one match."""
        engine = self.rollout_engine
        model, run = engine.setting.model, engine.run
        player = Player(
            agent=self._agent_cls,
            engine=model.engine,
            agent_args=self._agent_args,
            renderer=model.renderer,
            sampling=run.sampling,
        )
        is_seed = set(task) == {"seed"}
        return await run_match(
            self._env,
            {seat: self._opponents.get(seat, player) for seat in self._seats},
            seed=task["seed"] if is_seed else None,
            task=None if is_seed or not task else task,
            match_id=uid,
            setting=MatchSetting(
                env_kwargs=self._env_kwargs,
                limits=replace(model.limits, max_steps=self._max_steps),
                threads=engine.setting.threads,
            ),
        )
