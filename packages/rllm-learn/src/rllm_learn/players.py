"""Who plays what: agent and environment classes, training and held-out tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rllm_agents import ChatAgent
from rllm_agents.evaluation import env_takes, env_tasks
from rllm_agents.match import seats_of
from rllm_agents.match_seats import MatchSeats, SeatPolicy
from rllm_agents.player import EpisodePlayer
from rllm_agents.workflow_player import WorkflowPlayer
from rllm_envs import GymEnv, load_rows, seed_tasks
from rllm_learn.config import TrainerConfig
from rllm_learn.config.schema import EvalConfig
from rllm_learn.errors import ConfigError
from rllm_learn.roles import RolePlan, plan_roles
from rllm_learn.task_sources import DatasetTasks, SeedTasks, TaskSource, hold_out

_AGENT = ("agent_class", "agent_args")


@dataclass(frozen=True, slots=True)
class Players:
    """Who plays, as AgentTrainer was given it."""

    agent_class: type | EpisodePlayer
    env_class: type | None
    agent_args: Mapping[str, Any] | None
    env_args: Mapping[str, Any] | None
    roles: RolePlan | None = None
    """Where several agents play an episode."""


@dataclass(frozen=True, slots=True)
class GivenPlayers:
    """Who plays, as a user says it. Made by AgentTrainer and RLlib's configurations."""

    agent_class: type | EpisodePlayer = ChatAgent
    env_class: Any = GymEnv
    agent_args: Mapping[str, Any] | None = None
    env_args: Mapping[str, Any] | None = None
    workflow_class: Any = None
    workflow_args: Mapping[str, Any] | None = None
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By seat, `agent_class` and `agent_args` of its own."""


def split_players(
    players: Mapping[str, Mapping[str, Any]] | None,
) -> tuple[dict[str, Any], dict[str, Mapping[str, Any]]]:
    """Part what is said of players in Python into settings and agents.

    Args:
        players: By seat or role: the settings of `PlayerConfig`, `agent_class` and `agent_args`.

    Raises:
        ConfigError: Something else is said.
    """
    settings: dict[str, Any] = {}
    agents: dict[str, Mapping[str, Any]] = {}
    for name, given in (players or {}).items():
        if not isinstance(given, Mapping):
            raise ConfigError(f"players[{name!r}] must be a mapping, got {given!r:.120}")
        settings[name] = {k: v for k, v in given.items() if k not in _AGENT}
        agents[name] = {k: v for k, v in given.items() if k in _AGENT}
    return settings, agents


def choose_players(config: TrainerConfig, given: GivenPlayers) -> Players:
    """Decide who plays: an agent in an environment, a workflow, or the seats of a game.

    Raises:
        ConfigError: What is said does not go together.
        UserError: There is no such game.
    """
    if given.workflow_class is not None:
        return _workflow_players(config, given)
    if given.workflow_args:
        raise ConfigError("workflow_args do nothing without workflow_class")
    if config.players:
        return _match_players(config, given)
    if config.eval.opponents != EvalConfig().opponents:
        raise ConfigError("eval.opponents does nothing without players, which make a game")
    return Players(given.agent_class, given.env_class, given.agent_args, given.env_args)


def _workflow_players(config: TrainerConfig, given: GivenPlayers) -> Players:
    if given.agent_class is not ChatAgent or given.agent_args or any(given.agents.values()):
        raise ConfigError(
            "a workflow has its own agents: pass them in workflow_args, not as agent_class"
        )
    if given.env_class is not GymEnv and given.env_class is not None:
        raise ConfigError("a workflow has its own environments: pass env_class in workflow_args")
    for name, player in config.players.items():
        if player.system_prompt is not None:
            raise ConfigError(f"players.{name}.system_prompt does nothing: the workflow writes it")
    if config.eval.opponents != EvalConfig().opponents:
        raise ConfigError("eval.opponents is for games; a workflow's roles are judged together")
    plan = plan_roles(config, None)
    player = WorkflowPlayer(
        given.workflow_class,
        given.workflow_args,
        adapters=plan.adapters,
        frozen=plan.frozen,
    )
    return Players(player, None, {}, given.env_args, plan)


def _match_players(config: TrainerConfig, given: GivenPlayers) -> Players:
    if isinstance(given.agent_class, EpisodePlayer):
        raise ConfigError("players are seats of a game, which an EpisodePlayer does not have")
    env, kwargs = config.env.id, dict(config.env.kwargs)
    if given.env_class is not GymEnv:
        env, kwargs = given.env_class, {}
    elif given.env_args:
        raise ConfigError("the arguments of a game are env.kwargs, not env_args")
    seats = seats_of(env, kwargs)
    plan = plan_roles(config, seats)
    seated = {}
    for seat in seats:
        own = given.agents.get(seat, {})
        player = config.players.get(seat)
        prompt = (player.system_prompt if player else None) or config.agent.system_prompt
        default = {} if prompt is None else {"system_prompt": prompt}
        seated[seat] = SeatPolicy(
            agent_class=own.get("agent_class", given.agent_class),
            agent_args=own.get("agent_args", given.agent_args) or default,
            adapter=plan.adapters[seat],
            opponents=plan.opponents[seat],
        )
    game = MatchSeats(
        env,
        seated,
        env_kwargs=kwargs,
        named_opponents=plan.named_opponents,
        opponent_temperature=config.rollout.temperature,
    )
    return Players(game, None, {}, None, plan)


@dataclass(frozen=True, slots=True)
class TaskSets:
    """What is played. Made by `choose_tasks`."""

    training: TaskSource
    held_out: Sequence[dict[str, Any]]
    training_env_args: dict[str, Any]
    held_out_env_args: dict[str, Any]


def choose_tasks(config: TrainerConfig, players: Players, datasets: tuple[Any, Any]) -> TaskSets:
    """Decide what is trained on and what is held out.

    Data sets win over the environment's own tasks. Held-out tasks are the given ones, else rows
    kept apart from the training rows, else different tasks of the environment's test split, the
    same ones for every seed of a run.

    Raises:
        ConfigError: There is no way to get tasks, or held-out ones.
    """
    if isinstance(players.agent_class, MatchSeats):
        return _match_tasks(config, players.agent_class, datasets)
    env_args = dict(players.env_args or {})
    is_registered = isinstance(players.env_class, type) and issubclass(players.env_class, GymEnv)
    if is_registered:
        env_args.setdefault("env_id", config.env.id)
    kwargs = {**config.env.kwargs, **env_args.pop("env_kwargs", {})} if is_registered else {}

    def rows(given: Any, named: str | None, split: str) -> list[dict[str, Any]] | None:
        if given is not None:
            return _checked_rows(given, f"{split} data set")
        if named is None or not is_registered:
            return None if named is None else list(load_rows(named, split))
        return env_tasks(env_args["env_id"], env_kwargs=kwargs, dataset=named, split=split)[0]

    train_rows = rows(datasets[0], config.env.dataset, "train")
    held_out = rows(datasets[1], config.env.eval_dataset, "test")
    if held_out is not None:
        held_out = held_out[: config.eval.num_tasks]
    elif train_rows is not None:
        train_rows, held_out = hold_out(train_rows, config.eval.num_tasks)
    if not is_registered:
        if train_rows is None or held_out is None:
            name = getattr(players.env_class, "__name__", repr(players.env_class))
            raise ConfigError(
                f"train_dataset is needed with env_class={name}: only registered environments "
                "draw tasks of their own"
            )
        return TaskSets(DatasetTasks(train_rows, config.seed), held_out, env_args, env_args)

    # An environment without splits is held out by its seeds alone.
    splits = env_takes(env_args["env_id"], "split") and "split" not in kwargs
    train_kwargs = {**kwargs, "split": "train"} if splits and train_rows is None else kwargs
    test_kwargs = {**kwargs, "split": "test"} if splits and held_out is None else kwargs
    if held_out is None:
        num_tasks = config.eval.num_tasks
        held_out = seed_tasks(env_args["env_id"], test_kwargs, num_tasks=num_tasks)
    return TaskSets(
        training=SeedTasks(config.seed)
        if train_rows is None
        else DatasetTasks(train_rows, config.seed),
        held_out=held_out,
        training_env_args={**env_args, "env_kwargs": train_kwargs},
        held_out_env_args={**env_args, "env_kwargs": test_kwargs},
    )


def _match_tasks(config: TrainerConfig, game: MatchSeats, datasets: tuple[Any, Any]) -> TaskSets:
    """Choose matches to train on, and held-out ones.

    Held out are games from every learning seat against every opponent of `eval.opponents`. What
    the environment draws itself is apart by its split, where it is one of ours and `env.kwargs`
    names no split, and by its seed.
    """

    def rows(given: Any, named: str | None, split: str) -> list[dict[str, Any]] | None:
        if given is not None:
            return _checked_rows(given, f"{split} data set")
        return None if named is None else list(load_rows(named, split))

    train_rows = rows(datasets[0], config.env.dataset, "train")
    held_out = rows(datasets[1], config.env.eval_dataset, "test")
    pairs = [(seat, o) for o in config.eval.opponents for seat in game.learning_seats]
    if not pairs:
        raise ConfigError("eval.opponents is empty: name whom the policy is judged against")
    num_games = max(1, config.eval.num_tasks // len(pairs))
    if held_out is None and train_rows is not None:
        train_rows, held_out = hold_out(train_rows, num_games)
    splits = game.is_registered and "split" not in config.env.kwargs
    games = held_out[:num_games] if held_out else [{"seed": seed} for seed in range(num_games)]
    return TaskSets(
        training=SeedTasks(config.seed)
        if train_rows is None
        else DatasetTasks(train_rows, config.seed),
        held_out=[{"game": g, "seat": seat, "opponent": o} for g in games for seat, o in pairs],
        training_env_args={"split": "train"} if splits and train_rows is None else {},
        held_out_env_args={"split": "test"} if splits and not held_out else {},
    )


def _checked_rows(given: Any, name: str) -> list[dict[str, Any]]:
    """Return rows that were passed from Python, each a task of its own.

    Raises:
        ConfigError: A row is no mapping; its number is named.
    """
    tasks = list(given)
    for number, task in enumerate(tasks, start=1):
        if not isinstance(task, Mapping):
            raise ConfigError(
                f"{name}, row {number}: a task must be a mapping, got {type(task).__name__}"
            )
    return [dict(task) for task in tasks]
