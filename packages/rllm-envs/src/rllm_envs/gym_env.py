"""``GymEnv``: any registered Gymnasium text environment behind the ``BaseEnv`` contract."""

import copy
import difflib
import functools
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from rllm_envs.core import BaseEnv, TextEnv
from rllm_envs.errors import EnvArgumentError, UnknownEnvError
from rllm_envs.tasks import Task, canonical_json

MAX_REPEATS = 2_000
"""Seeds in a row that repeat earlier tasks before an environment counts as having no more."""
_MAKE_ARGUMENTS = ("max_episode_steps", "disable_env_checker", "render_mode")


class GymEnv(BaseEnv):
    """A Gymnasium environment of text, as an RL loop uses it.

    Every ``reset`` of one instance starts the same episode when a seed or a task is given, so that
    the members of a group meet the same problem.

    Args:
        env_id: A registered id, such as "rllm/Math-v0", or "module:id".
        env_kwargs: Arguments of the environment.
        seed: Seed of each reset; None draws a new episode each time.
        task: A task to play (``reset(options={"task": task})``); None lets the environment draw
            one.
        observation_key: Present each observation as ``{observation_key: text}``; None presents the
            text itself.

    Raises:
        UnknownEnvError: No environment has this id; the message names the nearest.
        EnvArgumentError: The environment does not take one of ``env_kwargs``.
    """

    def __init__(
        self,
        env_id: str,
        *,
        env_kwargs: Mapping[str, Any] | None = None,
        seed: int | None = None,
        task: Task | None = None,
        observation_key: str | None = "question",
    ) -> None:
        self.env_id = env_id
        self.seed = seed
        self.task = copy.deepcopy(task)
        self.observation_key = observation_key
        self.env = _make(env_id, dict(env_kwargs or {}))
        raw = self.env.unwrapped
        self.blocking = raw.may_block(task) if isinstance(raw, TextEnv) else True

    def reset(self) -> tuple[Any, dict[str, Any]]:
        """Start the episode; return the first observation and info."""
        options = None if self.task is None else {"task": self.task}
        observation, info = self.env.reset(seed=self.seed, options=options)
        return self._present(observation), info

    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Answer an action.

        Returns:
            Observation, reward, done, and the info with ``terminated`` and ``truncated`` (bool).
        """
        observation, reward, terminated, truncated, info = self.env.step(action)
        ends = {"terminated": bool(terminated), "truncated": bool(truncated)}
        done = ends["terminated"] or ends["truncated"]
        return self._present(observation), float(reward), done, {**info, **ends}

    def close(self) -> None:
        """Close the environment; closing twice is harmless."""
        self.env.close()

    def oracle_action(self) -> str:
        """Return the action that a perfect policy takes now.

        Raises:
            EnvArgumentError: The environment is no ``TextEnv`` and so has no oracle.
        """
        raw = self.env.unwrapped
        if not isinstance(raw, TextEnv):
            raise EnvArgumentError(f"{self.env_id} has no oracle: it is not an rllm_envs.TextEnv")
        return raw.oracle_action()

    @staticmethod
    def from_dict(info: Mapping[str, Any]) -> "GymEnv":
        """Make an environment from the merged fields of a task and of the engine's ``env_args``.

        ``env_id``, ``env_kwargs``, ``seed`` and ``observation_key`` go to the constructor; whatever
        else the dict holds is the task. The dict itself stays as it is.

        Raises:
            EnvArgumentError: ``env_id`` is missing.
        """
        fields = dict(info)
        if "env_id" not in fields:
            raise EnvArgumentError(
                f'GymEnv.from_dict needs "env_id", such as "rllm/Math-v0"; got {sorted(fields)}'
            )
        env_id = fields.pop("env_id")
        named = {
            key: fields.pop(key)
            for key in ("env_kwargs", "seed", "observation_key")
            if key in fields
        }
        return GymEnv(env_id, task=fields or None, **named)

    def _present(self, observation: Any) -> Any:
        return observation if self.observation_key is None else {self.observation_key: observation}


def seed_tasks(
    env_id: str,
    env_kwargs: Mapping[str, Any] | None,
    *,
    num_tasks: int,
    first_seed: int = 0,
) -> list[dict[str, int]]:
    """Return ``{"seed": s}`` for seeds whose tasks all differ.

    Seeds are tried upwards from ``first_seed``; one that repeats an earlier task is left out. The
    tasks of an environment that is no ``TextEnv`` are told apart by their first observations.

    Raises:
        EnvArgumentError: The environment has too few different tasks for ``num_tasks``.
    """
    env = GymEnv(env_id, env_kwargs=env_kwargs, observation_key=None)
    seen: set[str] = set()
    tasks: list[dict[str, int]] = []
    seed, repeats = first_seed, 0
    try:
        while len(tasks) < num_tasks:
            observation, _ = env.env.reset(seed=seed)
            raw = env.env.unwrapped
            drawn = canonical_json(raw.task) if isinstance(raw, TextEnv) else observation
            if drawn not in seen:
                seen.add(drawn)
                tasks.append({"seed": seed})
                repeats = 0
            elif (repeats := repeats + 1) > MAX_REPEATS:
                raise EnvArgumentError(
                    f"{env_id} with {dict(env_kwargs or {})} has no more than about {len(tasks)} "
                    f"different tasks, fewer than the {num_tasks} asked for; ask for fewer or "
                    "widen its arguments"
                )
            seed += 1
    finally:
        env.close()
    return tasks


def _make(env_id: str, env_kwargs: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    if not isinstance(env_id, str):
        raise UnknownEnvError(f"env_id must be a text such as 'rllm/Math-v0', got {env_id!r:.80}")
    module, _, name = env_id.rpartition(":")
    if module and importlib.util.find_spec(module.partition(".")[0]) is None:
        raise UnknownEnvError(f"{env_id!r} cannot be made: no module named {module!r}")
    try:
        if module:
            importlib.import_module(module)
        creator = _creator(gymnasium.spec(name))
        _check_arguments(name, creator, env_kwargs)
        if isinstance(creator, type) and issubclass(creator, TextEnv):
            # The check of each first call costs more than the call; TextEnv keeps the contract.
            env_kwargs.setdefault("disable_env_checker", True)
        return gymnasium.make(gymnasium.spec(name), **env_kwargs)
    except gymnasium.error.UnregisteredEnv as error:
        raise UnknownEnvError(_unknown_env(env_id)) from error
    except gymnasium.error.Error as error:
        raise UnknownEnvError(f"{env_id!r} cannot be made: {error}") from error


def _creator(spec: EnvSpec) -> Callable[..., Any] | None:
    """Return what makes an environment; None where it is registered without."""
    entry_point = spec.entry_point
    return _load_creator(entry_point) if isinstance(entry_point, str) else entry_point


@functools.cache
def _load_creator(entry_point: str) -> Callable[..., Any]:
    return load_env_creator(entry_point)


def _check_arguments(
    env_id: str, creator: Callable[..., Any] | None, env_kwargs: Mapping[str, Any]
) -> None:
    if creator is None or not env_kwargs:
        return
    parameters = _parameters(creator)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name in env_kwargs:
        if name not in parameters and name not in _MAKE_ARGUMENTS:
            near = difflib.get_close_matches(name, parameters, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise EnvArgumentError(
                f"{env_id} has no argument {name!r}; it takes {', '.join(parameters)}{hint}"
            )


@functools.lru_cache(maxsize=256)
def _parameters(creator: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(creator).parameters


def _unknown_env(env_id: str) -> str:
    known = sorted(name for name in gymnasium.registry if name.startswith("rllm/"))
    near = difflib.get_close_matches(env_id, list(gymnasium.registry), n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return (
        f"no environment is registered as {env_id!r}; {hint}`python -m rllm_envs list` shows the "
        f"{len(known)} of this package"
    )
