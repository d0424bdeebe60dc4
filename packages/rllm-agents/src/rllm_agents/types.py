"""The records that rollouts are made of.

Two kinds live side by side. `Action`, `Step`, `Trajectory` and `Episode` are the mutable words
of the field: agents append Steps to their Trajectory, engines return Episodes. `SamplingParams`,
`GenerationRequest`, `Completion`, `TurnSpan` and `TokenRecord` are frozen: they say exactly which
token ids were sampled, at which logprobs, by which weights.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, TypeAlias

Message: TypeAlias = dict[str, Any]
"""One chat message: at least ``role`` and ``content``."""

FinishReason: TypeAlias = Literal["stop", "length"]
"""``stop``: the model ended its turn; ``length``: it ran into ``max_tokens``."""


class TerminationReason(StrEnum):
    """Why an episode ended: the first group are outcomes, the second failures."""

    ENV_DONE = "env_done"
    """The environment said so, or the workflow returned."""
    MAX_TURNS_EXCEEDED = "max_turns_exceeded"
    """The engine's `max_steps` was reached."""
    MAX_PROMPT_LENGTH_EXCEEDED = "max_prompt_length_exceeded"
    """The first prompt, or with `enforce_max_prompt_length` any, was longer than
    `max_prompt_length` tokens; the model was not asked."""
    MAX_RESPONSE_LENGTH_EXCEEDED = "max_response_length_exceeded"
    """The model did not end its turn within its tokens, or the trajectory used all of them."""
    TIMEOUT = "timeout"
    """`trajectory_timeout` or `workflow_timeout` passed."""

    ENV_EXCEPTION = "env_exception"
    """The environment raised in its construction, `reset` or `step`."""
    ENV_PROTOCOL = "env_protocol"
    """The environment returned something other than its contract allows."""
    ENV_BAD_REWARD = "env_bad_reward"
    """The reward was not a finite number."""
    ENV_STEP_TIMEOUT = "env_step_timeout"
    """One `reset` or `step` took longer than `step_timeout`."""
    ENV_EXIT = "env_exit"
    """The environment raised SystemExit, or the process that it lives in died."""
    ENV_LEAKED_CANCEL = "env_leaked_cancel"
    """A CancelledError came out of the environment that nobody had sent into it."""
    ENV_OBS_TOO_LARGE = "env_obs_too_large"
    """An observation has more characters than any model reads."""
    SANDBOX_ERROR = "sandbox_error"
    """A sandbox failed, not the program in it."""
    GRADER_ERROR = "grader_error"
    """The grader failed; the answer was not judged."""
    GRADER_TIMEOUT = "grader_timeout"
    """A workflow's reward function took longer than `step_timeout`."""
    AGENT_EXCEPTION = "agent_exception"
    """The agent's own code raised."""
    LLM_ERROR = "llm_error"
    """The rollout engine raised something of no kind below."""
    LLM_TIMEOUT = "llm_timeout"
    """A call took longer than `call_timeout`, or the server did not answer in time."""
    LLM_CONNECTION = "llm_connection"
    """The server cannot be reached, or breaks the connection off."""
    LLM_HTTP_ERROR = "llm_http_error"
    """The server answers with an HTTP error, which the text names."""
    LLM_BAD_RESPONSE = "llm_bad_response"
    """The server, or an engine of one's own, answers what is no completion."""
    WORKFLOW_EXCEPTION = "workflow_exception"
    """The workflow's own code raised, or returned no Episode."""

    @property
    def is_failure(self) -> bool:
        """Whether the episode failed, so that it has no reward and must not be learned from."""
        return self in _FAILURES


_FAILURES = frozenset(
    {
        TerminationReason.ENV_EXCEPTION,
        TerminationReason.ENV_PROTOCOL,
        TerminationReason.ENV_BAD_REWARD,
        TerminationReason.ENV_STEP_TIMEOUT,
        TerminationReason.ENV_EXIT,
        TerminationReason.ENV_LEAKED_CANCEL,
        TerminationReason.ENV_OBS_TOO_LARGE,
        TerminationReason.SANDBOX_ERROR,
        TerminationReason.GRADER_ERROR,
        TerminationReason.GRADER_TIMEOUT,
        TerminationReason.AGENT_EXCEPTION,
        TerminationReason.LLM_ERROR,
        TerminationReason.LLM_TIMEOUT,
        TerminationReason.LLM_CONNECTION,
        TerminationReason.LLM_HTTP_ERROR,
        TerminationReason.LLM_BAD_RESPONSE,
        TerminationReason.WORKFLOW_EXCEPTION,
    }
)


CUT_OFF = frozenset(
    {
        TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED,
        TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED,
        TerminationReason.MAX_TURNS_EXCEEDED,
        TerminationReason.TIMEOUT,
    }
)
"""Ends that a bound of the run made, not the task."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn. Made by users and sampling plans, read by rollout engines."""

    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """In (0, 1]; 1 keeps the whole distribution."""
    top_k: int = 0
    """0 keeps the whole distribution."""
    max_tokens: int | None = None
    """Most tokens of one completion; None leaves it to the engine's limits."""
    seed: int | None = None
    """Same seed, prompt and weights: same completion, up to floating point."""

    def __post_init__(self) -> None:
        """Refuse values outside their ranges.

        Raises:
            ValueError: With the field, its value and what is allowed.
        """
        if not 0.0 <= self.temperature <= 100.0:
            raise ValueError(f"temperature must be in [0, 100], got {self.temperature!r}")
        if not 0.0 < self.top_p <= 1.0:
            raise ValueError(f"top_p must be in (0, 1], got {self.top_p!r}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be 0 (off) or more, got {self.top_k!r}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens!r}")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One turn to be sampled. Made by run_episode, read by a RolloutEngine."""

    messages: tuple[Message, ...]
    """The conversation, for engines that work on text."""
    prompt_ids: tuple[int, ...] | None
    """The exact prompt, for engines that work on tokens; None where there is no tokenizer."""
    sampling: SamplingParams
    session_id: str = ""
    """Equal for all turns of one trajectory."""
    adapter: str = ""
    """Which of a `NamedWeightsEngine`'s sets of weights samples; "" are the engine's own."""


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """Ids of one completion that one version of the weights sampled."""

    start: int
    """Index of its first id within the completion."""
    stop: int
    """Index after its last id."""
    weights_version: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled response. Made by a RolloutEngine, read by run_episode and the renderer."""

    text: str
    """The response without its stop token."""
    finish_reason: FinishReason
    token_ids: tuple[int, ...] = ()
    """Sampled ids, stop token included; empty when the engine knows only text."""
    logprobs: tuple[float, ...] = ()
    """Natural logarithms under the distribution sampled from, one per id."""
    weights_version: int = 0
    """Version of the weights that sampled its first id."""
    version_spans: tuple[VersionSpan, ...] = ()
    """Where weights were exchanged while it was sampled: who sampled what, in order and without
    gaps. Empty where one version sampled all of it."""


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """One recorded model call of a workflow. Made by a RecordedEngine, read by workflows.

    A Step that holds one (`Step.model_output`) owns exactly what that call sampled.
    """

    call_id: str
    """Unique in its run: ``<uid>/<attempt>#<number of the call>``."""
    text: str
    """The whole response without its stop token."""
    finish_reason: FinishReason
    messages: tuple[Message, ...] = ()
    """The conversation that it answers."""
    prompt_ids: tuple[int, ...] = ()
    """Exact prompt; empty when the engine knows only text."""
    completion_ids: tuple[int, ...] = ()
    """Sampled ids, stop token included."""
    logprobs: tuple[float, ...] = ()
    """One per sampled id."""
    weights_version: int = 0
    version_spans: tuple[VersionSpan, ...] = ()
    """As in its Completion."""
    adapter: str = ""
    """Which set of weights was asked for; see `GenerationRequest.adapter`."""

    @property
    def reasoning(self) -> str:
        """What stands before ``</think>``; "" where there is none."""
        before, mark, _ = self.text.partition("</think>")
        return before.replace("<think>", "", 1).strip() if mark else ""

    @property
    def content(self) -> str:
        """What stands after ``</think>``; the whole text where there is none."""
        _, mark, after = self.text.partition("</think>")
        return after.strip() if mark else self.text

    @property
    def message(self) -> Message:
        """The response as a message that continues the conversation."""
        return {"role": "assistant", "content": self.text}


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """Where one completion stands in a TokenRecord."""

    start: int
    """Index of its first id."""
    stop: int
    """Index after its last id."""
    step_index: int
    """Which step of the trajectory it is, from 0."""
    weights_version: int
    """Version of the weights that sampled its first id."""
    version_spans: tuple[VersionSpan, ...] = ()
    """As in its Completion: who sampled what, where weights were exchanged meanwhile. Their
    indices count from the completion's first id."""

    @property
    def sampled_by(self) -> tuple[VersionSpan, ...]:
        """Who sampled which of its ids, in order and without gaps, also where one version did."""
        whole = VersionSpan(0, self.stop - self.start, self.weights_version)
        return self.version_spans or (whole,)


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """One token sequence of a trajectory, as sampled. Made by the renderer, read by rllm_learn.

    A trajectory whose template never rewrites history is one record; each rewrite starts another.
    """

    token_ids: tuple[int, ...]
    """First prompt, then completions and the rendered messages between them, length L."""
    logprobs: tuple[float, ...]
    """Length L: the sampler's logprob at sampled positions, 0.0 elsewhere."""
    turns: tuple[TurnSpan, ...]
    """The sampled spans, in order, disjoint."""


@dataclass
class Action:
    """What an agent does to its environment; the engine passes `action` to `env.step`."""

    action: Any = None


@dataclass
class Step:
    """One interaction: what the agent saw, what the model said, what the environment answered."""

    prompt_ids: list[int] = field(default_factory=list)
    response_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    chat_completions: list[Message] = field(default_factory=list)
    observation: Any = None
    thought: str = ""
    action: Any = None
    model_response: str = ""
    info: dict[str, Any] = field(default_factory=dict)
    reward: float = 0.0
    done: bool = False
    mc_return: float = 0.0
    """Discounted return from this step on; the engine fills it in when the trajectory ends."""
    model_output: ModelOutput | None = None
    """The recorded call that the step is of; None outside workflows."""


@dataclass
class Trajectory:
    """One agent's steps in one run of an environment."""

    uid: str = field(default_factory=lambda: secrets.token_hex(16))
    name: str = "agent"
    task: Any = None
    steps: list[Step] = field(default_factory=list)
    reward: float | None = 0.0
    """Sum of the steps' rewards; None when the episode failed or nobody judged the trajectory."""
    info: dict[str, Any] = field(default_factory=dict)
    token_records: tuple[TokenRecord, ...] = ()
    """What was sampled, exactly; empty when the engine knew only text."""


@dataclass
class Episode:
    """All trajectories of one run of one task: what every request to an engine ends as."""

    id: str = ""
    task: Any = None
    termination_reason: TerminationReason | None = None
    is_correct: bool = False
    """The environment's ``info["success"]`` where it gives one, else whether the reward is > 0."""
    trajectories: list[Trajectory] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    info: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    """What failed, in words; None when nothing did."""

    @property
    def failed(self) -> bool:
        """Whether the episode has no outcome that may be learned from or averaged."""
        return self.termination_reason is not None and self.termination_reason.is_failure

    @property
    def reward(self) -> float | None:
        """Sum of the trajectories' rewards; None when the episode failed, never 0 for it."""
        if self.failed:
            return None
        return float(sum(t.reward or 0.0 for t in self.trajectories))

    @property
    def trajectory(self) -> Trajectory:
        """The only trajectory.

        Raises:
            ValueError: When there is not exactly one.
        """
        if len(self.trajectories) != 1:
            raise ValueError(
                f"episode {self.id!r} has {len(self.trajectories)} trajectories; "
                "read `.trajectories`"
            )
        return self.trajectories[0]

    @property
    def steps(self) -> list[Step]:
        """Steps of the only trajectory; raises ValueError when there is not exactly one."""
        return self.trajectory.steps
