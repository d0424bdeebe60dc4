"""Conversations to token ids and back, so that what was sampled is never encoded again.

A transcript keeps what was sampled as ids. For the next turn it renders the whole conversation to
text, checks that the text begins with exactly what its ids stand for, and encodes only the rest.
White space that the template adds or trims about the assistant's text is no difference. Where the
text does not begin so, because the agent or the template rewrote history (thoughts stripped from
earlier turns, say), it starts another TokenRecord from a full rendering.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from rllm_agents.chat_template import ChatTemplate, ChatTokenizer
from rllm_agents.conversation import check_messages, whole_text
from rllm_agents.errors import RendererError
from rllm_agents.types import Completion, Message, TokenRecord, TurnSpan

__all__ = ["ChatTokenizer", "Renderer", "Thinking", "Transcript", "check_messages"]

Thinking = Literal["template", "keep", "drop"]
"""What becomes of thoughts of earlier turns."""


class Renderer:
    """Renders conversations with a tokenizer's chat template.

    Text inside messages never becomes a control token: where it spells one (``<|im_end|>``), it is
    encoded as the ordinary characters that it consists of. Where the template knows no system
    messages or no results of tools, their text stands in a user message.

    Args:
        tokenizer: A tokenizer with a chat template.
        max_prompt_characters: Longest rendered conversation that is tokenised at all. Encoding
            megabytes takes seconds, so hostile lengths are refused by their characters.
        template_arguments: Passed to the template, ``{"enable_thinking": False}`` for example.
        thinking: "template" leaves thoughts of earlier turns to the template. "keep" shows the
            model all it sampled, whatever the template strips, so that history only grows. "drop"
            leaves out what stands up to ``</think>`` before the last user message.

    Raises:
        RendererError: When there is no chat template, it cannot render a plain conversation,
            nothing marks the end of the assistant's turn, or `thinking` is something else.
    """

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        *,
        max_prompt_characters: int = 400_000,
        template_arguments: Mapping[str, Any] | None = None,
        thinking: Thinking = "template",
    ) -> None:
        if thinking not in get_args(Thinking):
            allowed = ", ".join(get_args(Thinking))
            raise RendererError(f"thinking must be one of {allowed}; got {thinking!r:.80}")
        if not isinstance(template_arguments or {}, Mapping):
            raise RendererError(
                f"template_arguments must be a mapping, got {template_arguments!r:.80}"
            )
        self._template = ChatTemplate(
            tokenizer,
            max_prompt_characters=max_prompt_characters,
            template_arguments=template_arguments or {},
            drops_thoughts=thinking == "drop",
        )
        self._keeps_thoughts = thinking == "keep"

    @property
    def tokenizer(self) -> ChatTokenizer:
        """What it renders with."""
        return self._template.tokenizer

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """Ids that end the assistant's turn; the template's own comes first."""
        return self._template.stop_token_ids

    def transcript(self) -> Transcript:
        """Start the record of one trajectory."""
        return Transcript(self._template, keeps_thoughts=self._keeps_thoughts)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Turn sampled ids into text, without the stop token at their end.

        Control tokens elsewhere are left out of the text; thoughts written in a channel stand
        between ``<think>`` and ``</think>``.
        """
        ids = list(token_ids)
        if ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        return self._template.decode(ids)

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids of a whole conversation and the opening of the assistant's next turn.

        Raises:
            RendererError: When the template refuses the messages.
            PromptTooLongError: When the text has more than `max_prompt_characters`.
        """
        return self.transcript().prompt_ids(messages)

    def cover(self, text: str) -> str:
        """Put placeholders for control strings, which `encode` turns into characters."""
        return self._template.shield.cover(text)

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of template text; its placeholders become the characters they stand for."""
        return self._template.encode(text)


class Transcript:
    """The ids of one trajectory: prompts and completions in turn, exactly as sampled.

    Args:
        template: Writes the messages between completions.
        keeps_thoughts: Whether completions stand in later prompts as they were sampled, whatever
            the template would make of their text.
    """

    def __init__(self, template: ChatTemplate, *, keeps_thoughts: bool) -> None:
        self._template = template
        self._keeps_thoughts = keeps_thoughts
        self._drafts: list[_Draft] = []
        self._prompt: _Prompt | None = None
        self._turns: dict[int, _Turn] = {}
        self._num_turns = 0
        self._is_text_only = False

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """The exact ids that the next completion follows.

        As long as the conversation only grew, they are the last prompt, the completion's own ids
        and the rendered new messages; else a full rendering.

        Raises:
            RendererError: When the template refuses the messages.
            PromptTooLongError: When the conversation has too many characters to be tokenised.
        """
        if self._keeps_thoughts and not self._is_text_only:
            self._prompt = self._prompt_around_turns(messages)
        else:
            text = self._template.text(messages)
            ids = self._continuation(text)
            full = self._template.encode(text) if ids is None else ids
            self._prompt = _Prompt(text, full, continues=ids is not None)
        return self._prompt.token_ids

    def add(self, completion: Completion) -> None:
        """Record what was sampled after the last prompt.

        A completion without ids makes the whole transcript text only: it has no token records.

        Raises:
            RendererError: When there was no prompt, or ids and logprobs differ in number.
        """
        prompt, self._prompt = self._prompt, None
        if prompt is None:
            raise RendererError("a completion was added to a transcript that asked for none")
        ids, logprobs = completion.token_ids, completion.logprobs
        if len(ids) != len(logprobs):
            raise RendererError(f"a completion has {len(ids)} ids but {len(logprobs)} logprobs")
        if not ids:
            self._is_text_only = True
            return
        if not prompt.continues:
            self._drafts.append(_Draft())
        draft = self._drafts[-1]
        bridge = prompt.token_ids[len(draft.token_ids) :]
        start = len(prompt.token_ids)
        draft.prompt_text, draft.said = prompt.text, self._template.shield.cover(completion.text)
        draft.is_ended = ids[-1] in self._template.stop_token_ids or (
            completion.finish_reason == "stop" and ids[-1] in self._template.control_ids
        )
        draft.token_ids += (*bridge, *ids)
        draft.logprobs += (*(0.0 for _ in bridge), *logprobs)
        draft.turns.append(
            TurnSpan(start, start + len(ids), self._num_turns, completion.weights_version)
        )
        if self._keeps_thoughts:
            said = ids[:-1] if draft.is_ended else ids
            self._turns[prompt.num_messages] = _Turn(
                completion.text,
                said,
                is_ended=draft.is_ended,
                opening_text=prompt.text,
                base_length=prompt.base_length,
                header=self._template.answer_header,
            )
        self._num_turns += 1

    def token_records(self) -> tuple[TokenRecord, ...]:
        """Everything sampled so far, one record for each unbroken history."""
        if self._is_text_only:
            return ()
        return tuple(
            TokenRecord(tuple(d.token_ids), tuple(d.logprobs), tuple(d.turns)) for d in self._drafts
        )

    def _continuation(self, text: str) -> tuple[int, ...] | None:
        """Ids for `text` that begin with those of the last draft; None where it was rewritten."""
        if self._is_text_only or not self._drafts:
            return None
        draft = self._drafts[-1]
        rest = self._rest(draft, text)
        if rest is None:
            return None
        bridge = self._template.encode(rest)
        if draft.is_ended:
            if bridge[:1] != (draft.token_ids[-1],):
                return None  # the turn ended with a token that the template would not put there
            bridge = bridge[1:]
        return (*draft.token_ids, *bridge)

    def _rest(self, draft: _Draft, text: str) -> str | None:
        """What follows the last completion in `text`; None where it does not stand there.

        A completion in channels never does: the template frames its text in another way.
        """
        if self._template.has_channels or not text.startswith(draft.prompt_text):
            return None
        after = text[len(draft.prompt_text) :]
        if after.startswith(draft.said):
            rest = after[len(draft.said) :]
            return self._without_space(rest) if draft.is_ended else rest
        # Nothing but white space, added or trimmed, up to the end of the turn.
        after, said = after.lstrip(), draft.said.strip()
        rest = after[len(said) :]
        is_framed = self._template.turn_end and rest.lstrip().startswith(self._template.turn_end)
        if not after.startswith(said) or not is_framed:
            return None
        return self._without_space(rest) if draft.is_ended else rest

    def _without_space(self, rest: str) -> str:
        """Leave out white space before the end of a turn that was sampled without it."""
        end, stripped = self._template.turn_end, rest.lstrip()
        return stripped if end and stripped.startswith(end) else rest

    def _prompt_around_turns(self, messages: Sequence[Message]) -> _Prompt:
        """Build a prompt of the completions' own ids and what the template writes around them."""
        hidden, around, base_length = self._template.around_answers(messages)
        ids: list[int] = []
        pending, follows_ended = "", False
        for index, text in zip(hidden, around, strict=False):
            message, turn = messages[index], self._turns.get(index)
            text = self._without_space(text) if follows_ended else text
            follows_ended = False
            if turn is not None and whole_text(message).strip() == turn.text.strip():
                opening = turn.opening(pending + text)
                if opening is not None:
                    ids += (*self._template.encode(opening), *turn.token_ids)
                    pending, follows_ended = "", turn.is_ended
                    continue
            pending += text + self._template.shown(message)
        last = self._without_space(around[-1]) if follows_ended else around[-1]
        pending, base_length = pending + last, len(pending) + base_length
        base_length -= len(around[-1]) - len(last)
        ids += self._template.encode(pending)
        drafted = self._drafts[-1].token_ids if self._drafts else [None]
        return _Prompt(
            pending,
            tuple(ids),
            continues=ids[: len(drafted)] == drafted,
            base_length=base_length,
            num_messages=len(messages),
        )


@dataclass(frozen=True, slots=True)
class _Prompt:
    text: str
    """Whole, or where completions stand as ids what follows the last of them."""
    token_ids: tuple[int, ...]
    continues: bool
    """Whether it extends the last draft."""
    base_length: int = 0
    """Characters of `text` without the opening of the assistant's turn."""
    num_messages: int = 0
    """Where the assistant's message will stand."""


@dataclass(slots=True)
class _Turn:
    """A completion that stands in later prompts as it was sampled."""

    text: str
    token_ids: tuple[int, ...]
    """Without the stop token."""
    is_ended: bool
    opening_text: str
    """What the template wrote before it, from the completion before on."""
    base_length: int
    """Characters of that without the opening of the assistant's turn."""
    header: str | None
    """What the template writes in place of that opening when the message is history."""

    def opening(self, text: str) -> str | None:
        """Put the opening that the model saw in place of what history says; None: unknown."""
        base = self.opening_text[: self.base_length]
        if text.startswith(base):
            self.header = text[self.base_length :]
            return self.opening_text
        if self.header is None or not text.endswith(self.header):
            return None
        return text[: len(text) - len(self.header)] + self.opening_text[self.base_length :]


@dataclass(slots=True)
class _Draft:
    """A TokenRecord in the making; always ends with a completion."""

    prompt_text: str = ""
    """What `token_ids` stand for up to the last completion, with placeholders."""
    said: str = ""
    """The last completion's text, with placeholders."""
    is_ended: bool = False
    """Whether a stop token ended the last completion."""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    turns: list[TurnSpan] = field(default_factory=list)
