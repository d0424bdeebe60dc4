"""``RecordEpisodes``: each episode as a row of a JSONL file, with all that replays it."""

import json
import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs

from rllm_envs.core import TextEnv
from rllm_envs.errors import DatasetError, EnvArgumentError


class RecordEpisodes(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Append a row to a file for each episode that has at least one action.

    A row is written when its episode ends, or, with ``is_complete`` false, when another one starts
    or the environment is closed. It is one write at the end of the file, so several environments,
    also of other processes, may record into one.

    Fields of a row: ``id`` and ``kwargs`` (the environment's), ``spec`` (all that
    ``gymnasium.make`` needs, wrappers inside of this one included; None for an environment without
    a spec), ``seed`` (int or None) and ``random_state`` (None with a seed) before the reset,
    ``options`` (of the reset), ``task`` (answer included; None where the environment has none),
    ``observations`` (one more than actions), ``actions``, ``rewards``, ``infos`` (one more than
    actions), ``terminated``, ``truncated``, ``is_complete`` (bool), ``return`` and ``length``.

    Args:
        env: Any environment whose observations and actions are data.
        path: The file; its folder must exist.

    Raises:
        EnvArgumentError: The folder does not exist.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], path: str | Path) -> None:
        RecordConstructorArgs.__init__(self, path=str(path))
        super().__init__(env)
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise EnvArgumentError(f"path: the folder {str(self.path.parent)!r} does not exist")
        self._row: dict[str, Any] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and begin a row."""
        self._write(is_complete=False)
        state = self.env.unwrapped.np_random.bit_generator.state if seed is None else None
        given = None if options is None else _as_data(options)
        observation, info = self.env.reset(seed=seed, options=options)
        raw, spec = self.env.unwrapped, self.env.spec
        self._row = {
            "id": None if spec is None else spec.id,
            "kwargs": None if spec is None else _as_data(spec.kwargs),
            "spec": None if spec is None else json.loads(spec.to_json()),
            "seed": None if seed is None else int(seed),
            "random_state": None if state is None else _as_data(state),
            "options": given,
            "task": raw.task if isinstance(raw, TextEnv) else None,
            "observations": [_as_data(observation)],
            "actions": [],
            "rewards": [],
            "infos": [_as_data(info)],
            "terminated": False,
            "truncated": False,
        }
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and write the row where the episode ends."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if self._row is not None:
            self._row["actions"].append(_as_data(action))
            self._row["observations"].append(_as_data(observation))
            self._row["rewards"].append(float(reward))
            self._row["infos"].append(_as_data(info))
            self._row["terminated"] = bool(terminated)
            self._row["truncated"] = bool(truncated)
            if terminated or truncated:
                self._write(is_complete=True)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """Write what there is of an episode and close the environment."""
        self._write(is_complete=False)
        super().close()

    def _write(self, *, is_complete: bool) -> None:
        row, self._row = self._row, None
        if row is None or not row["actions"]:
            return
        row["is_complete"] = is_complete
        row["return"] = sum(row["rewards"])
        row["length"] = len(row["actions"])
        line = json.dumps(row).encode("ascii") + b"\n"
        # Opened for each row: a copied or forked environment shares no position with this one.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            while line:
                line = line[os.write(descriptor, line) :]
        finally:
            os.close(descriptor)


def replay_episode(
    row: dict[str, Any], env: gymnasium.Env[Any, Any] | None = None
) -> dict[str, Any]:
    """Play a recorded episode again and return what happens.

    Args:
        row: A row of ``RecordEpisodes``.
        env: Where to play it; made from the row's spec by default.

    Returns:
        ``observations``, ``rewards``, ``infos``, ``terminated`` and ``truncated`` in the form of
        the row; they equal the row's unless the environment has changed.

    Raises:
        DatasetError: The row has no spec, and no environment is given.
    """
    is_own = env is None
    if env is None:
        if row["spec"] is None:
            raise DatasetError("the row has no spec: its environment had none; pass env=")
        env = gymnasium.make(EnvSpec.from_json(json.dumps(row["spec"])))
    if row["random_state"] is not None:
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = row["random_state"]
        env.unwrapped.np_random = generator
    observation, info = env.reset(seed=row["seed"], options=row["options"])
    again: dict[str, Any] = {
        "observations": [_as_data(observation)],
        "rewards": [],
        "infos": [_as_data(info)],
        "terminated": False,
        "truncated": False,
    }
    for action in row["actions"]:
        observation, reward, terminated, truncated, info = env.step(action)
        again["observations"].append(_as_data(observation))
        again["rewards"].append(float(reward))
        again["infos"].append(_as_data(info))
        again["terminated"], again["truncated"] = bool(terminated), bool(truncated)
    if is_own:
        env.close()
    return again


def _as_data(value: Any) -> Any:
    """Return a value as JSON data that shares nothing with it."""
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else repr(value)
