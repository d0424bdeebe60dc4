"""``TextEnv``, the base of all environments, and ``BaseEnv``, the small contract of RL loops."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from rllm_envs.errors import EnvArgumentError, EpisodeError, TaskError, excerpt
from rllm_envs.spaces import MAX_SHARED_LENGTH, UnicodeText
from rllm_envs.tasks import Task, canonical_json, copied, task_split

SPLITS = ("train", "test", "all")
MAX_DRAWS = 10_000
"""How many instances are drawn before a split counts as empty."""


@dataclass(frozen=True, slots=True)
class Response:
    """The environment's answer to one action. Made by ``TextEnv.respond``, read by ``step``."""

    observation: str
    """What the agent reads next; the empty text where there is nothing to say."""
    reward: float = 0.0
    """Reward of this step."""
    terminated: bool = False
    """Whether the task is over by its own rules."""
    truncated: bool = False
    """Whether the episode is cut short by a budget."""
    info: dict[str, Any] = field(default_factory=dict)
    """Further values; each key keeps one type for all steps, and no value is None."""


class TextEnv(gymnasium.Env[str, str], ABC):
    """A Gymnasium environment whose observations and actions are text.

    A subclass writes four methods: ``generate_task``, ``begin``, ``respond`` and ``oracle_action``.
    This class does the rest: seeds, given tasks, splits, counting turns, ``info``, rendering, and
    refusing steps outside of an episode.

    ``reset(seed=s)`` fixes the task and all later randomness; ``reset(options={"task": task})``
    plays exactly that task. Randomness comes from ``self.np_random`` alone, so environments never
    disturb each other.

    ``info`` of ``reset`` and ``step`` always holds ``success`` (bool: the task is solved),
    ``invalid`` (bool: the last action was not understood), ``turn`` and ``turns_left`` (int).

    Args:
        max_turns: Actions per episode, at least 1. When they are spent without an end the episode
            is truncated; with a single turn it is terminated, because that is then the task's rule.
        split: "train" or "test" draws instances of that side only (see ``tasks.task_split``); "all"
            draws from both. Given tasks are played whatever their side.
        render_mode: None, "ansi" (``render`` returns the episode so far) or "human" (it is
            printed).

    Raises:
        EnvArgumentError: An argument has a value that is not allowed.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "human"], "render_fps": 1}  # noqa: RUF012

    blocking: bool = False
    """Whether ``step`` or ``reset`` may wait, for a process or a server; False means that they
    return at once and may be called in an event loop."""

    is_generated: bool = True
    """Whether ``generate_task`` makes tasks up, so that the split is decided per task; False means
    that it draws from rows that are already those of the split."""

    max_turns: int
    split: str

    def __init__(
        self, *, max_turns: int = 1, split: str = "train", render_mode: str | None = None
    ) -> None:
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
            raise EnvArgumentError(f"max_turns must be an integer of at least 1, got {max_turns!r}")
        if split not in SPLITS:
            raise EnvArgumentError(f"split must be one of {', '.join(SPLITS)}, got {split!r:.80}")
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise EnvArgumentError(
                f"render_mode must be None or one of {', '.join(modes)}, got {render_mode!r:.80}"
            )
        self.max_turns = max_turns
        self.split = split
        self.render_mode = render_mode
        self.observation_space = UnicodeText(MAX_SHARED_LENGTH)
        self.action_space = UnicodeText(MAX_SHARED_LENGTH)
        self._task: Task | None = None
        self._turn = 0
        self._is_running = False
        self._transcript: list[str] = []

    # What a subclass writes

    @abstractmethod
    def generate_task(self) -> Task:
        """Return a fresh random task, using ``self.np_random`` only.

        The task is JSON data and may hold the answer.
        """

    @abstractmethod
    def begin(self, task: Task) -> str:
        """Start an episode of ``task`` and return the first observation."""

    @abstractmethod
    def respond(self, action: str) -> Response:
        """Return the answer to an action, which is any text at all. Must not raise."""

    @abstractmethod
    def oracle_action(self) -> str:
        """Return the action that a perfect policy takes now."""

    def validate_task(self, task: Task) -> Task:
        """Return a given task in the form that ``begin`` expects.

        Override it to check fields; the default accepts any task.

        Raises:
            TaskError: The task cannot be played; the message names the field.
        """
        return task

    def may_block(self, task: Task | None) -> bool:
        """Return whether an episode of ``task`` (None: a drawn one) may wait; see ``blocking``."""
        return self.blocking

    # What this class does

    @property
    def task(self) -> Task:
        """A copy of the current task, answer included.

        Raises:
            EpisodeError: ``reset`` has not been called.
        """
        if self._task is None:
            raise EpisodeError("there is no task before the first reset(); call reset() first")
        return copied(self._task)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode and return the first observation and its info.

        Args:
            seed: Fixes the task and all later randomness; None continues the present stream.
            options: ``{"task": task}`` plays that task instead of a random one.

        Raises:
            TaskError: The given task cannot be played.
            EnvArgumentError: ``options`` has another key, or the split is empty.
        """
        super().reset(seed=seed)
        self._is_running = False
        given = _given_task(options)
        self._task = self._draw_task() if given is None else self.validate_task(given)
        self._turn = 0
        observation = self.begin(copied(self._task))
        self._is_running = True
        self._transcript.clear()
        self._show(observation)
        return observation, self._info(success=False, invalid=False)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Answer an action.

        An action that is not a string is treated as the empty text and marked invalid.

        Returns:
            Observation, reward, terminated, truncated, info.

        Raises:
            EpisodeError: No episode is running.
        """
        if not self._is_running:
            raise EpisodeError("no episode is running: call reset() before step()")
        self._turn += 1
        is_text = isinstance(action, str)
        text = str(action) if is_text else ""
        response = self.respond(text)
        terminated, truncated = bool(response.terminated), bool(response.truncated)
        if self._turn >= self.max_turns and not (terminated or truncated):
            terminated, truncated = self.max_turns == 1, self.max_turns > 1
        self._is_running = not (terminated or truncated)
        reward = float(response.reward)
        info = self._info(success=terminated and reward >= 1.0, invalid=not is_text)
        if response.info:
            info |= {key: copied(value) for key, value in response.info.items()}
        if self.render_mode is not None:
            self._show(f"> {text}")
            if response.observation:
                self._show(response.observation)
            if not self._is_running:
                self._show(f"[{'truncated' if truncated else 'end'}, reward {reward:g}]")
        return response.observation, reward, terminated, truncated, info

    def render(self) -> str | None:  # type: ignore[override]
        """Return the episode so far as text in mode "ansi"; None in the other modes."""
        return "\n".join(self._transcript) if self.render_mode == "ansi" else None

    def _draw_task(self) -> Task:
        for _ in range(MAX_DRAWS):
            task = self.generate_task()
            is_any = self.split == "all" or not self.is_generated
            if is_any or task_split(task) == self.split:
                return task
        raise EnvArgumentError(
            f"{type(self).__name__}: none of {MAX_DRAWS} drawn tasks belongs to split "
            f'"{self.split}"; there are too few different tasks, so use split="all" or widen the '
            "arguments"
        )

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        return {
            "success": success,
            "invalid": invalid,
            "turn": self._turn,
            "turns_left": self.max_turns - self._turn,
        }

    def _show(self, text: str) -> None:
        if self.render_mode == "ansi":
            self._transcript.append(text)
        elif self.render_mode == "human":
            # What an agent writes need not be encodable in the terminal's encoding.
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
            sys.stdout.flush()


def _given_task(options: Mapping[str, Any] | None) -> Task | None:
    unknown = set(options or ()) - {"task"}
    if unknown:
        raise EnvArgumentError(
            f"reset options may hold 'task' only, got {sorted(map(str, unknown))}"
        )
    task = (options or {}).get("task")
    if task is None:
        return None
    if not isinstance(task, dict):
        raise TaskError(f"options['task'] must be a dict, got {excerpt(task)}")
    canonical_json(task)
    return copied(task)


class BaseEnv(ABC):
    """The environment contract of RL loops: four values a step, one instance a rollout.

    The engines run any subclass as it is. ``blocking`` says whether calls may wait (then they are
    made in a thread) or return at once.
    """

    blocking: bool = True
    """Whether ``reset`` and ``step`` may wait; False means that they return at once."""

    @abstractmethod
    def reset(self) -> tuple[Any, dict[str, Any]]:
        """Start the episode; return the first observation and an info dict."""

    @abstractmethod
    def step(self, action: Any) -> tuple[Any, float, bool, dict[str, Any]]:
        """Answer an action; return observation, reward, done and info."""

    def close(self) -> None:  # noqa: B027  # closing is optional
        """Release what the environment holds; the default holds nothing."""

    @staticmethod
    @abstractmethod
    def from_dict(info: dict[str, Any]) -> "BaseEnv":
        """Make an environment from the merged fields of a task and of the engine's ``env_args``."""
