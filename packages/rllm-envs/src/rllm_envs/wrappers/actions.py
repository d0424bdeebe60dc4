"""Actions in JSON, and what becomes of actions that are not understood."""

import copy
import json
from typing import Any, Literal

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from rllm_envs.errors import EnvArgumentError
from rllm_envs.parsing import strip_thoughts

POLICIES = ("penalise", "terminate", "retry")
RETRY_HINT = "That action was not understood. Try again."


class JsonAction(gymnasium.ActionWrapper[Any, str, str], RecordConstructorArgs):
    r"""Actions as a JSON object, of which one field is the environment's action.

    ``{"thought": "47 * 83 is 3901", "action": "\\boxed{3901}"}`` acts with ``\boxed{3901}``. Text
    around the object, such as a fence of a code block, does not count, nor do thoughts in
    ``<think>...</think>``. A field that is no text acts with its JSON text. An action without such
    an object acts with the empty text, which every environment answers as one that it does not
    understand, and which costs a turn. The first observation says how to act.

    Args:
        env: An environment of texts.
        key: Name of the field.

    Raises:
        EnvArgumentError: The key is no text.
    """

    def __init__(self, env: gymnasium.Env[str, str], key: str = "action") -> None:
        RecordConstructorArgs.__init__(self, key=key)
        super().__init__(env)
        if not isinstance(key, str) or not key:
            raise EnvArgumentError(f"key must be a text of at least one character, got {key!r:.80}")
        self.key = key

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset the environment; the observation ends with how to act."""
        observation, info = self.env.reset(seed=seed, options=options)
        form = json.dumps({self.key: "..."})
        return f"{observation}\nReply with a JSON object: {form}", info

    def action(self, action: Any) -> str:
        """Return the action in a JSON object; the empty text where there is none."""
        if not isinstance(action, str):
            return ""
        text = strip_thoughts(action)
        start, end = text.find("{"), text.rfind("}") + 1
        try:
            fields = json.loads(text[start:end])
            value = fields[self.key]
            return value if isinstance(value, str) else json.dumps(value)
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""


class InvalidAction(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """What becomes of actions that the environment marks as ``invalid``.

    - "penalise": their reward is less by ``penalty``.
    - "terminate": the same, and the episode ends with them.
    - "retry": they are undone, up to ``max_retries`` times an episode: no turn is spent, the reward
      is 0, and the observation asks again. Info has ``retries_left`` (int). The environment is
      copied before each action, so it must be one that can be.

    Args:
        env: An environment whose info has ``invalid``.
        policy: "penalise", "terminate" or "retry".
        penalty: Subtracted from the reward, at least 0; not used by "retry".
        max_retries: Undone actions of an episode, at least 1; used by "retry" only.

    Raises:
        EnvArgumentError: An argument is not allowed.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        policy: Literal["penalise", "terminate", "retry"] = "penalise",
        penalty: float = 0.0,
        max_retries: int = 2,
    ) -> None:
        RecordConstructorArgs.__init__(
            self, policy=policy, penalty=penalty, max_retries=max_retries
        )
        super().__init__(env)
        if policy not in POLICIES:
            raise EnvArgumentError(f"policy must be one of {', '.join(POLICIES)}, got {policy!r}")
        if isinstance(penalty, bool) or not 0 <= penalty < float("inf"):
            raise EnvArgumentError(f"penalty must be a number of at least 0, got {penalty!r}")
        if type(max_retries) is not int or max_retries < 1:
            raise EnvArgumentError(
                f"max_retries must be an integer of at least 1, got {max_retries!r}"
            )
        self.policy = policy
        self.penalty = float(penalty)
        self.max_retries = max_retries
        self._retries_left = max_retries

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment and the retries."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._retries_left = self.max_retries
        return observation, self._with_retries(info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Step the environment and apply the policy."""
        if self.policy == "retry":
            return self._step_or_undo(action)
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not info.get("invalid"):
            return observation, reward, terminated, truncated, info
        reward = float(reward) - self.penalty
        if self.policy == "terminate":
            terminated, truncated = True, False
        return observation, reward, terminated, truncated, info

    def _step_or_undo(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        before = copy.deepcopy(self.env) if self._retries_left else None
        observation, reward, terminated, truncated, info = self.env.step(action)
        if before is None or not info.get("invalid"):
            return observation, reward, terminated, truncated, self._with_retries(info)
        self.env = before
        self._retries_left -= 1
        if isinstance(observation, str) and not observation:
            observation = RETRY_HINT
        turns = {}
        if "turn" in info and "turns_left" in info:
            turns = {"turn": info["turn"] - 1, "turns_left": info["turns_left"] + 1}
        return observation, 0.0, False, False, self._with_retries({**info, **turns})

    def _with_retries(self, info: dict[str, Any]) -> dict[str, Any]:
        if self.policy != "retry":
            return info
        return {**info, "retries_left": self._retries_left}
