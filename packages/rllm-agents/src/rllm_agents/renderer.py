"""Conversations to token ids and back: the only file that knows chat templates.

A transcript keeps what was sampled as ids. For the next turn it renders the whole conversation to
text, checks that the text begins with exactly what its ids stand for, and encodes only the rest.
Where the text does not begin so, because the agent or the template rewrote history (thoughts
stripped from earlier turns, say), it starts another TokenRecord from a full rendering.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from rllm_agents.errors import PromptTooLongError, RendererError
from rllm_agents.types import Completion, Message, TokenRecord, TurnSpan

# Texts no longer than this are kept with their ids: members of a group share their first prompt,
# and short answers of an environment recur.
_MAX_CACHED_CHARACTERS = 8_192
_MAX_CACHED_TEXTS = 2_048
_PROBE = "Xyzzy"


class ChatTokenizer(Protocol):
    """What the renderer needs of a tokenizer; those of transformers have it."""

    @property
    def eos_token_id(self) -> int | None:
        """Id that ends a text; None where there is none."""
        ...

    @property
    def all_special_tokens(self) -> list[str]:
        """Strings that stand for control tokens."""
        ...

    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any:
        """Render messages to text (`tokenize=False`)."""
        ...

    def __call__(self, text: str, **kwargs: Any) -> Any:
        """Encode text to a mapping with `input_ids`."""
        ...

    def decode(self, token_ids: Any, **kwargs: Any) -> Any:
        """Turn ids into text."""
        ...


class Renderer:
    """Renders conversations with a tokenizer's chat template.

    Text inside messages never becomes a control token: where it spells one (``<|im_end|>``), it is
    encoded as the ordinary characters that it consists of.

    Args:
        tokenizer: A tokenizer with a chat template.
        max_prompt_characters: Longest rendered conversation that is tokenised at all. Encoding
            megabytes takes seconds, so hostile lengths are refused by their characters.
        template_arguments: Passed to the template, ``{"enable_thinking": False}`` for example.

    Raises:
        RendererError: When there is no chat template, it cannot render a plain conversation, or
            nothing marks the end of the assistant's turn.
    """

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        *,
        max_prompt_characters: int = 400_000,
        template_arguments: Mapping[str, Any] | None = None,
    ) -> None:
        for name in ("apply_chat_template", "decode", "all_special_tokens", "eos_token_id"):
            if not hasattr(tokenizer, name):
                raise RendererError(f"{tokenizer!r:.80} is no tokenizer: it has no {name}")
        self._tokenizer = tokenizer
        self._max_prompt_characters = max_prompt_characters
        self._template_arguments = dict(template_arguments or {})
        self._shield = _Shield(_control_strings(tokenizer))
        self._encode_short = lru_cache(maxsize=_MAX_CACHED_TEXTS)(self._encode)
        self.stop_token_ids = self._find_stop_token_ids()

    @property
    def tokenizer(self) -> ChatTokenizer:
        """What it renders with."""
        return self._tokenizer

    def transcript(self) -> Transcript:
        """Start the record of one trajectory."""
        return Transcript(self)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Turn sampled ids into text, without the stop token at their end.

        Control tokens elsewhere are left out of the text.
        """
        ids = list(token_ids)
        if ids and ids[-1] in self.stop_token_ids:
            ids.pop()
        return self._tokenizer.decode(
            ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids of a whole conversation and the opening of the assistant's next turn.

        Raises:
            RendererError: When the template refuses the messages.
            PromptTooLongError: When the text has more than `max_prompt_characters`.
        """
        return self.encode(self.shielded_text(messages))

    def shielded_text(self, messages: Sequence[Message]) -> str:
        """Render a conversation and the opening of the assistant's next turn.

        Control strings inside messages stand in it as placeholders, which `encode` knows.

        Raises:
            RendererError: When the template refuses the messages.
            PromptTooLongError: When the text has more than `max_prompt_characters`.
        """
        check_messages(messages)
        text = self._render(self._shield.cover(list(messages)), add_generation_prompt=True)
        if len(text) > self._max_prompt_characters:
            raise PromptTooLongError(
                f"the conversation has {len(text)} characters; at most "
                f"{self._max_prompt_characters} are tokenised"
            )
        return text

    def cover(self, text: str) -> str:
        """Put placeholders for control strings, as `shielded_text` does for messages."""
        return self._shield.cover(text)

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of template text; its placeholders become the characters they stand for."""
        if len(text) <= _MAX_CACHED_CHARACTERS:
            return self._encode_short(text)
        return self._encode(text)

    def continuation(
        self, text: str, before: str, before_ids: Sequence[int]
    ) -> tuple[int, ...] | None:
        """Ids of template text that begin with ids which are there already.

        Args:
            text: A whole prompt, as `shielded_text` gives it.
            before: An earlier prompt and what was sampled after it, without its stop token.
            before_ids: What was put in and sampled for `before`, at least one id.

        Returns:
            `before_ids` and the ids of the rest; None where `text` does not continue `before`.
        """
        if not text.startswith(before):
            return None
        bridge = self.encode(text[len(before) :])
        last = before_ids[-1]
        if last in self.stop_token_ids:
            if bridge[:1] != (last,):
                return None  # the turn ended with a token that the template would not put there
            bridge = bridge[1:]
        return (*before_ids, *bridge)

    def _encode(self, text: str) -> tuple[int, ...]:
        ids: list[int] = []
        for piece, is_plain in self._shield.pieces(text):
            ids += self._encode_plain(piece) if is_plain else self._encode_literally(piece)
        return tuple(ids)

    def _encode_plain(self, text: str) -> list[int]:
        if not text.isascii():
            # Lone surrogates, which JSON may carry, have no bytes to encode.
            text = text.encode("utf-8", "replace").decode("utf-8")
        try:
            return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])
        except Exception as error:
            raise RendererError(
                f"the tokenizer failed on {text!r:.80}: {type(error).__name__}: {error}"
            ) from error

    def _encode_literally(self, control: str) -> list[int]:
        """Encode a control string as characters: no proper part of it is one."""
        ids = self._encode_plain(control[:1]) + self._encode_plain(control[1:])
        if self._tokenizer.decode(ids, skip_special_tokens=True).strip() == "":
            raise RendererError(
                f"a message contains the control string {control!r}, which this tokenizer cannot "
                "write as ordinary characters"
            )
        return ids

    def _render(self, messages: list[Message], *, add_generation_prompt: bool) -> str:
        try:
            return self._tokenizer.apply_chat_template(
                messages,
                tokenize=False,
                add_generation_prompt=add_generation_prompt,
                **self._template_arguments,
            )
        except Exception as error:
            roles = [message.get("role") for message in messages][:8]
            raise RendererError(
                f"the chat template refused messages with roles {roles}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _find_stop_token_ids(self) -> tuple[int, ...]:
        """The id that the template ends an assistant's turn with, and the tokenizer's eos."""
        conversation = [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": _PROBE},
        ]
        text = self._render(conversation, add_generation_prompt=False)
        _, found, ending = text.rpartition(_PROBE)
        if not found:
            raise RendererError("the chat template leaves out what the assistant said")
        first = self._encode_plain(ending)[:1]
        # A control token leaves nothing behind when it is skipped in decoding.
        is_control = self._tokenizer.decode(first, skip_special_tokens=True) == ""
        stop_ids = first if is_control else []
        eos = self._tokenizer.eos_token_id
        if eos is not None and eos not in stop_ids:
            stop_ids.append(eos)
        if not stop_ids:
            raise RendererError(
                "nothing ends the assistant's turn: the chat template puts no control token after "
                "it and the tokenizer has no eos token"
            )
        return tuple(stop_ids)


class Transcript:
    """The ids of one trajectory: prompts and completions in turn, exactly as sampled."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self._drafts: list[_Draft] = []
        self._prompt: _Prompt | None = None
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
        text = self._renderer.shielded_text(messages)
        ids = self._continuation(text)
        if ids is not None:
            self._prompt = _Prompt(text, ids, continues=True)
        else:
            self._prompt = _Prompt(text, self._renderer.encode(text), continues=False)
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
        draft.text = prompt.text + self._renderer.cover(completion.text)
        draft.token_ids += (*bridge, *ids)
        draft.logprobs += (*(0.0 for _ in bridge), *logprobs)
        draft.turns.append(
            TurnSpan(start, start + len(ids), self._num_turns, completion.weights_version)
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
        return self._renderer.continuation(text, draft.text, draft.token_ids)


@dataclass(frozen=True, slots=True)
class _Prompt:
    text: str
    token_ids: tuple[int, ...]
    continues: bool
    """Whether it extends the last draft."""


@dataclass(slots=True)
class _Draft:
    """A TokenRecord in the making; always ends with a completion."""

    text: str = ""
    """What `token_ids` stand for, with placeholders, without a stop token at the end."""
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    turns: list[TurnSpan] = field(default_factory=list)


class _Shield:
    """Replaces control strings in text by placeholders that nobody can guess, and back."""

    def __init__(self, control_strings: Sequence[str]) -> None:
        self._nonce = f"\ue000{secrets.randbits(64):020d}"
        longest_first = sorted(set(control_strings), key=lambda s: (-len(s), s))
        self._placeholders = {
            control: f"{self._nonce}{index:04d}\ue001"
            for index, control in enumerate(longest_first)
        }
        self._controls = {mark: control for control, mark in self._placeholders.items()}
        alternatives = "|".join(re.escape(control) for control in longest_first)
        self._any_control = re.compile(alternatives or r"(?!)")
        self._any_placeholder = re.compile(f"({re.escape(self._nonce)}[0-9]{{4}}\ue001)")

    def cover(self, value: Any) -> Any:
        """Put placeholders into every string of a nest of lists and mappings."""
        if isinstance(value, str):
            return self._any_control.sub(lambda match: self._placeholders[match[0]], value)
        if isinstance(value, Mapping):
            return {key: self.cover(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.cover(item) for item in value]
        return value

    def pieces(self, text: str) -> list[tuple[str, bool]]:
        """Cut text at its placeholders: pairs of a string and whether it is template text."""
        if self._nonce not in text:
            return [(text, True)]
        return [
            (self._controls.get(piece, piece), piece not in self._controls)
            for piece in self._any_placeholder.split(text)
        ]


def _control_strings(tokenizer: ChatTokenizer) -> list[str]:
    """Strings that the tokenizer encodes as special tokens wherever they stand."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    specials = [str(token.content) for token in added if token.special]
    return [s for s in (*specials, *tokenizer.all_special_tokens) if s]


def check_messages(messages: Sequence[Message]) -> None:
    """Refuse what is no conversation.

    Raises:
        RendererError: When it is not a non-empty list of dicts with a role.
    """
    if not isinstance(messages, list | tuple) or not messages:
        raise RendererError(f"messages must be a non-empty list, got {messages!r:.120}")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise RendererError(f"message {index} must be a dict with a role, got {message!r:.120}")
