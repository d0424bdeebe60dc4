"""Calls of a rollout engine, contained and checked, and one trajectory's conversation of them."""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rllm_agents.call_threads import contain_awaitable
from rllm_agents.errors import (
    EngineError,
    EpisodeFailure,
    PromptTooLongError,
    RendererError,
)
from rllm_agents.limits import RolloutLimits
from rllm_agents.renderer import Renderer
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.types import (
    Completion,
    GenerationRequest,
    Message,
    SamplingParams,
    Step,
    TerminationReason,
    TokenRecord,
)

_T = TypeVar("_T")
_session_numbers = itertools.count()


@dataclass(frozen=True)
class ModelSetting:
    """What is asked, and how much of it. Made by engines and matches, read by conversations."""

    engine: RolloutEngine
    renderer: Renderer | None = None
    """None where the engine works on text; then no token is counted."""
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    adapter: str = ""
    """Which of the engine's sets of weights is asked; see `GenerationRequest.adapter`."""

    def room(self, num_prompt: int, num_first: int) -> int:
        """Return how many tokens may follow a prompt; 0 or less: none.

        Args:
            num_prompt: Tokens of the prompt.
            num_first: Tokens of the conversation's first prompt.
        """
        room = self.limits.room(num_prompt, num_first)
        most = getattr(self.engine, "max_model_length", None)
        return room if most is None else min(room, most - num_prompt)

    async def prepare(self) -> None:
        """Let the engine get ready.

        Raises:
            EpisodeFailure: It cannot work.
        """
        prepare = getattr(self.engine, "prepare", None)
        if prepare is not None:
            await ask_engine(prepare)

    async def sample(self, request: GenerationRequest) -> Completion:
        """Sample one completion.

        Raises:
            EpisodeFailure: The engine raises, answers something that is no completion, or takes
                longer than a call may.
        """

        async def generate() -> Completion:
            completion = await self.engine.generate(request)
            check_completion(completion)
            return completion

        return await ask_engine(generate, self.limits.call_timeout_seconds)


class Conversation:
    """The model's side of one trajectory: prompts, completions and what they come to.

    Args:
        setting: Who is asked.
        sampling: How; its seed is mixed with the number of the turn.
        name: Begins the session's id. Another conversation of the same name is another session.
    """

    def __init__(self, setting: ModelSetting, sampling: SamplingParams, name: str) -> None:
        self._setting = setting
        self._sampling = sampling
        self._session_id = f"{name}#{next(_session_numbers)}"
        self._transcript = setting.renderer.transcript() if setting.renderer else None
        self._num_turns = 0
        self.num_first_prompt_ids = 0
        self.num_response_ids = 0
        self.seconds = 0.0
        """Spent in the engine so far."""

    @property
    def num_turns(self) -> int:
        """Completions so far."""
        return self._num_turns

    async def prepare(self) -> None:
        """Let the engine get ready.

        Raises:
            EpisodeFailure: It cannot work.
        """
        start = time.perf_counter()
        try:
            await self._setting.prepare()
        finally:
            self.seconds += time.perf_counter() - start

    def prompt(self, messages: tuple[Message, ...]) -> tuple[tuple[int, ...] | None, int]:
        """Return the exact prompt ids and how many tokens may follow; none where it is too long.

        Raises:
            EpisodeFailure: The chat template refuses the messages.
        """
        limits = self._setting.limits
        if self._transcript is None:
            return None, limits.max_response_length
        try:
            ids = self._transcript.prompt_ids(messages)
        except PromptTooLongError:
            return None, 0
        except RendererError as error:
            raise EpisodeFailure(TerminationReason.AGENT_EXCEPTION, str(error)) from error
        if self.num_first_prompt_ids == 0:
            self.num_first_prompt_ids = len(ids)
        return ids, self._setting.room(len(ids), self.num_first_prompt_ids)

    async def ask(
        self,
        observation: Any,
        messages: tuple[Message, ...],
        prompt_ids: tuple[int, ...] | None,
        room: int,
    ) -> tuple[Completion, Step]:
        """Sample the next completion of a prompt that `prompt` gave, and keep it exactly.

        Returns:
            The completion, and a Step of it that nobody has acted on yet.

        Raises:
            EpisodeFailure: The engine fails.
        """
        request = GenerationRequest(
            messages=messages,
            prompt_ids=prompt_ids,
            sampling=turn_sampling(self._sampling, room, self._num_turns),
            session_id=self._session_id,
            adapter=self._setting.adapter,
        )
        start = time.perf_counter()
        try:
            completion = await self._setting.sample(request)
        finally:
            self.seconds += time.perf_counter() - start
        self._num_turns += 1
        if self._transcript is not None:
            self._transcript.add(completion)
        self.num_response_ids += len(completion.token_ids)
        step = Step(
            prompt_ids=list(prompt_ids or ()),
            response_ids=list(completion.token_ids),
            logprobs=list(completion.logprobs),
            chat_completions=[*messages, {"role": "assistant", "content": completion.text}],
            observation=observation,
            model_response=completion.text,
        )
        return completion, step

    def token_records(self) -> tuple[TokenRecord, ...]:
        """Everything sampled so far; nothing where the engine knows only text."""
        return () if self._transcript is None else self._transcript.token_records()


async def ask_engine(call: Callable[[], Awaitable[_T]], timeout_seconds: float | None = None) -> _T:
    """Call an engine: all it raises is its failure, save what ends the caller's own task.

    Args:
        call: What to call.
        timeout_seconds: After which it is cancelled; None: no bound.

    Raises:
        EpisodeFailure: It raised, exits and leaked cancellations included, or took too long.
    """
    outcome = await contain_awaitable(call, timeout_seconds)
    if outcome is None:
        raise EpisodeFailure(
            TerminationReason.LLM_TIMEOUT,
            f"a call of the rollout engine took longer than call_timeout={timeout_seconds} s",
            is_transient=True,
        )
    error = outcome.error
    if error is None:
        return outcome.value
    if isinstance(error, EpisodeFailure):
        raise error
    reason = error.reason if isinstance(error, EngineError) else TerminationReason.LLM_ERROR
    raise EpisodeFailure(
        reason, f"the rollout engine raised {type(error).__name__}: {error}"[:2000]
    ) from error


def check_completion(completion: Any) -> None:
    """Refuse what a broken engine answers: nothing of it may reach an agent or a learner.

    Raises:
        EpisodeFailure: It is no completion, or one that contradicts itself.
    """
    if not isinstance(completion, Completion) or not isinstance(completion.text, str):
        problem = f"answered {completion!r:.120} instead of a Completion"
    elif completion.finish_reason not in ("stop", "length"):
        problem = f"gave finish_reason {completion.finish_reason!r}; it is 'stop' or 'length'"
    elif len(completion.logprobs) != len(completion.token_ids):
        problem = (
            f"gave {len(completion.logprobs)} logprobs for {len(completion.token_ids)} token ids"
        )
    elif not all(map(math.isfinite, completion.logprobs)):
        problem = "gave a logprob that is not finite"
    else:
        return
    raise EpisodeFailure(TerminationReason.LLM_BAD_RESPONSE, f"the rollout engine {problem}")


def turn_sampling(sampling: SamplingParams, room: int, *parts: object) -> SamplingParams:
    """Return the parameters of one turn: at most `room` tokens, and a random stream of its own.

    Args:
        sampling: Of the whole trajectory.
        room: Most tokens, at least 1.
        parts: What the stream is for, such as the number of the turn.
    """
    return SamplingParams(
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        top_k=sampling.top_k,
        max_tokens=min(room, sampling.max_tokens or room),
        seed=derive_seed(sampling.seed, *parts),
    )


def derive_seed(seed: int | None, *parts: object) -> int | None:
    """Mix a seed with what it is for, so that no two uses share a random stream.

    Returns:
        A whole number in [0, 2**63), the same in every process; None where `seed` is None.
    """
    if seed is None:
        return None
    text = "/".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
