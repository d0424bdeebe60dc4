"""Random draws as plain Python values: numpy's own integers and strings are not JSON."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


def draw_integer(rng: np.random.Generator, low: int, high: int) -> int:
    """Return a uniform integer from ``low`` to ``high``, both included."""
    return int(rng.integers(low, high + 1))


def draw_item(rng: np.random.Generator, items: Sequence[T]) -> T:
    """Return a uniform item of a sequence that is not empty."""
    return items[int(rng.integers(len(items)))]


def draw_items(rng: np.random.Generator, items: Sequence[T], number: int) -> list[T]:
    """Return ``number`` items at different places of a sequence, in random order."""
    return [items[int(place)] for place in rng.permutation(len(items))[:number]]


def shuffled(rng: np.random.Generator, items: Sequence[T]) -> list[T]:
    """Return the items in random order."""
    return draw_items(rng, items, len(items))


def draw_flag(rng: np.random.Generator, share: float = 0.5) -> bool:
    """Return True with probability ``share``."""
    return bool(rng.random() < share)
