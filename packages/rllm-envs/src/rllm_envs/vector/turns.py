"""``Turn``: what one environment of a pool answered, and how turns become Gymnasium's batches."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Space, Text
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

Batch = tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]
"""Observations, rewards, terminations, truncations and infos of some environments."""


class Turn(NamedTuple):
    """The answer of one environment to one action or reset. Made by ``EnvSlot``."""

    env_id: int
    """Place of the environment in its pool, from 0."""
    observation: Any
    """What the agent reads next."""
    reward: float
    """Reward of the step; 0 for a reset."""
    terminated: bool
    """Whether the step ended the episode by the task's own rules."""
    truncated: bool
    """Whether the episode was cut short: by a budget, or because the environment failed."""
    info: dict[str, Any]
    """The environment's info; ``error`` (str) says why it failed."""
    error: BaseException | None = None
    """What a reset raised, for callers that can put it right."""


def batch_turns(space: Space[Any], turns: Sequence[Turn]) -> Batch:
    """Return turns as Gymnasium's five values, in the order of the turns.

    Args:
        space: Observation space of one environment.
        turns: Any number of them, also none.

    Returns:
        Observations (a tuple for texts), rewards (float64), terminations and truncations (bool) of
        shape (len(turns),), and infos as ``batch_infos`` makes them with ``env_id`` (int64).
    """
    places, observations, rewards, terminated, truncated, infos, _ = (
        zip(*turns, strict=True) if turns else ((),) * len(Turn._fields)
    )
    batch = batch_infos(infos)
    batch["env_id"] = np.array(places, dtype=np.int64)
    return (
        batch_observations(space, observations),
        np.array(rewards, dtype=np.float64),
        np.array(terminated, dtype=np.bool_),
        np.array(truncated, dtype=np.bool_),
        batch,
    )


def batch_observations(space: Space[Any], observations: Sequence[Any]) -> Any:
    """Return observations of one space as its batch: a tuple of strings for texts."""
    if isinstance(space, Text) or not observations:
        return tuple(observations)
    empty = create_empty_array(space, len(observations))
    return concatenate(space, observations, empty)


def blank_observation(space: Space[Any]) -> Any:
    """Return the observation that says nothing: the empty text, zeros, no messages."""
    if isinstance(space, Text):
        return " " * space.min_length
    return next(iter(iterate(batch_space(space, 1), create_empty_array(space, 1))))


def batch_infos(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the infos of several environments in Gymnasium's form, without loss.

    Each key holds an array of length ``len(infos)`` and ``_key`` the mask of the environments that
    have it. An array gets a number's type only where every value is of that very type and fits it;
    everything else stays as it is in an array of objects. So no value is rounded, converted or
    spread over several places, whatever the first environment returns.
    """
    keys = infos[0].keys() if infos else ()
    batch: dict[str, Any] = {}
    if len(infos) == 1 or all(info.keys() == keys for info in infos):
        everyone = np.array([True] * len(infos))
        for key in keys:
            values = [info[key] for info in infos]
            batch[key] = _full_column(values, is_object=key == "final_obs")
            batch[f"_{key}"] = everyone.copy()
        return batch
    for key in dict.fromkeys(key for info in infos for key in info):
        mask = np.array([key in info for info in infos], dtype=np.bool_)
        values = [info[key] for info in infos if key in info]
        batch[key] = _sparse_column(_full_column(values, is_object=key == "final_obs"), mask)
        batch[f"_{key}"] = mask
    return batch


def _full_column(values: list[Any], *, is_object: bool) -> Any:
    """Return values, at least one, as an array, or as a dict of arrays where they are dicts."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 and not is_object else object
    if kind is bool or kind is float:
        return np.array(values, dtype=kind)
    if kind is int and min(values) >= -(2**63) and max(values) < 2**63:
        return np.array(values, dtype=np.int64)
    if issubclass(kind, dict):
        return batch_infos(values)
    is_regular = kind is np.ndarray and len({(item.shape, item.dtype) for item in values}) == 1
    if is_regular or issubclass(kind, (np.number, np.bool_)):
        return np.array(values)
    column = np.full(len(values), None, dtype=object)
    # One by one: an array or list given as a whole would be spread over the places.
    for place, value in enumerate(values):
        column[place] = value
    return column


def _sparse_column(column: Any, mask: np.ndarray) -> Any:
    """Return a column spread over the places of a mask; zeros, None or {} elsewhere."""
    if isinstance(column, dict):
        return {key: _sparse_column(inner, mask) for key, inner in column.items()}
    blank = None if column.dtype == object else 0
    spread = np.full((len(mask), *column.shape[1:]), blank, dtype=column.dtype)
    spread[mask] = column
    return spread
