"""What a tokenizer's chat template writes, as text and as ids, whatever messages hold."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from rllm_agents.channels import channel_reader
from rllm_agents.control_strings import Shield, control_tokens, ordinary_added_tokens
from rllm_agents.conversation import (
    check_messages,
    drop_earlier_thoughts,
    fold_system,
    fold_tools,
    whole_text,
    without_thoughts,
)
from rllm_agents.errors import PromptTooLongError, RendererError
from rllm_agents.types import Message

# Texts no longer than this are kept with their ids: members of a group share their first prompt,
# and short answers of an environment recur.
_MAX_CACHED_CHARACTERS = 8_192
_MAX_CACHED_TEXTS = 2_048
_PROBE = "Xyzzy"
_TAG = re.compile(r"</?[A-Za-z_]+>")
_QUESTION: Message = {"role": "user", "content": "?"}


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


class ChatTemplate:
    """A tokenizer and its chat template, over messages that may hold anything.

    Text inside messages never becomes a control token: where it spells one (``<|im_end|>``), it is
    encoded as the ordinary characters that it consists of. A template that refuses system messages,
    or leaves them out, gets their text at the head of the next user message; one that refuses
    results of tools gets them as a user message.

    Args:
        tokenizer: A tokenizer with a chat template.
        max_prompt_characters: Longest rendered conversation that is tokenised at all.
        template_arguments: Passed to the template.
        drops_thoughts: Whether thoughts before the last user message are left out.

    Raises:
        RendererError: When there is no chat template, it cannot render a plain conversation, or
            nothing marks the end of the assistant's turn.
    """

    def __init__(
        self,
        tokenizer: ChatTokenizer,
        *,
        max_prompt_characters: int,
        template_arguments: Mapping[str, Any],
        drops_thoughts: bool,
    ) -> None:
        for name in ("apply_chat_template", "decode", "all_special_tokens", "eos_token_id"):
            if not hasattr(tokenizer, name):
                raise RendererError(f"{tokenizer!r:.80} is no tokenizer: it has no {name}")
        self.tokenizer = tokenizer
        self._max_prompt_characters = max_prompt_characters
        self._template_arguments = dict(template_arguments)
        self._drops_thoughts = drops_thoughts
        control_strings, control_ids = control_tokens(tokenizer)
        self.shield = Shield([*control_strings, *self._role_markers()])
        self._encode_short = lru_cache(maxsize=_MAX_CACHED_TEXTS)(self._encode)
        self._channels = channel_reader(tokenizer)
        self.turn_end = self._find_turn_end()
        self.stop_token_ids = self._find_stop_token_ids()
        self.control_ids = control_ids | set(self.stop_token_ids)
        self._takes_system = self._shows([{"role": "system", "content": _PROBE}, _QUESTION])
        answer = {"role": "assistant", "content": "!"}
        result = {"role": "tool", "tool_call_id": "call_0", "name": "f", "content": _PROBE}
        self._takes_tools = self._shows([_QUESTION, answer, result])
        self.answer_header = self._find_answer_header(answer)

    @property
    def has_channels(self) -> bool:
        """Whether completions are written in channels, so that their text is not their ids'."""
        return self._channels is not None

    def text(self, messages: Sequence[Message], *, add_generation_prompt: bool = True) -> str:
        """Render a conversation; control strings inside messages stand in it as placeholders.

        Raises:
            RendererError: When the template refuses the messages.
            PromptTooLongError: When the text has more than `max_prompt_characters`.
        """
        check_messages(messages)
        adapted = self.shield.cover(self._adapted(messages))
        return self._checked(self._render(adapted, add_generation_prompt=add_generation_prompt))

    def around_answers(self, messages: Sequence[Message]) -> tuple[list[int], list[str], int]:
        """Render a conversation with the assistant's messages hidden from the template.

        It can then neither strip thoughts from them nor trim them. Messages whose content is no
        text, or that hold more than text, are shown to it as they are.

        Returns:
            Indices of the hidden messages; the texts around them, one more; and how much of the
            last text is there without the opening of the next turn. No index and the whole text
            where the template does not write each of them once.

        Raises:
            RendererError: When the template refuses the messages.
            PromptTooLongError: When the text has more than `max_prompt_characters`.
        """
        check_messages(messages)
        hidden = [
            index
            for index, message in enumerate(messages)
            if message["role"] == "assistant"
            and isinstance(message.get("content"), str)
            and not message.get("tool_calls")
        ]
        masked = list(messages)
        for index in hidden:
            bare = without_thoughts(messages[index])
            masked[index] = {**bare, "content": self.shield.mark(index)}
        covered = self.shield.cover(self._with_known_roles(masked))
        opened = self._checked(self._render(covered, add_generation_prompt=True))
        around = self.shield.between_marks(opened, hidden)
        if around is None:
            return [], [self.text(messages)], 0
        closed = self._render(covered, add_generation_prompt=False)
        rest = self.shield.between_marks(closed, hidden)
        has_base = rest is not None and around[-1].startswith(rest[-1])
        return hidden, around, len(rest[-1]) if rest and has_base else len(around[-1])

    def shown(self, message: Message) -> str:
        """What stands in a prompt for an assistant's message that nobody sampled."""
        if self.has_channels:
            return self.shield.cover(without_thoughts(message)["content"])
        return self.shield.cover(whole_text(message))

    def encode(self, text: str) -> tuple[int, ...]:
        """Ids of template text; its placeholders become the characters they stand for."""
        if len(text) <= _MAX_CACHED_CHARACTERS:
            return self._encode_short(text)
        return self._encode(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Turn sampled ids without a stop token into text, thoughts of channels in tags."""
        if self._channels is not None:
            return self._channels.text(token_ids)
        return self._decode(token_ids)

    def _adapted(self, messages: Sequence[Message]) -> list[Message]:
        adapted = drop_earlier_thoughts(messages) if self._drops_thoughts else list(messages)
        if self._channels is not None:
            # Such templates write the thought in a channel of its own, or not at all.
            adapted = [without_thoughts(m) if m["role"] == "assistant" else m for m in adapted]
        return self._with_known_roles(adapted)

    def _with_known_roles(self, messages: list[Message]) -> list[Message]:
        if not self._takes_system:
            messages = fold_system(messages)
        return messages if self._takes_tools else fold_tools(messages)

    def _checked(self, text: str) -> str:
        if len(text) > self._max_prompt_characters:
            raise PromptTooLongError(
                f"the conversation has {len(text)} characters; at most "
                f"{self._max_prompt_characters} are tokenised"
            )
        return text

    def _encode(self, text: str) -> tuple[int, ...]:
        ids: list[int] = []
        for piece, is_plain in self.shield.pieces(text):
            ids += self._encode_plain(piece) if is_plain else self._encode_literally(piece)
        return tuple(ids)

    def _encode_plain(self, text: str) -> list[int]:
        if not text.isascii():
            # Lone surrogates, which JSON may carry, have no bytes to encode.
            text = text.encode("utf-8", "replace").decode("utf-8")
        try:
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        except Exception as error:
            raise RendererError(
                f"the tokenizer failed on {text!r:.80}: {type(error).__name__}: {error}"
            ) from error

    def _encode_literally(self, control: str) -> list[int]:
        """Encode a control string as characters: no proper part of it is one."""
        ids = self._encode_plain(control[:1]) + self._encode_plain(control[1:])
        if self._decode(ids).strip() == "":
            raise RendererError(
                f"a message contains the control string {control!r}, which this tokenizer cannot "
                "write as ordinary characters"
            )
        return ids

    def _decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def _render(self, messages: list[Message], *, add_generation_prompt: bool) -> str:
        try:
            return self.tokenizer.apply_chat_template(
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

    def _shows(self, messages: list[Message]) -> bool:
        """Whether the template takes the messages and writes the probe among them."""
        try:
            return _PROBE in self._render(messages, add_generation_prompt=True)
        except RendererError:
            return False

    def _find_turn_end(self) -> str:
        """The control string that the template writes after the assistant's text."""
        answer = {"role": "assistant", "content": _PROBE}
        text = self._render([_QUESTION, answer], add_generation_prompt=False)
        _, found, ending = text.rpartition(_PROBE)
        if not found:
            raise RendererError("the chat template leaves out what the assistant said")
        return self.shield.leading_control(ending.lstrip())

    def _find_stop_token_ids(self) -> tuple[int, ...]:
        """The id of the turn's end, that of calls in channels, and the tokenizer's eos."""
        stop_ids = self._encode_plain(self.turn_end)[:1] if self.turn_end else []
        calls = self._channels.call_end if self._channels else None
        for token_id in (calls, self.tokenizer.eos_token_id):
            if token_id is not None and token_id not in stop_ids:
                stop_ids.append(token_id)
        if not stop_ids:
            raise RendererError(
                "nothing ends the assistant's turn: the chat template puts no control token after "
                "it and the tokenizer has no eos token"
            )
        return tuple(stop_ids)

    def _find_answer_header(self, answer: Message) -> str | None:
        """What the template writes between a question and an answer of history; None: unclear."""
        try:
            _, around, _ = self.around_answers([_QUESTION, answer, _QUESTION])
            _, first, base_length = self.around_answers([_QUESTION])
        except RendererError:
            return None
        base = first[0][:base_length]
        is_plain = len(around) > 1 and around[0].startswith(base)
        return around[0][len(base) :] if is_plain else None

    def _role_markers(self) -> list[str]:
        """Added tokens that no one calls special but the template frames messages with.

        Tags, ``<think>`` and ``<tool_response>`` for example, are text that anybody may write.
        """
        added = ordinary_added_tokens(self.tokenizer)
        answer = {"role": "assistant", "content": "!"}
        result = {"role": "tool", "tool_call_id": "call_0", "name": "f", "content": "!"}
        text = ""
        for messages in ([_QUESTION, answer, _QUESTION], [_QUESTION, answer, result, answer]):
            with contextlib.suppress(RendererError):
                text += self._render(messages, add_generation_prompt=False)
        return [s for s in added if s in text and not _TAG.fullmatch(s)]
