"""Which tasks are played: those that an environment draws, or the rows of a data set."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

from rllm_agents.errors import UserError
from rllm_envs import GymEnv, TaskError, TextEnv, UnknownEnvError, load_rows, seed_tasks

DEFAULT_NUM_TASKS = 512
"""Tasks of an environment that draws its own; of a data set, all rows are taken."""

_RESERVED_FIELDS = ("env_id", "env_kwargs", "seed", "observation_key")
"""Fields of a row that GymEnv would take for its own arguments."""


def env_tasks(
    env_id: str,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    dataset: str | None = None,
    split: str = "test",
    num_tasks: int | None = None,
    first_seed: int = 0,
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Choose tasks of a registered environment.

    Args:
        env_id: A Gymnasium id.
        env_kwargs: Arguments of the environment.
        dataset: A JSONL or JSON file, or a registered name, whose rows are the tasks. Without it
            the environment draws its own, from different seeds.
        split: Which part of a registered data set; also given to an environment that takes
            ``split`` and draws its own tasks, unless `env_kwargs` has it.
        num_tasks: How many; None takes all rows of a data set, else `DEFAULT_NUM_TASKS`.
        first_seed: Where the search for seeds with different tasks begins.

    Returns:
        The tasks, and the `env_args` with which a GymEnv is made of one of them.

    Raises:
        UserError: `num_tasks` is out of range, a row is no task of the environment, or its
            observations or actions are not text.
        RllmEnvsError: The environment or the data is not there, or cannot be used.
    """
    if num_tasks is not None and num_tasks < 1:
        raise UserError(f"num_tasks must be at least 1, got {num_tasks}")
    kwargs = dict(env_kwargs or {})
    if dataset is not None:
        rows = _dataset_rows(dataset, split, num_tasks)
        _check_env(env_id, kwargs, rows, dataset)
        return rows, {"env_id": env_id, "env_kwargs": kwargs}
    if env_takes(env_id, "split"):
        kwargs.setdefault("split", split)
    _check_env(env_id, kwargs)
    tasks = seed_tasks(
        env_id, kwargs, num_tasks=num_tasks or DEFAULT_NUM_TASKS, first_seed=first_seed
    )
    return [dict(task) for task in tasks], {"env_id": env_id, "env_kwargs": kwargs}


def env_takes(env_id: str, argument: str) -> bool:
    """Return whether a registered environment has a keyword argument of this name.

    Raises:
        UserError: The module of "module:id" cannot be imported.
        UnknownEnvError: No environment has this id.
    """
    module, _, name = env_id.rpartition(":")
    if module or name not in gymnasium.registry:
        # Imports the module of "module:id", or says which ids are nearest.
        _make_env(env_id, {}).close()
    entry_point = gymnasium.spec(name).entry_point
    if entry_point is None:
        raise UnknownEnvError(f"{env_id!r} is registered without an entry point")
    creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    return argument in inspect.signature(creator).parameters


def _make_env(env_id: str, env_kwargs: Mapping[str, Any]) -> GymEnv:
    """Make an environment to look at."""
    try:
        return GymEnv(env_id, env_kwargs=env_kwargs)
    except ImportError as error:
        raise UserError(f"{env_id!r} cannot be made: {error}") from error


def _check_env(
    env_id: str,
    env_kwargs: Mapping[str, Any],
    rows: Sequence[dict[str, Any]] = (),
    dataset: str = "",
) -> None:
    """Make an environment once: a wrong argument or row is then one error, not one per episode.

    References that cannot be graded are not looked for: they fail the episodes of their rows.
    """
    env = _make_env(env_id, env_kwargs)
    try:
        for name in ("observation_space", "action_space"):
            space = getattr(env.env, name)
            if not isinstance(space, gymnasium.spaces.Text):
                raise UserError(
                    f"{env_id} has the {name} {type(space).__name__}; language agents need Text"
                )
        raw = env.env.unwrapped
        if isinstance(raw, TextEnv):
            for number, row in enumerate(rows, start=1):
                try:
                    raw.validate_task(dict(row))
                except TaskError as error:
                    raise UserError(f"{dataset}, row {number}: {error}") from error
    finally:
        env.close()


def _dataset_rows(dataset: str, split: str, num_tasks: int | None) -> list[dict[str, Any]]:
    """Read the first `num_tasks` rows of a data set, or all."""
    rows = list(load_rows(dataset, split))
    if num_tasks is not None and num_tasks > len(rows):
        raise UserError(f"num_tasks={num_tasks}, but {dataset} has {len(rows)} rows")
    for number, row in enumerate(rows, start=1):
        for field in _RESERVED_FIELDS:
            if field in row:
                raise UserError(
                    f"{dataset}, row {number}: the field {field!r} is reserved; rename it"
                )
    return rows[:num_tasks]
