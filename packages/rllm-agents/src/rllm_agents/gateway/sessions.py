"""One session: the calls of one agent in one episode, recorded exactly as they were sampled."""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

from rllm_agents.errors import EngineError, PromptTooLongError, RendererError, TransientError
from rllm_agents.gateway.answers import Answer, read_reply
from rllm_agents.gateway.endings import Ending, to_episode
from rllm_agents.gateway.history import History
from rllm_agents.gateway.messages import SentCall, SentMessage
from rllm_agents.gateway.parameters import AskedSampling
from rllm_agents.gateway.protocol import ChatCall, TextCall
from rllm_agents.gateway.refusals import RequestError, printable, refused
from rllm_agents.gateway.turns import Prompt, Turn, cut_at_stop
from rllm_agents.limits import RolloutLimits
from rllm_agents.model_calls import derive_seed
from rllm_agents.renderer import Renderer
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.tool_parsers import ToolParser
from rllm_agents.types import (
    Completion,
    Episode,
    GenerationRequest,
    SamplingParams,
    TerminationReason,
)

_session_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Sampler:
    """What all sessions of a gateway share. Made by Gateway, read by its sessions."""

    engine: RolloutEngine
    renderer: Renderer | None
    """None where the engine works on text; then nothing can be learned from what is recorded."""
    parser: ToolParser
    """How the model is told of tools and writes calls."""
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    """Of each session: its calls, the tokens of its first prompt, and those of any context."""
    defaults: SamplingParams = field(default_factory=SamplingParams)
    """What requests that do not say otherwise are sampled with."""


@dataclass(frozen=True, slots=True)
class Access:
    """How a session is reached. Made by Gateway."""

    id: str
    base_url: str
    api_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a session begins with. Made by Gateway."""

    task: Any = None
    sampling: SamplingParams | None = None
    """How everything is sampled, whatever requests say; None obeys them."""
    gamma: float = 1.0
    """Discount of `Step.mc_return`."""


class GatewaySession:
    """The calls of one agent in one episode. Made by `Gateway.open_session`.

    A request whose messages continue a conversation of this session, the assistant's part as it was
    answered, is sampled after exactly the ids of that conversation: its prompt, what was sampled,
    and the rendered new messages. Any other request begins a sequence of its own, as does the
    second of two that continue the same turn. Calls may overlap.
    """

    def __init__(self, sampler: Sampler, access: Access, begin: Beginning) -> None:
        """Begin a session; see `Gateway.open_session`."""
        self.id = access.id
        self.base_url = access.base_url
        """Where the agent's OpenAI client is to be pointed at."""
        self.api_key = access.api_key
        """The key for that client."""
        self.task = begin.task
        self.limit_reached: TerminationReason | None = None
        """Which bound refused a call; None while none did."""
        self.engine_problem: str | None = None
        """Why the engine failed at the last call that it ended; None where it did not fail."""
        self.engine_error: Exception | None = None
        """What it raised then; None where it raised nothing."""
        self.last_used = time.monotonic()
        """When the last call ended, by the monotonic clock."""
        self._sampler = sampler
        self._begin = begin
        self._history = History(
            f"gateway-{next(_session_numbers)}", sampler.renderer, sampler.parser
        )
        self._num_calls = 0
        self._pending: set[asyncio.Task[Completion]] = set()
        self._is_finished = False
        self._is_prepared = False
        self._started_at = time.perf_counter()
        self._engine_seconds = 0.0

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Everything that was recorded so far."""
        return tuple(self._history.turns)

    @property
    def is_busy(self) -> bool:
        """Whether something is being sampled."""
        return bool(self._pending)

    async def chat(self, call: ChatCall, request_id: str = "") -> Answer:
        """Answer a request to /chat/completions.

        Raises:
            RequestError: A bound is reached, the engine failed, or the session is finished.
        """
        try:
            prompt = self._history.chat_prompt(call)
        except PromptTooLongError as error:
            raise self._over_limit(self._too_long(), str(error)) from error
        except RendererError as error:
            raise refused(str(error), "messages") from error
        turn = await self._sample(prompt, call.sampling)
        reply = read_reply(turn.completion, self._sampler.parser if call.may_call_tools else None)
        self._history.remember(call, reply, turn)
        return self._answer(call, turn, reply, request_id)

    async def complete(self, call: TextCall, request_id: str = "") -> Answer:
        """Answer a request to /completions.

        Raises:
            RequestError: A bound is reached, the engine failed, or the session is finished.
        """
        try:
            prompt = self._history.text_prompt(call.prompt)
        except RendererError as error:
            raise refused(str(error), "prompt") from error
        turn = await self._sample(prompt, call.sampling)
        reply = SentMessage("assistant", turn.completion.text)
        return self._answer(call, turn, reply, request_id)

    def finish(self, reward: float, *, is_correct: bool | None = None) -> Episode:
        """End the session with its reward; calls that are still running are given up.

        Args:
            reward: Of the whole episode.
            is_correct: Whether the task is solved; by default whether the reward is above 0.

        Returns:
            One trajectory: a step for each call, and the token records that are learned from.

        Raises:
            ValueError: The reward is not finite.
        """
        return self.end(Ending(reward, is_correct))

    def end(self, ending: Ending) -> Episode:
        """Like `finish`, for any way of ending."""
        self.close()
        total = time.perf_counter() - self._started_at
        return to_episode(
            self.id,
            self.task,
            self._history.turns,
            ending,
            gamma=self._begin.gamma,
            seconds={
                "llm_seconds": self._engine_seconds,
                "env_seconds": max(0.0, total - self._engine_seconds),
                "total_seconds": total,
            },
        )

    def close(self) -> None:
        """Refuse further calls and give up those that are running; again does nothing."""
        self._is_finished = True
        for task in self._pending:
            task.cancel()

    async def _sample(self, prompt: Prompt, asked: AskedSampling) -> Turn:
        """Sample one completion and record it."""
        self._refuse_if_finished()
        sampling = self._sampling(asked, self._room(prompt))
        self._num_calls += 1
        sequence = self._history.claim(prompt)
        request = GenerationRequest(prompt.messages, prompt.token_ids, sampling, sequence)
        started = time.perf_counter()
        try:
            completion = await self._generate(request)
        except BaseException:
            self._history.release(prompt, sequence)
            raise
        finally:
            self._engine_seconds += time.perf_counter() - started
        completion = cut_at_stop(completion, asked.stop, self._sampler.renderer)
        turn = self._history.add(prompt, completion, sequence)
        fixed = self._begin.sampling
        if fixed is not None and asked.named():
            turn.step.info["overridden"] = asked.named()
        return turn

    def _sampling(self, asked: AskedSampling, room: int) -> SamplingParams:
        """Sampling parameters of a call: the session's own, where it has any, else as asked."""
        base = self._begin.sampling or self._sampler.defaults
        named = {} if self._begin.sampling is not None else asked.named()
        most = min(n for n in (room, asked.max_tokens, base.max_tokens) if n is not None)
        seed = derive_seed(base.seed, self._num_calls)
        return replace(base, **{"seed": seed, **named, "max_tokens": most})

    def _room(self, prompt: Prompt) -> int:
        """Most tokens that may be sampled after a prompt.

        Raises:
            RequestError: There is no room, or there were as many calls as are allowed.
        """
        limits = self._sampler.limits
        if self._num_calls >= limits.max_steps:
            raise self._over_limit(
                TerminationReason.MAX_TURNS_EXCEEDED,
                f"this session has made its {limits.max_steps} calls",
                code="max_calls_exceeded",
            )
        if prompt.token_ids is None:
            return limits.max_response_length
        length, since = len(prompt.token_ids), prompt.num_since_first
        longest = limits.max_context_length
        engine_longest = getattr(self._sampler.engine, "max_model_length", None)
        longest = longest if engine_longest is None else min(longest, engine_longest)
        if not self._history.turns and length > limits.max_prompt_length:
            longest = min(longest, limits.max_prompt_length)
        room = min(longest - length, limits.room(length, length - since))
        if room <= 0:
            raise self._over_limit(
                self._too_long(),
                f"the prompt has {length} tokens, {since} of them after its sequence's first "
                f"prompt; at most {longest} and {limits.max_response_length} are allowed here, "
                "with room for an answer",
            )
        return room

    def _too_long(self) -> TerminationReason:
        return self._sampler.limits.too_long(is_first=not self._history.turns)

    def _over_limit(
        self, reason: TerminationReason, message: str, code: str = "context_length_exceeded"
    ) -> RequestError:
        self.limit_reached = self.limit_reached or reason
        return refused(message, "messages", code=code)

    def _refuse_if_finished(self) -> None:
        if self._is_finished:
            raise RequestError(409, "this session is finished", code="session_finished")

    async def _generate(self, request: GenerationRequest) -> Completion:
        engine = self._sampler.engine
        prepare = getattr(engine, "prepare", None)

        seconds = self._sampler.limits.call_timeout_seconds
        timer = asyncio.timeout(seconds)

        async def sample() -> Completion:
            if prepare is not None and not self._is_prepared:
                await prepare()
                self._is_prepared = True
            async with timer:
                completion = await engine.generate(request)
            _check_completion(completion)
            return completion

        task = asyncio.create_task(sample())
        self._pending.add(task)
        try:
            completion = await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the client is gone
            self._refuse_if_finished()
            raise self._engine_failed("the engine gave the completion up") from None
        except Exception as error:  # engines of users raise what they like
            if timer.expired():
                late = f"a call took longer than call_timeout={seconds} s"
                raise self._engine_failed(
                    late, TransientError(late, None, TerminationReason.LLM_TIMEOUT)
                ) from error
            raise self._engine_failed(f"{type(error).__name__}: {error}", error) from error
        finally:
            self._pending.discard(task)
            self.last_used = time.monotonic()
        self._refuse_if_finished()
        self.engine_problem = self.engine_error = None
        return completion

    def _engine_failed(self, problem: str, error: Exception | None = None) -> RequestError:
        self.engine_problem, self.engine_error = printable(problem), error
        return RequestError(500, f"the rollout engine failed: {problem}", code="engine_error")

    def _answer(
        self, call: ChatCall | TextCall, turn: Turn, reply: SentMessage, request_id: str
    ) -> Answer:
        step = turn.step
        step.action = [_call_record(sent) for sent in reply.calls] or reply.content
        step.info |= {
            "finish_reason": turn.completion.finish_reason,
            "model": call.form.model,
            "request_id": request_id,
            "sequence": turn.sequence.rpartition("/")[2],
        }
        prompt_ids = turn.prompt.token_ids or ()
        return Answer(call.form, prompt_ids, turn.completion, reply, self._sampler.renderer)


def _call_record(call: SentCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _check_completion(completion: Any) -> None:
    """Refuse what a broken engine answers: nothing of it may reach an agent or a learner.

    Raises:
        EngineError: It is no completion, or its ids and logprobs do not go together.
    """
    if not isinstance(completion, Completion):
        raise EngineError(f"it answered {type(completion).__name__} instead of a Completion")
    if len(completion.logprobs) != len(completion.token_ids):
        raise EngineError(
            f"it gave {len(completion.logprobs)} logprobs for {len(completion.token_ids)} ids"
        )
    if not all(map(math.isfinite, completion.logprobs)):
        raise EngineError("it gave a logprob that is not finite")
