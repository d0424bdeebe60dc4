"""Enter the catalog into Gymnasium's registry."""

import gymnasium

from rllm_envs.catalog import CATALOG


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
            )
