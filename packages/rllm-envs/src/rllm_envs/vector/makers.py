"""What a pool's environments are made from, and the spaces that they share."""

import copy
import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Space, Text

from rllm_envs.errors import EnvArgumentError
from rllm_envs.spaces import UnicodeText
from rllm_envs.vector.process_env import ProcessEnv

EnvSource = str | EnvSpec | Callable[[], gymnasium.Env[Any, Any]]
"""What one environment is made from: a registered id, a spec, or a function without arguments."""


def spec_of(env_id: str, env_kwargs: dict[str, Any]) -> EnvSpec:
    """Return the spec of a registered environment with these arguments.

    ``max_episode_steps`` and ``disable_env_checker`` are those of ``gymnasium.make``. Gymnasium's
    passive checker is off by default: it would look at each environment of the pool.

    Raises:
        gymnasium.error.Error: Nothing is registered under this id.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    spec = copy.deepcopy(gymnasium.spec(name))
    kwargs = dict(env_kwargs)
    limit = kwargs.pop("max_episode_steps", None)
    if limit is not None:
        spec.max_episode_steps = None if limit == -1 else limit
    spec.disable_env_checker = bool(kwargs.pop("disable_env_checker", True))
    spec.kwargs.update(kwargs)
    return spec


def make_here(source: EnvSource) -> Callable[[], gymnasium.Env[Any, Any]]:
    """Return a function that makes the environment in this process."""
    if isinstance(source, str):
        source = spec_of(source, {})
    if isinstance(source, EnvSpec):
        return partial(gymnasium.make, source)
    if callable(source):
        return source
    raise EnvArgumentError(
        f"an environment of a pool is an id, an EnvSpec or a function, got {source!r:.80}"
    )


def make_in_process(spec: EnvSpec | None, limit_seconds: float | None) -> Callable[[], ProcessEnv]:
    """Return a function that makes the environment in a process of its own.

    Raises:
        EnvArgumentError: Another process cannot make it from its spec.
    """
    entry_point = None if spec is None else spec.entry_point
    try:
        if spec is None or not isinstance(entry_point, str):
            raise ValueError("it has no spec that names a class in a module")
        if entry_point.startswith("__main__:"):
            raise ValueError("its class is in the script itself, which is not a module")
        return partial(ProcessEnv, spec.to_json(), limit_seconds)
    except (TypeError, ValueError) as error:
        name = "an environment" if spec is None else spec.id
        raise EnvArgumentError(
            f'{name} cannot be made in another process (isolation="process"): {error}; register '
            'it with entry_point="module:Class" and JSON arguments, and pass its id'
        ) from None


def shared_space(spaces: Sequence[Space[Any]], name: str) -> Space[Any]:
    """Return the space of all environments of a pool.

    Text spaces are joined: the shortest and the longest of their texts are allowed.

    Raises:
        EnvArgumentError: The spaces differ, and not only in the lengths of their texts.
    """
    first = spaces[0]
    if all(space is first or space == first for space in spaces):
        return first
    texts = [space for space in spaces if isinstance(space, Text)]
    if len(texts) < len(spaces):
        other = next(space for space in spaces if space != first)
        raise EnvArgumentError(
            f"the environments of a pool need one {name}, got {first!r:.80} and {other!r:.80}; "
            "make a pool for each"
        )
    return UnicodeText(
        max(space.max_length for space in texts),
        min_length=min(space.min_length for space in texts),
    )
