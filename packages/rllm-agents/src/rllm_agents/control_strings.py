"""Strings that a tokenizer turns into control tokens, and how text is kept from becoming one."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

# A conversation is covered anew at each of its turns, and mostly consists of what was there before.
_MAX_CACHED_CHARACTERS = 8_192
_MAX_CACHED_TEXTS = 4_096


class Shield:
    """Replaces control strings in text by placeholders that nobody can guess, and back.

    Placeholders are ASCII letters and digits, so that what templates do to text (trimming, writing
    it as JSON) leaves them as they are.

    Args:
        control_strings: What the tokenizer encodes as a control token wherever it stands.
    """

    def __init__(self, control_strings: Sequence[str]) -> None:
        self._nonce = f"Xq{secrets.token_hex(12)}"
        longest_first = sorted(set(control_strings), key=lambda s: (-len(s), s))
        self._placeholders = {
            control: f"{self._nonce}c{index:05d}Z" for index, control in enumerate(longest_first)
        }
        self._controls = {mark: control for control, mark in self._placeholders.items()}
        alternatives = "|".join(re.escape(control) for control in longest_first)
        self._any_control = re.compile(alternatives or r"(?!)")
        self._any_placeholder = re.compile(f"({self._nonce}c[0-9]{{5}}Z)")
        self._any_mark = re.compile(f"{self._nonce}m([0-9]+)Z")
        self._cover_short = lru_cache(maxsize=_MAX_CACHED_TEXTS)(self._cover_text)

    def cover(self, value: Any) -> Any:
        """Put placeholders into every string of a nest of lists and mappings."""
        if isinstance(value, str):
            is_short = len(value) <= _MAX_CACHED_CHARACTERS
            return self._cover_short(value) if is_short else self._cover_text(value)
        if isinstance(value, Mapping):
            return {key: self.cover(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.cover(item) for item in value]
        return value

    def _cover_text(self, text: str) -> str:
        return self._any_control.sub(lambda match: self._placeholders[match[0]], text)

    def pieces(self, text: str) -> list[tuple[str, bool]]:
        """Cut text at its placeholders: pairs of a string and whether it is template text."""
        if self._nonce not in text:
            return [(text, True)]
        return [
            (self._controls.get(piece, piece), piece not in self._controls)
            for piece in self._any_placeholder.split(text)
        ]

    def leading_control(self, text: str) -> str:
        """Return the control string that `text` begins with; the empty string where none does."""
        match = self._any_control.match(text)
        return match[0] if match else ""

    def mark(self, index: int) -> str:
        """Return the text that stands for a whole message while a template is rendered."""
        return f"{self._nonce}m{index}Z"

    def between_marks(self, text: str, marks: Sequence[int]) -> list[str] | None:
        """Cut text at marks.

        Returns:
            One piece more than there are marks; None unless exactly these stand in it, in order.
        """
        pieces = self._any_mark.split(text)
        if [int(index) for index in pieces[1::2]] != list(marks):
            return None
        return pieces[::2]


def control_tokens(tokenizer: Any) -> tuple[list[str], frozenset[int]]:
    """Find the special tokens of a tokenizer: their strings, and the ids known of them."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    special = {token_id: str(token.content) for token_id, token in added.items() if token.special}
    strings = [s for s in (*special.values(), *tokenizer.all_special_tokens) if s]
    return strings, frozenset(special)


def ordinary_added_tokens(tokenizer: Any) -> list[str]:
    """Strings that a tokenizer encodes as one token each but does not count as special."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    return [str(token.content) for token in added if not token.special and str(token.content)]
