"""Text of a model for people to read: no character may hide, reorder or move others."""

from __future__ import annotations

import re

_KEPT = "\n\t"
_INVISIBLE = re.compile(
    "[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Write control characters, direction marks and other invisible ones as visible signs.

    An escape becomes ``␛``, a right-to-left override ``⟨U+202E⟩``; line ends and tabs stay.
    """
    return _INVISIBLE.sub(_sign, text)


def _sign(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _KEPT:
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\u27e8U+{code:04X}\u27e9"
