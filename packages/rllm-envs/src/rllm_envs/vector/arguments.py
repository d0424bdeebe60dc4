"""The arguments of a pool's methods, checked and spread over its environments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from rllm_envs.errors import EnvArgumentError

Options = dict[str, Any] | None


def checked_mode(mode: str | AutoresetMode) -> AutoresetMode:
    """Return the mode that a name or a member means."""
    try:
        return AutoresetMode(mode)
    except ValueError:
        allowed = ", ".join(f'"{member.value}"' for member in AutoresetMode)
        raise EnvArgumentError(f"autoreset_mode must be one of {allowed}, got {mode!r}") from None


def checked_positive(name: str, value: float | None) -> float | None:
    """Return a positive number, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value < float("inf")):
        raise EnvArgumentError(f"{name} must be a positive number or None, got {value!r}")
    return value


def checked_env_ids(env_ids: Any, num_envs: int) -> list[int]:
    """Return distinct places in the pool; all of them for None."""
    if env_ids is None:
        return list(range(num_envs))
    if isinstance(env_ids, int):
        raise EnvArgumentError(f"env_ids must be a list such as [{env_ids}], got {env_ids}")
    places = [int(place) for place in env_ids]
    wrong = [place for place in places if not 0 <= place < num_envs]
    if wrong or len(set(places)) < len(places):
        raise EnvArgumentError(
            f"env_ids must be different places from 0 to {num_envs - 1}, got {places!r:.80}"
        )
    return places


def checked_actions(actions: Any, num_wanted: int) -> Sequence[Any]:
    """Return one action for each environment."""
    if isinstance(actions, str) or not hasattr(actions, "__len__"):
        raise EnvArgumentError(f"actions must be a list with one each, got {actions!r:.80}")
    if len(actions) != num_wanted:
        raise EnvArgumentError(f"{num_wanted} environments need as many actions: {len(actions)}")
    return actions if isinstance(actions, list | tuple) else list(actions)


def per_env_seeds(seed: Any, places: Sequence[int]) -> list[int | None]:
    """Return a seed for each place: ``seed + place`` for an integer."""
    if seed is None:
        return [None] * len(places)
    if isinstance(seed, int | np.integer):
        return [int(seed) + place for place in places]
    if len(seed) != len(places):
        raise EnvArgumentError(f"{len(places)} environments need as many seeds, got {len(seed)}")
    return [None if one is None else int(one) for one in seed]


def per_env_options(options: Any, num_wanted: int) -> list[Options]:
    """Return the options of each environment; ``tasks`` of a dict are spread as ``task``."""
    if options is None:
        return [None] * num_wanted
    if not isinstance(options, Mapping):
        if len(options) != num_wanted:
            raise EnvArgumentError(
                f"{num_wanted} environments need as many options, got {len(options)}"
            )
        return [None if row is None else dict(row) for row in options]
    shared = {key: value for key, value in options.items() if key != "tasks"}
    if "tasks" not in options:
        return [dict(shared) or None for _ in range(num_wanted)]
    tasks = options["tasks"]
    if isinstance(tasks, Mapping | str) or len(tasks) != num_wanted:
        raise EnvArgumentError(
            f"options['tasks'] must be a list of {num_wanted} tasks, got {tasks!r:.80}"
        )
    return [(dict(shared) if task is None else shared | {"task": task}) or None for task in tasks]


def split_mask(options: Any, num_envs: int) -> tuple[np.ndarray | None, Any]:
    """Return Gymnasium's ``reset_mask`` and the other options; the caller's dict stays as it is."""
    if not isinstance(options, Mapping) or "reset_mask" not in options:
        return None, options
    mask = options["reset_mask"]
    is_mask = isinstance(mask, np.ndarray) and mask.dtype == np.bool_ and mask.shape == (num_envs,)
    if not is_mask or not mask.any():
        raise EnvArgumentError(
            f"options['reset_mask'] must be a boolean array of shape ({num_envs},) with at least "
            f"one True, got {mask!r:.80}"
        )
    return mask, {key: value for key, value in options.items() if key != "reset_mask"}
