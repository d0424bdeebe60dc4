"""What the model calls of one workflow run sampled, call by call, and whose tokens they are.

Every finished call is kept with its exact ids. A call whose conversation begins with an earlier
one and its response goes on from it: its prompt is that one's ids, unchanged, and the rendered
rest. Which call that is, the messages say, so it does not matter who asks, nor in which order
concurrent calls end. Where several calls go on from the same one, each of them becomes a sequence
of its own, and the ids that they share are sampled in one of these and context in the others:
nothing is learned twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rllm_agents.errors import (
    EpisodeFailure,
    PromptTooLongError,
    RendererError,
    TerminationEvent,
)
from rllm_agents.model_calls import ModelSetting
from rllm_agents.renderer import Renderer, Transcript, check_messages
from rllm_agents.types import (
    Completion,
    Message,
    ModelOutput,
    TerminationReason,
    TokenRecord,
    TurnSpan,
)


@dataclass(frozen=True, slots=True, eq=False)
class CallPrompt:
    """What a call asks. Made by `CallLog.prompt`, read by `CallLog.add`."""

    messages: tuple[Message, ...]
    token_ids: tuple[int, ...] | None
    """None where the engine works on text."""
    room: int
    """Most tokens of the completion, at least 1."""
    transcript: Transcript | None
    """Takes the completion; no other call has it."""
    previous: RecordedCall | None
    """The call that it goes on from."""
    num_first_prompt_ids: int


@dataclass(frozen=True, slots=True, eq=False)
class RecordedCall:
    """One finished call. Made by `CallLog.add`."""

    number: int
    """Place among the calls of the run, by start, from 0."""
    place: int
    """Place by end, from 0: what a call goes on from has ended before it."""
    output: ModelOutput
    owner: str | None
    """`uid` of the trajectory that it was made for."""
    completion: Completion
    previous: RecordedCall | None
    num_first_prompt_ids: int


class CallLog:
    """The finished calls of one run of a workflow.

    Args:
        setting: Who is asked.
    """

    def __init__(self, setting: ModelSetting) -> None:
        self._setting = setting
        self._calls: list[RecordedCall] = []
        # By the response and the number of messages before it.
        self._ends: dict[tuple[int, str], list[RecordedCall]] = {}
        self._transcripts: dict[RecordedCall, Transcript] = {}

    @property
    def calls(self) -> list[RecordedCall]:
        """All of them, by start."""
        return sorted(self._calls, key=lambda call: call.number)

    def prompt(self, messages: Sequence[Message], owner: str | None) -> CallPrompt:
        """Find out what a conversation goes on from, its exact ids and its room.

        Args:
            messages: The conversation.
            owner: `uid` of the trajectory that asks; its own calls are gone on from first.

        Raises:
            TerminationEvent: The first prompt, or everything after it, has too many tokens.
            EpisodeFailure: The messages are no conversation, or the chat template refuses them.
        """
        renderer, limits = self._setting.renderer, self._setting.limits
        try:
            check_messages(messages)
            kept = tuple(dict(message) for message in messages)
            previous = self._previous(kept, owner)
            if renderer is None:
                return CallPrompt(kept, None, limits.max_response_length, None, previous, 0)
            transcript = self._transcript_after(previous, renderer)
            ids = transcript.prompt_ids(kept)
        except PromptTooLongError as error:
            reason = TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
            raise TerminationEvent(reason, str(error)) from error
        except RendererError as error:
            raise EpisodeFailure(TerminationReason.WORKFLOW_EXCEPTION, str(error)) from error
        num_first = len(ids) if previous is None else previous.num_first_prompt_ids
        room = self._setting.room(len(ids), num_first)
        if room <= 0:
            raise TerminationEvent(
                limits.too_long(is_first=previous is None),
                f"a prompt of {len(ids)} tokens leaves no room for a response; max_prompt_length "
                f"is {limits.max_prompt_length}, max_response_length {limits.max_response_length}",
            )
        return CallPrompt(kept, ids, room, transcript, previous, num_first)

    def add(
        self,
        number: int,
        call_id: str,
        prompt: CallPrompt,
        completion: Completion,
        owner: str | None,
        adapter: str = "",
    ) -> ModelOutput:
        """Keep what a call sampled."""
        output = ModelOutput(
            call_id=call_id,
            text=completion.text,
            finish_reason=completion.finish_reason,
            messages=prompt.messages,
            prompt_ids=prompt.token_ids or (),
            completion_ids=completion.token_ids,
            logprobs=completion.logprobs,
            weights_version=completion.weights_version,
            version_spans=completion.version_spans,
            adapter=adapter,
        )
        call = RecordedCall(
            number=number,
            place=len(self._calls),
            output=output,
            owner=owner,
            completion=completion,
            previous=prompt.previous,
            num_first_prompt_ids=prompt.num_first_prompt_ids,
        )
        self._calls.append(call)
        self._ends.setdefault((len(prompt.messages), completion.text), []).append(call)
        if prompt.transcript is not None:
            prompt.transcript.add(completion)
            self._transcripts[call] = prompt.transcript
        return output

    def _previous(self, messages: tuple[Message, ...], owner: str | None) -> RecordedCall | None:
        """The call that a conversation goes on from: the last one that is a beginning of it."""
        for length in range(len(messages) - 1, 0, -1):
            message = messages[length]
            content = message.get("content")
            if message["role"] != "assistant" or not isinstance(content, str):
                continue
            ended = self._ends.get((length, content), [])
            same = [call for call in ended if call.output.messages == messages[:length]]
            if same:
                # Of equal ones the asker's own, then the newest.
                return max(same, key=lambda call: (call.owner == owner, call.place))
        return None

    def _transcript_after(self, call: RecordedCall | None, renderer: Renderer) -> Transcript:
        """A transcript that ends with a call: its own, or one made again where that has gone on."""
        if call is None:
            return renderer.transcript()
        own = self._transcripts.pop(call, None)
        if own is not None:
            return own
        history = []
        while call is not None:
            history.append(call)
            call = call.previous
        again = renderer.transcript()
        for earlier in reversed(history):
            again.prompt_ids(earlier.output.messages)
            again.add(earlier.completion)
        return again


@dataclass(slots=True)
class _Sequence:
    """A TokenRecord in the making."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    turns: list[TurnSpan] = field(default_factory=list)


def token_records(owned: Sequence[tuple[int, RecordedCall]]) -> tuple[TokenRecord, ...]:
    """Return the token records of one trajectory: each of its calls is a turn of exactly one.

    Args:
        owned: Its calls, each with the index of its step.

    Returns:
        One record for each unbroken history; nothing where a call has no ids.
    """
    if not all(call.output.prompt_ids and call.output.completion_ids for _, call in owned):
        return ()
    sequences: list[_Sequence] = []
    ends: dict[RecordedCall, _Sequence] = {}
    for index, call in sorted(owned, key=lambda pair: pair[1].place):
        ancestor = call.previous
        while ancestor is not None and not _continues(call, ends.get(ancestor)):
            ancestor = ancestor.previous
        if ancestor is None:
            sequence = _Sequence()
            sequences.append(sequence)
        else:
            sequence = ends.pop(ancestor)
        ends[call] = sequence
        output = call.output
        context = output.prompt_ids[len(sequence.token_ids) :]
        start = len(output.prompt_ids)
        sequence.token_ids += (*context, *output.completion_ids)
        sequence.logprobs += (*(0.0 for _ in context), *output.logprobs)
        stop = start + len(output.completion_ids)
        version, spans = output.weights_version, output.version_spans
        sequence.turns.append(TurnSpan(start, stop, index, version, spans))
    sequences.sort(key=lambda s: s.turns[0].step_index)
    return tuple(
        TokenRecord(tuple(s.token_ids), tuple(s.logprobs), tuple(s.turns)) for s in sequences
    )


def _continues(call: RecordedCall, sequence: _Sequence | None) -> bool:
    """Whether a call's prompt begins with all of a sequence: templates may rewrite history."""
    if sequence is None:
        return False
    return call.output.prompt_ids[: len(sequence.token_ids)] == tuple(sequence.token_ids)
