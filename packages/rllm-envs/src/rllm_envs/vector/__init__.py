"""Many environments at once: ``TextVectorEnv``, and what ``gymnasium.make_vec`` calls.

``gymnasium.make_vec("rllm/Math-v0", num_envs=8)`` finds the pool under the name
``rllm_envs.vector:rllm/Math-v0``: every registered id is an attribute of this module.
"""

from functools import partial
from typing import Any

import gymnasium

from rllm_envs.vector.text_vector_env import TextVectorEnv

__all__ = ["TextVectorEnv", "make_text_vec"]

_POOL_ARGUMENTS = ("autoreset_mode", "deadline", "isolation", "max_threads")


def make_text_vec(env_id: str, num_envs: int = 1, **arguments: Any) -> TextVectorEnv:
    """Return a pool of environments of one id.

    Args:
        env_id: A registered id.
        num_envs: Size of the pool.
        arguments: ``autoreset_mode``, ``deadline``, ``isolation`` and ``max_threads`` are the
            pool's, see ``TextVectorEnv``; all others are each environment's.
    """
    pool = {name: arguments.pop(name) for name in _POOL_ARGUMENTS if name in arguments}
    return TextVectorEnv.from_ids([env_id] * num_envs, env_kwargs=arguments, **pool)


def __getattr__(name: str) -> Any:
    if name in gymnasium.registry:
        return partial(make_text_vec, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
