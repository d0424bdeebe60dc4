"""Prompts that go on with the ids of what was sampled, wherever the template lets them.

Whoever records a conversation, a transcript or a session of the gateway, asks here for its prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rllm_agents.chat_template import ChatTemplate
from rllm_agents.conversation import whole_text
from rllm_agents.types import Completion, Message


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as text and as ids. Made by a Continuation."""

    text: str
    """Whole, or where completions stand as ids what follows the last of them."""
    token_ids: tuple[int, ...]
    continues: bool
    """Whether it begins with the ids of the last turn."""
    is_whole: bool = True
    """Whether `text` is the whole of it."""
    base_length: int = 0
    """Characters of `text` without the opening of the assistant's turn."""


@dataclass(slots=True, eq=False)
class SampledTurn:
    """A completion and the prompt it followed. Made by a Continuation."""

    prompt_text: str
    """As `RenderedPrompt.text`; its ids are the business of whoever keeps the record."""
    is_whole: bool
    """Whether that is the whole prompt."""
    base_length: int
    """Characters of it without the opening of the assistant's turn."""
    completion: Completion
    said: str
    """The completion's text, with placeholders."""
    is_ended: bool
    """Whether a stop token ended the completion."""
    header: str | None
    """What the template writes in place of the assistant's opening when the message is history."""

    @property
    def said_ids(self) -> tuple[int, ...]:
        """Ids that were sampled, without the stop token."""
        ids = self.completion.token_ids
        return ids[:-1] if self.is_ended else ids

    def end_in(self, text: str) -> int:
        """Where prompt and completion end in a text; -1 where it does not begin with them."""
        start = len(self.prompt_text)
        is_there = text.startswith(self.prompt_text) and text.startswith(self.said, start)
        return start + len(self.said) if self.is_whole and is_there else -1

    def opening(self, text: str) -> str | None:
        """Put the opening that the model saw in place of what history says; None: unknown."""
        base = self.prompt_text[: self.base_length]
        if text.startswith(base):
            self.header = text[self.base_length :]
            return self.prompt_text
        if self.header is None or not text.endswith(self.header):
            return None
        return text[: len(text) - len(self.header)] + self.prompt_text[self.base_length :]


class Continuation:
    """Makes prompts that begin with what was put in and sampled before.

    Args:
        template: Writes the messages between completions.
        keeps_thoughts: Whether completions stand in later prompts as they were sampled, whatever
            the template would make of their text.
    """

    def __init__(self, template: ChatTemplate, *, keeps_thoughts: bool) -> None:
        self._template = template
        self.keeps_thoughts = keeps_thoughts
        """Read-only."""

    def of_messages(
        self,
        messages: Sequence[Message],
        turns: Mapping[int, SampledTurn] | None,
        last: SampledTurn | None,
        last_ids: Sequence[int],
    ) -> RenderedPrompt:
        """Make the prompt of a conversation.

        Args:
            messages: The conversation.
            turns: By index in `messages`, what may have been sampled for it; None where nothing is
                sampled as ids. Read only where `keeps_thoughts`.
            last: The turn to go on with.
            last_ids: All ids up to its end.

        Raises:
            RendererError: When the template refuses the messages.
            PromptTooLongError: When the conversation has too many characters to be tokenised.
        """
        if self.keeps_thoughts and turns is not None:
            prompt = self._around_turns(messages, turns)
            ids = tuple(last_ids)
            continues = last is not None and prompt.token_ids[: len(ids)] == ids
            return replace(prompt, continues=continues)
        return self.of_text(self._template.text(messages), last, last_ids)

    def of_text(
        self, text: str, last: SampledTurn | None, last_ids: Sequence[int]
    ) -> RenderedPrompt:
        """Make the prompt of template text, which may have placeholders.

        Args:
            text: A whole prompt.
            last: The turn to go on with.
            last_ids: All ids up to its end.

        Raises:
            RendererError: When the text cannot be encoded.
        """
        ids = None if last is None else self._after(last, last_ids, text)
        full = self._template.encode(text) if ids is None else ids
        return RenderedPrompt(text, full, continues=ids is not None)

    def sampled(self, prompt: RenderedPrompt, completion: Completion) -> SampledTurn:
        """Join a prompt and the completion after it, which has at least one id."""
        last = completion.token_ids[-1]
        return SampledTurn(
            prompt.text,
            prompt.is_whole,
            prompt.base_length,
            completion,
            said=self._template.shield.cover(completion.text),
            is_ended=last in self._template.stop_token_ids
            or (completion.finish_reason == "stop" and last in self._template.control_ids),
            header=self._template.answer_header,
        )

    def _after(self, turn: SampledTurn, ids: Sequence[int], text: str) -> tuple[int, ...] | None:
        """Ids for `text` that begin with those of a turn; None where it was rewritten."""
        rest = self._rest(turn, text)
        if rest is None:
            return None
        bridge = self._template.encode(rest)
        if turn.is_ended:
            if bridge[:1] != turn.completion.token_ids[-1:]:
                return None  # the turn ended with a token that the template would not put there
            bridge = bridge[1:]
        return (*ids, *bridge)

    def _rest(self, turn: SampledTurn, text: str) -> str | None:
        """What follows a completion in `text`; None where it does not stand there.

        A completion in channels never does: the template frames its text in another way.
        """
        before = turn.prompt_text
        if self._template.has_channels or not turn.is_whole or not text.startswith(before):
            return None
        after = text[len(before) :]
        if after.startswith(turn.said):
            rest = after[len(turn.said) :]
            return self._without_space(rest) if turn.is_ended else rest
        # Nothing but white space, added or trimmed, up to the end of the turn.
        after, said = after.lstrip(), turn.said.strip()
        rest = after[len(said) :]
        is_framed = self._template.turn_end and rest.lstrip().startswith(self._template.turn_end)
        if not after.startswith(said) or not is_framed:
            return None
        return self._without_space(rest) if turn.is_ended else rest

    def _without_space(self, rest: str) -> str:
        """Leave out white space before the end of a turn that was sampled without it."""
        end, stripped = self._template.turn_end, rest.lstrip()
        return stripped if end and stripped.startswith(end) else rest

    def _around_turns(
        self, messages: Sequence[Message], turns: Mapping[int, SampledTurn]
    ) -> RenderedPrompt:
        """Build a prompt of the completions' own ids and what the template writes around them."""
        hidden, around, base_length = self._template.around_answers(messages)
        ids: list[int] = []
        pending, follows_ended, is_whole = "", False, True
        for index, text in zip(hidden, around, strict=False):
            message, turn = messages[index], turns.get(index)
            text = self._without_space(text) if follows_ended else text
            follows_ended = False
            if turn is not None and whole_text(message).strip() == turn.completion.text.strip():
                opening = turn.opening(pending + text)
                if opening is not None:
                    ids += (*self._template.encode(opening), *turn.said_ids)
                    pending, follows_ended, is_whole = "", turn.is_ended, False
                    continue
            pending += text + self._template.shown(message)
        ending = self._without_space(around[-1]) if follows_ended else around[-1]
        pending, base_length = pending + ending, len(pending) + base_length
        base_length -= len(around[-1]) - len(ending)
        ids += self._template.encode(pending)
        return RenderedPrompt(
            pending,
            tuple(ids),
            continues=False,
            is_whole=is_whole,
            base_length=base_length,
        )
