"""What `players` of the settings come to: who plays with which weights, who learns, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rllm_agents.match_players import SCRIPTS
from rllm_agents.match_seats import FrozenPolicy, Opponent
from rllm_agents.named_weights import POLICY
from rllm_learn.algorithms import Algorithm, RoleAlgorithms, make_algorithm
from rllm_learn.config import PlayerConfig, TrainerConfig
from rllm_learn.config.players import FROZEN, player_algorithm
from rllm_learn.core.learner_set import SNAPSHOT, LearnerPlan
from rllm_learn.errors import ConfigError


@dataclass(frozen=True)
class RolePlan:
    """Who plays with which weights, and who learns. Made by `plan_roles`."""

    learners: LearnerPlan = field(default_factory=LearnerPlan)
    """Policies that learn."""
    sets: Mapping[str, str | None] = field(default_factory=dict)
    """Sets of weights that the engine holds beside the policy's: a directory with an adapter, or
    None for one that begins as the model as loaded."""
    adapters: Mapping[str, str] = field(default_factory=dict)
    """By role, which of the sets plays; "" is the policy's."""
    learns: Mapping[str, str] = field(default_factory=dict)
    """By role, which policy learns from it, where several do."""
    frozen: frozenset[str] = frozenset()
    """Roles that nobody learns from."""
    opponents: Mapping[str, tuple[Opponent, ...]] = field(default_factory=dict)
    """By seat of a game, who plays in the policy's place."""
    named_opponents: Mapping[str, Opponent] = field(default_factory=dict)
    """Those of `eval.opponents`."""


def plan_roles(config: TrainerConfig, seats: Sequence[str] | None) -> RolePlan:
    """Work out who plays with what.

    Args:
        config: Checked settings.
        seats: Of the game; None for a workflow, whose roles are not known before it runs.

    Raises:
        ConfigError: A player cannot be what it is said to be.
    """
    players: dict[str, PlayerConfig] = dict(config.players)
    names = list(players) if seats is None else list(seats)
    unknown = [name for name in players if name not in names]
    if unknown:
        raise ConfigError(
            f"players names {', '.join(unknown)}, but {config.env.id} has {', '.join(names)}"
        )
    players = {name: players.get(name, PlayerConfig()) for name in names}
    learning = [p.adapter for p in players.values() if not p.opponents]
    if len(set(learning)) == 1 and seats is not None:
        # One policy alone is "policy" to engine and learner, whatever its players call it.
        players = {name: replace(player, adapter=POLICY) for name, player in players.items()}
        learning = [POLICY]
    policies = tuple(dict.fromkeys([POLICY, *learning] if seats is None else learning))
    if not policies:
        raise ConfigError(f"players: opponents take every seat ({', '.join(names)}); leave one")
    plan = _Sets(policies)
    opponents = {
        name: tuple(plan.opponent(o, player, is_game=seats is not None) for o in player.opponents)
        for name, player in players.items()
    }
    named = {name: plan.named(name) for name in config.eval.opponents} if seats else {}
    frozen = frozenset(name for name, player in players.items() if player.opponents)
    return RolePlan(
        learners=LearnerPlan(policies, tuple(plan.snapshots), config.snapshot_every),
        sets=plan.sets,
        adapters={
            name: _frozen_set(opponents[name]) if name in frozen else plan.of(player.adapter)
            for name, player in players.items()
        },
        learns={n: p.adapter for n, p in players.items() if len(policies) > 1},
        frozen=frozen,
        opponents=opponents,
        named_opponents=named,
    )


def _frozen_set(opponents: Sequence[Opponent]) -> str:
    """Return the set that a role's opponent plays with; scripts have none."""
    return next((o.adapter for o in opponents if isinstance(o, FrozenPolicy)), "")


class _Sets:
    """Gathers the sets of weights that are needed."""

    def __init__(self, policies: tuple[str, ...]) -> None:
        self._policies = policies
        self.snapshots: dict[str, None] = {}
        self.sets: dict[str, str | None] = {}
        if len(policies) > 1:
            self.sets |= {name: None for name in policies if name != POLICY}

    def of(self, adapter: str) -> str:
        """Return the set that a policy plays with: where one learns, it is the engine's own."""
        if adapter not in self._policies:
            raise ConfigError(
                f"adapter={adapter!r} of a player with an opponent names a policy that nobody "
                f"trains; {', '.join(self._policies)} learn"
            )
        return adapter if len(self._policies) > 1 and adapter != POLICY else ""

    def opponent(self, name: str, player: PlayerConfig, *, is_game: bool) -> Opponent:
        if name == "self":
            return FrozenPolicy(self.of(player.adapter))
        if name == "snapshot":
            self.of(player.adapter)
            self.snapshots[player.adapter] = None
            self.sets[f"{player.adapter}{SNAPSHOT}"] = None
            return FrozenPolicy(f"{player.adapter}{SNAPSHOT}")
        if name in SCRIPTS and not is_game:
            raise ConfigError(
                f"opponent={name} is a script of games; a role of a workflow is played by "
                f"{', '.join(FROZEN)} or an adapter"
            )
        if not is_game and len(player.opponents) > 1:
            raise ConfigError(
                f"opponent={list(player.opponents)}: in a workflow one opponent takes a role"
            )
        return self.named(name)

    def named(self, name: str) -> Opponent:
        """Return an opponent that is the same all through a run."""
        if name in SCRIPTS:
            return name
        if name != "base" and not (Path(name) / "adapter_config.json").is_file():
            raise ConfigError(
                f"opponent {name!r:.200} must be one of {', '.join((*SCRIPTS, *FROZEN))} (self and "
                "snapshot in training alone), or a directory with a LoRA adapter"
            )
        self.sets[name] = None if name == "base" else name
        return FrozenPolicy(name)


def run_algorithm(config: TrainerConfig, plan: RolePlan | None) -> Algorithm:
    """Return the algorithm of a run: with roles, one for each of them.

    Raises:
        ConfigError: A player's settings are not its algorithm's.
    """
    default = make_algorithm(config.algorithm)
    if plan is None:
        return default
    own = {}
    for role, player in config.players.items():
        settings = player_algorithm(config.algorithm, player)
        if not player.opponents and settings != config.algorithm:
            own[role] = settings
    # Players with equal settings share one algorithm.
    made = {repr(settings): make_algorithm(settings) for settings in own.values()}
    return RoleAlgorithms(default, {role: made[repr(s)] for role, s in own.items()})
