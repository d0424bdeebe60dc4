"""The part of RLlib's configuration that says who plays."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig

from rllm_agents import BaseAgent, ChatAgent, Workflow
from rllm_envs import GymEnv
from rllm_learn.config import TrainerConfig
from rllm_learn.errors import ConfigError
from rllm_learn.players import GivenPlayers, Players, choose_players, split_players
from rllm_learn.rllib.options import UNSET, given


class PlayersConfig(AlgorithmConfig):
    """Agents, workflows and players. Base of `LLMAlgorithmConfig`."""

    def __init__(self, algo_class: type | None = None) -> None:
        super().__init__(algo_class)
        defaults = TrainerConfig()
        self.env_class: Any = GymEnv
        self.agent_class: Any = ChatAgent
        self.agent_args: Mapping[str, Any] | None = None
        self.workflow_class: Any = None
        self.workflow_args: Mapping[str, Any] | None = None
        self.player_settings: dict[str, Any] = {}
        self.player_agents: dict[str, Mapping[str, Any]] = {}
        self.snapshot_every = defaults.snapshot_every
        self.eval_opponents = list(defaults.eval.opponents)

    def agent(
        self,
        agent_class: type[BaseAgent] = UNSET,
        agent_args: Mapping[str, Any] | None = UNSET,
    ) -> Self:
        """Say who plays; each episode makes `agent_class(**agent_args)`."""
        self.agent_class = given(agent_class, self.agent_class)
        self.agent_args = given(agent_args, self.agent_args)
        return self

    def workflow(
        self,
        workflow_class: Callable[..., Workflow],
        workflow_args: Mapping[str, Any] | None = None,
    ) -> Self:
        """Say which workflow plays the tasks, in place of an agent and an environment.

        Args:
            workflow_class: Each episode calls it with a `rollout_engine` and `workflow_args`.
            workflow_args: Its keyword arguments.
        """
        self.workflow_class, self.workflow_args = workflow_class, workflow_args
        self.env = getattr(workflow_class, "__name__", type(workflow_class).__name__)
        return self

    def players(
        self,
        players: Mapping[str, Mapping[str, Any]],
        *,
        snapshot_every: int = UNSET,
        eval_opponents: Sequence[str] = UNSET,
    ) -> Self:
        """Say who takes the seats of a game, or the roles of a workflow, and how they learn.

        In place of RLlib's `multi_agent`. Naming a player makes the environment a game of
        PettingZoo's kind; seats that are not named play and learn with the policy.

        Args:
            players: By seat or role: `adapter`, `opponent`, `algorithm` and `system_prompt` as in
                `rllm train`, and for seats `agent_class` and `agent_args`.
            snapshot_every: Updates between the copies of a policy that plays as "snapshot".
            eval_opponents: In games, whom the policy is judged against.

        Raises:
            ConfigError: A player is no mapping.
        """
        settings, agents = split_players(players)
        self.player_settings = {**self.player_settings, **settings}
        self.player_agents = {**self.player_agents, **agents}
        self.snapshot_every = given(snapshot_every, self.snapshot_every)
        if eval_opponents is not UNSET:
            self.eval_opponents = list(eval_opponents)
        return self

    def multi_agent(self, *args: Any, **kwargs: Any) -> Self:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Refuse: RLlib maps agents to RLModules, of which there are none here.

        Raises:
            ConfigError: With what to use instead.
        """
        raise ConfigError(
            "multi_agent() maps agents to RLModules, which a language agent's policy is not: say "
            "who plays by .players({'player_0': {}, 'player_1': {'opponent': 'snapshot'}})"
        )

    @abstractmethod
    def trainer_config(self) -> TrainerConfig:
        """Return the settings as `rllm train` has them.

        Raises:
            ConfigError: A setting is unknown or out of range.
        """

    def chosen_players(self) -> Players:
        """Return who plays.

        Raises:
            ConfigError: What is said does not go together.
        """
        is_gym = self.env_class is GymEnv
        said = GivenPlayers(
            self.agent_class,
            self.env_class,
            self.agent_args,
            None if is_gym else dict(self.env_config),
            self.workflow_class,
            self.workflow_args,
            self.player_agents,
        )
        return choose_players(self.trainer_config(), said)
