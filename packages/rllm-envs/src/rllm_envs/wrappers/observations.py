"""Observations in other forms: under a key, as a chat, or with what happened before."""

from typing import Any

import gymnasium
from gymnasium.spaces import Dict, Sequence, Text
from gymnasium.utils import RecordConstructorArgs

from rllm_envs.errors import EnvArgumentError
from rllm_envs.spaces import UnicodeText

Message = dict[str, str]
"""One message of a chat: ``role`` ("system", "user" or "assistant") and ``content``."""


class DictObservation(
    gymnasium.ObservationWrapper[dict[str, Any], Any, Any], RecordConstructorArgs
):
    """Observations as a dict with one key: ``{"question": text}``.

    Args:
        env: Any environment.
        key: The key.

    Raises:
        EnvArgumentError: The key is no text.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], key: str = "question") -> None:
        RecordConstructorArgs.__init__(self, key=key)
        super().__init__(env)
        if not isinstance(key, str) or not key:
            raise EnvArgumentError(f"key must be a text of at least one character, got {key!r:.80}")
        self.key = key
        self.observation_space = Dict({key: env.observation_space})

    def observation(self, observation: Any) -> dict[str, Any]:
        """Return the observation under the key."""
        return {self.key: observation}


class ChatObservation(gymnasium.Wrapper[tuple[Message, ...], str, str, str], RecordConstructorArgs):
    """Observations as the chat so far: a tuple of messages, ready for a chat template.

    The environment's texts are messages of the role "user", the actions of the role "assistant". An
    empty observation, such as the last one of many tasks, adds no message.

    Args:
        env: An environment of texts.
        system: Content of a first message of the role "system"; None: there is none.

    Raises:
        EnvArgumentError: The observations are no texts, or ``system`` is none.
    """

    def __init__(self, env: gymnasium.Env[str, str], system: str | None = None) -> None:
        RecordConstructorArgs.__init__(self, system=system)
        super().__init__(env)
        _require_text(env, "ChatObservation")
        if system is not None and not isinstance(system, str):
            raise EnvArgumentError(f"system must be a text or None, got {system!r:.80}")
        self.system = system
        self.observation_space = Sequence(Dict({"role": UnicodeText(16), "content": UnicodeText()}))
        self._messages: list[Message] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[Message, ...], dict[str, Any]]:
        """Reset the environment and start the chat."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._messages.clear()
        if self.system is not None:
            self._add("system", self.system)
        self._add("user", observation)
        return self._chat(), info

    def step(self, action: str) -> tuple[tuple[Message, ...], Any, bool, bool, dict[str, Any]]:
        """Step the environment and add the action and its answer to the chat."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._add("assistant", action if isinstance(action, str) else "")
        if observation:
            self._add("user", observation)
        return self._chat(), reward, terminated, truncated, info

    def _add(self, role: str, content: str) -> None:
        self._messages.append({"role": role, "content": content})

    def _chat(self) -> tuple[Message, ...]:
        # Fresh dicts: a reader who adds a key changes nothing here.
        return tuple(dict(message) for message in self._messages)


class History(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Observations that tell the whole episode, for policies that see one text at a time.

    The first observation stays; then follow the last turns, each as a line ``> action`` and the
    environment's answer. Turns that do not fit are left out, oldest first, and counted in a line.

    Args:
        env: An environment of texts.
        max_turns: Turns that are shown at most; None: all.
        max_length: Characters that are shown at most; None: as many as the environment's
            observations may have.

    Raises:
        EnvArgumentError: The observations are no texts, or an argument is out of range.
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        max_turns: int | None = None,
        max_length: int | None = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, max_turns=max_turns, max_length=max_length)
        super().__init__(env)
        space = _require_text(env, "History")
        for name, value in (("max_turns", max_turns), ("max_length", max_length)):
            if value is not None and (type(value) is not int or value < 1):
                raise EnvArgumentError(f"{name} must be an integer of at least 1, got {value!r}")
        self.max_turns = max_turns
        self.max_length = space.max_length if max_length is None else max_length
        self.observation_space = UnicodeText(self.max_length)
        self._first = ""
        self._turns: list[str] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset the environment and forget the last episode."""
        self._first, info = self.env.reset(seed=seed, options=options)
        self._turns.clear()
        return self._story(), info

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Step the environment and return the episode so far."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        shown = action if isinstance(action, str) else ""
        self._turns.append(f"> {shown}\n{observation}" if observation else f"> {shown}")
        return self._story(), reward, terminated, truncated, info

    def _story(self) -> str:
        """Return the first observation and as many of the last turns as fit, at least one."""
        room = self.max_length - len(self._first) - len(_gap(len(self._turns))) - 1
        num_shown = 0
        for turn in reversed(self._turns[-self.max_turns :] if self.max_turns else self._turns):
            room -= len(turn) + 1
            if room < 0 and num_shown:
                break
            num_shown += 1
        num_left_out = len(self._turns) - num_shown
        gap = [_gap(num_left_out)] if num_left_out else []
        story = "\n".join([self._first, *gap, *self._turns[num_left_out:]])
        # Where even one turn does not fit, its end says what is asked.
        return story[-self.max_length :]


def _gap(num_left_out: int) -> str:
    return f"[{num_left_out} earlier turns are not shown]"


def _require_text(env: gymnasium.Env[Any, Any], name: str) -> Text:
    if not isinstance(env.observation_space, Text):
        raise EnvArgumentError(
            f"{name} needs observations that are texts, got {env.observation_space!r:.80}; put it "
            "inside of wrappers that change them"
        )
    return env.observation_space
