"""Completions written in channels, as gpt-oss does (Harmony): to text with thoughts in tags.

A completion of such a model is a row of messages, ``<|channel|>analysis<|message|>...<|end|>``
``<|start|>assistant<|channel|>final<|message|>...<|return|>``. Agents read all families alike, so
it becomes ``<think>...</think>`` and the final text, and a call to a function becomes
``<tool_call>{"name": ..., "arguments": ...}</tool_call>``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from rllm_agents.control_strings import control_tokens
from rllm_agents.conversation import THOUGHT_CLOSE, THOUGHT_OPEN

CALL_END = "<|call|>"
"""Ends a turn that calls a function."""
_START, _CHANNEL, _MESSAGE, _END = "<|start|>", "<|channel|>", "<|message|>", "<|end|>"
_ENDS = (_START, _END, "<|return|>", CALL_END)
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([A-Za-z0-9_.-]{1,64})")


class ChannelReader:
    """Reads the completions of a tokenizer whose control tokens mark channels."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        strings = set(control_tokens(tokenizer)[0])
        self._channel, self._message = self._id_of(_CHANNEL), self._id_of(_MESSAGE)
        self._ends = {self._id_of(s) for s in _ENDS if s in strings}
        self.call_end = self._id_of(CALL_END) if CALL_END in strings else None

    def text(self, token_ids: Sequence[int]) -> str:
        """Turn a completion into its thoughts, its calls and its final text."""
        thoughts: list[str] = []
        said: list[str] = []
        for header, body in self._messages(token_ids):
            _, _, channel = header.partition(_CHANNEL)
            recipient = _RECIPIENT.search(header)
            if recipient:
                name = json.dumps(recipient[1])
                call = f'{{"name": {name}, "arguments": {body.strip() or "{}"}}}'
                said.append(f"<tool_call>\n{call}\n</tool_call>")
            elif channel.strip().startswith("analysis"):
                thoughts.append(body)
            else:
                said.append(body)
        answer = "\n".join(said)
        if not thoughts:
            return answer
        thought = "\n\n".join(thoughts)
        return f"{THOUGHT_OPEN}\n{thought}\n{THOUGHT_CLOSE}\n\n{answer}"

    def _messages(self, token_ids: Sequence[int]) -> list[tuple[str, str]]:
        """Cut ids into messages: what stands before and after ``<|message|>``, decoded."""
        messages: list[tuple[str, str]] = []
        header: list[int] = []
        body: list[int] | None = None
        for token_id in (*token_ids, None):
            if token_id is None or token_id in self._ends:
                if body is not None:
                    messages.append((self._header(header), self._decode(body)))
                elif header and not messages:
                    # Text without any frame is what was said.
                    messages.append(("", self._decode(header)))
                header, body = [], None
            elif body is not None:
                body.append(token_id)
            elif token_id == self._message:
                body = []
            else:
                header.append(token_id)
        return messages

    def _header(self, ids: list[int]) -> str:
        if self._channel not in ids:
            return self._decode(ids)
        at = ids.index(self._channel)
        return self._decode(ids[:at]) + _CHANNEL + self._decode(ids[at + 1 :])

    def _decode(self, ids: Sequence[int]) -> str:
        return self._tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    def _id_of(self, control: str) -> int:
        return self._tokenizer(control, add_special_tokens=False)["input_ids"][0]


@lru_cache(maxsize=8)
def channel_reader(tokenizer: Any) -> ChannelReader | None:
    """Make the reader of a tokenizer; None where its completions have no channels."""
    if not hasattr(tokenizer, "all_special_tokens"):
        return None
    strings = control_tokens(tokenizer)[0]
    return ChannelReader(tokenizer) if {_CHANNEL, _MESSAGE} <= set(strings) else None
