"""Which tasks are played: a function of the seed and a position alone, so that runs resume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from rllm_envs import Dataset
from rllm_learn.errors import ConfigError

_FIRST_TRAINING_SEED = 2**31
"""Held-out tasks are drawn from the seeds below it."""


class TaskSource(Protocol):
    """An endless sequence of tasks, the same whenever it is asked."""

    def batch(self, first: int, num_tasks: int) -> list[dict[str, Any]]:
        """Return the tasks at positions `first` and on, from 0."""
        ...


class SeedTasks:
    """Tasks that an environment draws itself: each is a seed, no two are equal."""

    def __init__(self, seed: int):
        """Take the run's seed."""
        self._seed = seed

    def batch(self, first: int, num_tasks: int) -> list[dict[str, Any]]:
        """Return `num_tasks` seeds that no other position of this run has."""
        start = _FIRST_TRAINING_SEED + self._seed * 2**24 + first
        return [{"seed": start + i} for i in range(num_tasks)]


class DatasetTasks:
    """Rows of a data set, each once an epoch, in an order of its own each epoch."""

    def __init__(self, dataset: Dataset | Sequence[dict[str, Any]], seed: int):
        """Take the rows and the run's seed.

        Raises:
            ConfigError: There is no row.
        """
        if len(dataset) == 0:
            raise ConfigError("the training data set has no rows")
        self._rows = dataset
        self._seed = seed

    def batch(self, first: int, num_tasks: int) -> list[dict[str, Any]]:
        """Return the rows at positions `first` and on of the shuffled epochs."""
        return [self._row(first + i) for i in range(num_tasks)]

    def _row(self, position: int) -> dict[str, Any]:
        epoch, index = divmod(position, len(self._rows))
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._rows))
        return dict(self._rows[int(order[index])])


def hold_out(
    rows: Sequence[dict[str, Any]], num_tasks: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Keep every eighth row apart for evaluation, up to `num_tasks`.

    Returns:
        Rows to train on, and rows held out. A question that is held out is not trained on, even
        where it stands in several rows.

    Raises:
        ConfigError: There are fewer than 8 rows, or none is left to train on.
    """
    if len(rows) < 8:
        raise ConfigError(
            f"{len(rows)} rows are too few to hold any out; name held-out tasks with "
            "env.eval_dataset"
        )
    held_out = [dict(row) for row in rows[7::8]][:num_tasks]
    apart = {repr(sorted(row.items())) for row in held_out}
    training = [dict(row) for row in rows if repr(sorted(row.items())) not in apart]
    if not training:
        raise ConfigError(
            f"all {len(rows)} rows are equal to one that is held out; training needs others"
        )
    return training, held_out
