"""``EnvSlot``: one place of a pool: its environment, its episode, and what follows a failure."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from rllm_envs.errors import EnvArgumentError, EnvProcessError, EpisodeError, TaskError
from rllm_envs.vector.turns import Turn

CALLERS_MISTAKES = (TaskError, EnvArgumentError)
"""What a reset raises for the sake of its arguments; the environment is all right."""


class EnvSlot:
    """An environment that is reset, stepped and, after a failure, replaced.

    No exception of the environment leaves ``reset`` and ``step``, save KeyboardInterrupt: it
    becomes a truncated turn whose ``info["error"]`` says what happened, and the environment is made
    afresh at the next reset. Only one call may be under way at a time.

    Args:
        index: Place in the pool.
        make: Makes the environment.
        mode: What follows the end of an episode.
        blank: Observation of a turn without one.
    """

    def __init__(
        self, index: int, make: Callable[[], Any], mode: AutoresetMode, blank: Any
    ) -> None:
        self.index = index
        self.make = make
        self.mode = mode
        self.blank = blank
        self.env: Any = None
        self.observation = blank
        self.has_started = False
        self.is_running = False
        self.is_closed = False
        self._turn = 0
        self._seed: int | None = None
        self._num_replaced = 0
        self._is_fresh = False

    def open(self) -> Any:
        """Make the environment and return it.

        Raises:
            EpisodeError: The pool is closed.
            Exception: Whatever the environment's constructor raises.
        """
        if self.is_closed:
            raise EpisodeError("the pool is closed")
        self.env = self.make()
        self._is_fresh = True
        return self.env

    def may_block(self, task: Any) -> bool:
        """Return whether an episode of ``task`` (None: a drawn one) may wait for something."""
        if self.env is None:
            return True
        try:
            return bool(self.env.get_wrapper_attr("may_block")(task))
        except AttributeError:
            # Not one of ours: it says so by the same class attribute, or it is not known.
            raw = self.env.unwrapped
            return getattr(raw, "blocking", True) is not False

    def successor(self) -> "EnvSlot":
        """Return a slot without an environment that takes this one's place while this one hangs."""
        other = EnvSlot(self.index, self.make, self.mode, self.blank)
        other.has_started = self.has_started
        other._turn = self._turn
        other._seed = self._seed
        other._num_replaced = self._num_replaced + 1
        return other

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> Turn:
        """Start an episode, in a fresh environment where the last one failed.

        A fresh environment that is given no seed gets one derived from the slot's last seed, so
        that a failure does not make a run irreproducible.
        """
        self.is_running = False
        self.has_started = True
        if seed is not None:
            self._seed, self._num_replaced = seed, 0
        try:
            env = self.open() if self.env is None else self.env
            if self._is_fresh and seed is None:
                seed = self._derived_seed()
            self._is_fresh = False
            observation, info = env.reset(seed=seed, options=options)
            _check_info(info)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return self._failed_reset(error)
        self._turn = 0
        self.is_running = True
        self.observation = observation
        return Turn(self.index, observation, 0.0, False, False, info)

    def step(self, action: Any) -> Turn:
        """Act; where no episode is running, reset instead and leave the action unused.

        In mode SAME_STEP a step that ends the episode starts the next one: ``info`` and the
        observation are the new episode's, ``final_obs`` and ``final_info`` the old one's.
        """
        if not self.is_running:
            return self.reset()
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
            reward = float(reward)
            _check_info(info)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return self.fail(f"step failed: {in_words(error)}")
        self._turn += 1
        self.observation = observation
        turn = Turn(self.index, observation, reward, bool(terminated), bool(truncated), info)
        return self._ended(turn) if terminated or truncated else turn

    def fail(self, message: str) -> Turn:
        """Give the environment up and end its episode with an error."""
        self.discard()
        self.observation = self.blank
        info = self._error_info(message) | {"turn": self._turn + 1}
        return self._ended(Turn(self.index, self.blank, 0.0, False, True, info))

    def give_up(self, message: str) -> Turn:
        """End the episode with an error and start no other one."""
        self.discard()
        return self._error_turn(message)

    def _error_turn(self, message: str) -> Turn:
        self.is_running = False
        self.observation = self.blank
        return Turn(self.index, self.blank, 0.0, False, True, self._error_info(message))

    def discard(self) -> None:
        """Close the environment, whatever that raises, and forget it."""
        env, self.env = self.env, None
        self.is_running = False
        if env is not None:
            self._num_replaced += 1
            with contextlib.suppress(Exception, SystemExit):
                env.close()

    def _ended(self, last: Turn) -> Turn:
        self.is_running = False
        if self.mode is not AutoresetMode.SAME_STEP:
            return last
        first = self.reset()
        info = {**first.info, "final_obs": last.observation, "final_info": last.info}
        if "error" in last.info:
            info["error"] = last.info["error"]
        return last._replace(observation=first.observation, info=info)

    def _failed_reset(self, error: BaseException) -> Turn:
        self._turn = 0
        message = f"reset failed: {in_words(error)}"
        is_ours = isinstance(error, CALLERS_MISTAKES)
        turn = self._error_turn(message) if is_ours else self.give_up(message)
        return turn._replace(error=error)

    def _error_info(self, message: str) -> dict[str, Any]:
        return {
            "success": False,
            "invalid": False,
            "turn": self._turn,
            "turns_left": 0,
            "error": message,
        }

    def _derived_seed(self) -> int | None:
        if self._seed is None or self._num_replaced == 0:
            return None
        words = np.random.SeedSequence((self._seed, self._num_replaced)).generate_state(1)
        return int(words[0])


def in_words(error: BaseException) -> str:
    """Return type and message of an error, of bounded length."""
    text = str(error) if isinstance(error, EnvProcessError) else f"{type(error).__name__}: {error}"
    return text[:2000]


def _check_info(info: Any) -> None:
    if not isinstance(info, dict):
        raise TypeError(f"info must be a dict, got {type(info).__name__}")
