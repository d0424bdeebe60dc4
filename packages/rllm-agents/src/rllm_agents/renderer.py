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
from rllm_agents.continuation import Continuation, RenderedPrompt, SampledTurn
from rllm_agents.conversation import check_messages
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
        self._continuation = Continuation(self._template, keeps_thoughts=thinking == "keep")

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
        return Transcript(self._continuation)

    @property
    def continuation(self) -> Continuation:
        """Makes prompts that go on with what was sampled, for records that are no transcript."""
        return self._continuation

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
        continuation: Makes the prompts.
    """

    def __init__(self, continuation: Continuation) -> None:
        self._continuation = continuation
        self._drafts: list[_Draft] = []
        self._prompt: tuple[RenderedPrompt, int] | None = None
        self._turns: dict[int, SampledTurn] = {}
        self._last: SampledTurn | None = None
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
        turns, last = (None, None) if self._is_text_only else (self._turns, self._last)
        ids = self._drafts[-1].token_ids if self._drafts else ()
        prompt = self._continuation.of_messages(messages, turns, last, ids)
        self._prompt = prompt, len(messages)
        return prompt.token_ids

    def add(self, completion: Completion) -> None:
        """Record what was sampled after the last prompt.

        A completion without ids makes the whole transcript text only: it has no token records.

        Raises:
            RendererError: When there was no prompt, or ids and logprobs differ in number.
        """
        if self._prompt is None:
            raise RendererError("a completion was added to a transcript that asked for none")
        (prompt, num_messages), self._prompt = self._prompt, None
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
        draft.token_ids += (*bridge, *ids)
        draft.logprobs += [0.0] * len(bridge)
        draft.logprobs += logprobs
        version, spans = completion.weights_version, completion.version_spans
        draft.turns.append(TurnSpan(start, start + len(ids), self._num_turns, version, spans))
        self._last = self._continuation.sampled(prompt, completion)
        if self._continuation.keeps_thoughts:
            self._turns[num_messages] = self._last
        self._num_turns += 1

    def token_records(self) -> tuple[TokenRecord, ...]:
        """Everything sampled so far, one record for each unbroken history."""
        if self._is_text_only:
            return ()
        return tuple(
            TokenRecord(tuple(d.token_ids), tuple(d.logprobs), tuple(d.turns)) for d in self._drafts
        )


@dataclass(slots=True)
class _Draft:
    """A TokenRecord in the making; always ends with a completion."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    turns: list[TurnSpan] = field(default_factory=list)
