"""The tables of environments, one entry each, and their entry into Gymnasium's registry."""

import gymnasium

from rllm_envs.catalog.entry import EnvEntry
from rllm_envs.catalog.games import GAMES
from rllm_envs.catalog.language import LANGUAGE
from rllm_envs.catalog.puzzles import PUZZLES
from rllm_envs.catalog.reasoning import REASONING
from rllm_envs.catalog.worlds import WORLDS

__all__ = ["CATALOG", "EnvEntry", "register_catalog"]

CATALOG = (*REASONING, *PUZZLES, *WORLDS, *GAMES, *LANGUAGE)
"""All environments of this package."""


def register_catalog() -> None:
    """Register each environment of the catalog that is not registered yet."""
    for entry in CATALOG:
        # Registering twice warns, and a user may have replaced an entry on purpose.
        if entry.id not in gymnasium.registry:
            gymnasium.register(
                entry.id,
                entry_point=entry.entry_point,
                kwargs=dict(entry.kwargs),
                reward_threshold=entry.reward_threshold,
                nondeterministic=entry.nondeterministic,
                vector_entry_point=f"rllm_envs.vector:{entry.id}",
            )
