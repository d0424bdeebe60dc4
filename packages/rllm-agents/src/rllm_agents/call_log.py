"""What the model calls of one workflow run sampled, call by call, and whose tokens they are.

Every finished call is kept with its exact ids. A later call whose conversation goes on where an
earlier one ended gets that one's ids, unchanged, and the rendered rest; which call that is, is
found in the text, so it does not matter who asks, nor in which order concurrent calls end. Where
several calls go on from the same one, each of them becomes a sequence of its own, and the ids that
they share are sampled in one of these and context in the others: nothing is learned twice.
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
from rllm_agents.renderer import check_messages
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
    text: str
    """What `token_ids` stand for, with the renderer's placeholders."""
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
    text: str
    """What prompt and completion stand for, without a stop token at the end."""
    previous: RecordedCall | None
    num_first_prompt_ids: int

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Prompt and completion."""
        return (*self.output.prompt_ids, *self.output.completion_ids)


class CallLog:
    """The finished calls of one run of a workflow.

    Args:
        setting: Who is asked.
    """

    def __init__(self, setting: ModelSetting) -> None:
        self._setting = setting
        self._calls: list[RecordedCall] = []

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
            if renderer is None:
                return CallPrompt(kept, None, limits.max_response_length, "", None, 0)
            text = renderer.shielded_text(kept)
        except PromptTooLongError as error:
            reason = TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
            raise TerminationEvent(reason, str(error)) from error
        except RendererError as error:
            raise EpisodeFailure(TerminationReason.WORKFLOW_EXCEPTION, str(error)) from error
        previous, ids = self._history(text, owner)
        if ids is None:
            ids = renderer.encode(text)
        num_first = len(ids) if previous is None else previous.num_first_prompt_ids
        if previous is None and len(ids) > limits.max_prompt_length:
            raise TerminationEvent(
                TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED,
                f"a prompt has {len(ids)} tokens; max_prompt_length is {limits.max_prompt_length}",
            )
        room = self._setting.room(len(ids), num_first)
        if room <= 0:
            raise TerminationEvent(
                TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED,
                f"a conversation of {len(ids)} tokens has no room for a response",
            )
        return CallPrompt(kept, ids, room, text, previous, num_first)

    def add(
        self,
        number: int,
        call_id: str,
        prompt: CallPrompt,
        completion: Completion,
        owner: str | None,
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
        )
        renderer = self._setting.renderer
        text = prompt.text + renderer.cover(completion.text) if renderer is not None else ""
        self._calls.append(
            RecordedCall(
                number,
                len(self._calls),
                output,
                owner,
                text,
                prompt.previous,
                prompt.num_first_prompt_ids,
            )
        )
        return output

    def _history(
        self, text: str, owner: str | None
    ) -> tuple[RecordedCall | None, tuple[int, ...] | None]:
        """The call that a conversation goes on from, and the conversation's ids after it."""
        renderer = self._setting.renderer
        earlier = [c for c in self._calls if c.output.completion_ids and text.startswith(c.text)]
        # The longest history; of equal ones the asker's own, then the newest.
        earlier.sort(key=lambda c: (len(c.text), c.owner == owner, c.number), reverse=True)
        for call in earlier:
            ids = renderer.continuation(call.text, call.token_ids, text) if renderer else None
            if ids is not None:
                return call, ids
        return None, None


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
        while ancestor is not None and ancestor not in ends:
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
        sequence.turns.append(TurnSpan(start, stop, index, output.weights_version))
    sequences.sort(key=lambda s: s.turns[0].step_index)
    return tuple(
        TokenRecord(tuple(s.token_ids), tuple(s.logprobs), tuple(s.turns)) for s in sequences
    )
