"""Who plays a match: models with agents, and scripts."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from rllm_agents.agent import BaseAgent
from rllm_agents.agent_calls import (
    call_agent,
    conversation_of,
    credit_steps,
    settle_step,
    trajectory_of,
)
from rllm_agents.env_calls import EnvSession
from rllm_agents.errors import EpisodeFailure, UserError
from rllm_agents.limits import RolloutLimits
from rllm_agents.model_calls import Conversation, ModelSetting, derive_seed
from rllm_agents.renderer import Renderer
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.types import (
    Action,
    SamplingParams,
    Step,
    TerminationReason,
    Trajectory,
)

Script: TypeAlias = str | Callable[[Any, dict[str, Any]], Any]
"""A player without a model: "expert" (the game's own strong policy), "random" (a legal action,
uniformly), or a function of observation and info that returns an action."""

SCRIPTS = ("expert", "random")
_RAISED = (
    TerminationReason.ENV_EXCEPTION,
    TerminationReason.ENV_EXIT,
    TerminationReason.ENV_LEAKED_CANCEL,
)


@dataclass(frozen=True)
class Player:
    """A model in the seat of a game. Made by users, read by run_match."""

    agent: Callable[..., BaseAgent]
    """Class of the agent; a match makes one of its own."""
    engine: RolloutEngine
    """What samples: one for each model. Adapters of one model: `LLMPolicy.player(adapter=...)`."""
    agent_args: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the agent."""
    renderer: Renderer | None = None
    """Of the model's tokenizer; None where the engine works on text."""
    sampling: SamplingParams = field(default_factory=SamplingParams)
    """How tokens are drawn; every seat and turn of a match has a stream of its own."""
    learns: bool = True
    """False: it is an opponent whose tokens are not for training."""
    adapter: str = ""
    """Which of the engine's sets of weights plays; see `GenerationRequest.adapter`."""
    name: str = ""
    """Role of its trajectory; "" is the seat's name. Equal roles of a task are compared."""


class Seat(ABC):
    """One player during one match: acts, is rewarded, and leaves a trajectory."""

    def __init__(self, name: str, *, learns: bool) -> None:
        self.name = name
        self.learns = learns
        self.num_turns = 0
        self.total = 0.0
        self.trajectory = Trajectory(name=name)
        self._rewarded: list[tuple[Step, float]] = []
        self._early = 0.0

    @abstractmethod
    async def start(self) -> None:
        """Get ready.

        Raises:
            EpisodeFailure: The player cannot play.
        """

    @abstractmethod
    async def act(self, observation: Any, reward: float, info: dict[str, Any]) -> Any:
        """Return what the player does now.

        Args:
            observation: What it sees.
            reward: Its own since it acted last.
            info: From the environment.

        Raises:
            EpisodeFailure: The player's agent, engine or script failed.
        """

    @abstractmethod
    def end(self, observation: Any, reward: float, info: dict[str, Any]) -> None:
        """Show the player how it ended."""

    def credit(self, reward: float, info: dict[str, Any], *, is_over: bool = False) -> None:
        """Give the player's last step what it earned; before any step, the first will have it."""
        self.total += reward
        if not self._rewarded:
            self._early += reward
            return
        step, so_far = self._rewarded[-1]
        self._rewarded[-1] = step, so_far + reward
        step.info = {**step.info, **info}
        step.done = is_over

    def finish(self, *, gamma: float, failed: bool) -> Trajectory:
        """Return the trajectory with its rewards; None where the match failed."""
        credit_steps(self._rewarded, gamma)
        trajectory = self.trajectory
        trajectory.name = self.name if trajectory.name == Trajectory().name else trajectory.name
        trajectory.reward = None if failed else self.total
        return trajectory

    def _add(self, step: Step) -> None:
        self._rewarded.append((step, self._early))
        self._early = 0.0
        self.num_turns += 1


class ModelSeat(Seat):
    """A model's seat.

    A player whose response is cut off, or that has no token left for one, passes the empty text:
    the game takes it for an illegal move, so going on without end wins nothing.
    """

    def __init__(
        self, name: str, player: Player, *, match_id: str, limits: RolloutLimits, seed: int | None
    ) -> None:
        super().__init__(player.name or name, learns=player.learns)
        self._player = player
        sampling = player.sampling
        drawn = derive_seed(seed if sampling.seed is None else sampling.seed, match_id, name)
        self.conversation = Conversation(
            ModelSetting(player.engine, player.renderer, limits, player.adapter),
            replace(sampling, seed=drawn),
            f"{match_id}/{name}",
        )
        self.num_cut_off = 0
        self._agent: BaseAgent | None = None

    async def start(self) -> None:
        """Get the engine ready and make the agent."""
        await self.conversation.prepare()
        player = self._player
        self._agent = call_agent("construction", lambda: player.agent(**player.agent_args))
        call_agent("reset", self._agent.reset)
        self.trajectory = trajectory_of(self._agent)

    async def act(self, observation: Any, reward: float, info: dict[str, Any]) -> Any:
        """Let the agent and the model take their turn."""
        agent = self._agent
        assert agent is not None  # start was awaited
        call_agent("update_from_env", agent.update_from_env, observation, reward, False, info)
        messages = conversation_of(agent)
        prompt_ids, room = self.conversation.prompt(messages)
        if room <= 0:
            self.num_cut_off += 1
            return ""
        num_before = len(self.trajectory.steps)
        completion, step = await self.conversation.ask(observation, messages, prompt_ids, room)
        action = call_agent("update_from_model", agent.update_from_model, completion.text)
        self.trajectory, step = settle_step(step, agent, num_before)
        step.action = action.action if isinstance(action, Action) else action
        if completion.finish_reason == "length":
            self.num_cut_off += 1
            step.action = ""
        self._add(step)
        return step.action

    def end(self, observation: Any, reward: float, info: dict[str, Any]) -> None:
        """Show the agent how it ended."""
        if self._agent is not None:
            call_agent(
                "update_from_env", self._agent.update_from_env, observation, reward, True, info
            )

    def finish(self, *, gamma: float, failed: bool) -> Trajectory:
        """Return the trajectory, with what was sampled if it is for training."""
        trajectory = super().finish(gamma=gamma, failed=failed)
        trajectory.token_records = self.conversation.token_records() if self.learns else ()
        return trajectory


class ScriptSeat(Seat):
    """The seat of a player without a model."""

    def __init__(self, name: str, script: Script, session: EnvSession, seed: int) -> None:
        super().__init__(name, learns=False)
        if not callable(script) and script not in SCRIPTS:
            raise UserError(
                f"player {name!r} must be a Player, a function, 'expert' or 'random', got "
                f"{script!r:.120}"
            )
        self._script = script
        self._session = session
        self._player = name
        self._random = random.Random(seed)
        self._env: Any = None

    def watch(self, env: Any) -> None:
        """Take the environment, which experts are asked from."""
        self._env = env
        if self._script == "expert" and not hasattr(_bare(env), "expert_action"):
            raise UserError(
                f"{type(_bare(env)).__name__} has no expert_action, so nobody can play as 'expert'"
            )

    async def start(self) -> None:
        """Nothing is to be made: a script is there."""

    async def act(self, observation: Any, reward: float, info: dict[str, Any]) -> Any:
        """Ask the script, where the environment's calls run."""
        try:
            action = await self._session.call(
                f"player {self._player!r}", lambda: self._choose(observation, info)
            )
        except EpisodeFailure as error:
            if error.reason in _RAISED:
                raise EpisodeFailure(TerminationReason.AGENT_EXCEPTION, str(error)) from error
            raise
        step = Step(observation=observation, action=action)
        self.trajectory.steps.append(step)
        self._add(step)
        return action

    def end(self, observation: Any, reward: float, info: dict[str, Any]) -> None:
        """A script learns nothing of how it ended."""

    def _choose(self, observation: Any, info: dict[str, Any]) -> Any:
        if callable(self._script):
            return self._script(observation, info)
        if self._script == "expert":
            return _bare(self._env).expert_action(self._player)
        legal = info.get("action_mask")
        if isinstance(legal, tuple | list) and legal:
            return legal[self._random.randrange(len(legal))]
        space = self._env.action_space(self._player)
        space.seed(self._random.randrange(2**31))
        return space.sample()


def _bare(env: Any) -> Any:
    return getattr(env, "unwrapped", env)
