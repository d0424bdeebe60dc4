"""Settings of one player: who takes a seat of a game or a role of a workflow, and how it learns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rllm_agents.match_players import SCRIPTS
from rllm_agents.named_weights import POLICY
from rllm_learn.algorithms import ALGORITHMS, AlgorithmConfig
from rllm_learn.errors import ConfigError, require

FROZEN = ("self", "snapshot", "base")
"""Opponents that are models and need no directory."""


@dataclass
class PlayerConfig:
    """Who takes a seat of a game, or a role of a workflow, and how it learns."""

    adapter: str = POLICY
    """The policy that plays and learns, by a name of one's own; those of one name share it."""
    opponent: Any = None
    """Who plays in its place, so that nobody learns from it; null for nobody. expert and random
    (scripts, in games); self (the newest weights of `adapter`), snapshot (those of up to
    `snapshot_every` updates ago), base (the model as loaded), or a directory with a LoRA adapter.
    Of a list each task draws one."""
    algorithm: dict[str, Any] = field(default_factory=dict)
    """Settings over those of the run's `algorithm`; with another `name`, over that one's
    defaults."""
    system_prompt: str | None = None
    """First message of its conversations; null is `agent.system_prompt`."""

    def __post_init__(self) -> None:
        """Check names; raises ConfigError."""
        valid = re.fullmatch(r"[A-Za-z0-9_-]{1,64}", self.adapter) is not None
        require(
            valid and self.adapter not in (*SCRIPTS, *FROZEN),
            "adapter of a player",
            self.adapter,
            "letters, digits, - and _, and none of the words for opponents",
        )
        for opponent in self.opponents:
            require(
                isinstance(opponent, str) and opponent != "",
                "opponent of a player",
                opponent,
                f"one of {', '.join((*SCRIPTS, *FROZEN))}, a directory, or a list of them",
            )
        if self.opponents and self.algorithm:
            raise ConfigError(
                f"a player with opponent={self.opponent!r} does not learn, so its algorithm="
                f"{self.algorithm!r} does nothing"
            )

    @property
    def opponents(self) -> tuple[str, ...]:
        """Those that tasks draw from; none where it learns."""
        if self.opponent is None:
            return ()
        return tuple(self.opponent) if isinstance(self.opponent, list) else (self.opponent,)


def checked_player(name: str, given: Any) -> PlayerConfig:
    """Return the settings of one player.

    Raises:
        ConfigError: A setting is unknown or not allowed; the player is named.
    """
    if isinstance(given, PlayerConfig):
        return given
    try:
        merged = OmegaConf.merge(OmegaConf.structured(PlayerConfig), given or {})
        player = OmegaConf.to_object(merged)
    except (OmegaConfBaseException, ValueError, TypeError) as error:
        first = str(error).splitlines()[0]
        names = ", ".join(item.name for item in fields(PlayerConfig))
        raise ConfigError(
            f"players.{name}={given!r:.200}: {first}; a player has {names}"
        ) from error
    assert isinstance(player, PlayerConfig)
    return player


def player_algorithm(base: AlgorithmConfig, player: PlayerConfig) -> AlgorithmConfig:
    """Return the settings of a player's algorithm.

    Args:
        base: The run's.
        player: Its `algorithm` is laid over them, or over the defaults of the one it names.

    Raises:
        ConfigError: There is no such algorithm or setting, or a value is not allowed.
    """
    given = dict(player.algorithm)
    if not given:
        return base
    name = given.get("name", base.name)
    if name not in ALGORITHMS:
        raise ConfigError(
            f"algorithm.name of a player must be one of {', '.join(ALGORITHMS)}, got {name!r:.80}"
        )
    start = base if name == base.name else ALGORITHMS[name][0]
    try:
        merged = OmegaConf.merge(OmegaConf.structured(start), given)
        settings = OmegaConf.to_object(merged)
    except OmegaConfBaseException as error:
        first = str(error).splitlines()[0]
        raise ConfigError(f"algorithm of a player, {given!r:.200}: {first}") from error
    assert isinstance(settings, AlgorithmConfig)
    return settings
