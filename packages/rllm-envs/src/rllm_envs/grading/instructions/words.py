"""Words and sentences of a text, counted."""

import re

_WORD = re.compile(r"\w+")
_JOINED_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
# A run of stops is tried at its first character only, so that the search is linear.
_STOP = re.compile(
    r"(?<![.!?\u2026])(?P<stop>[.!?\u2026]++)[\"'\u201d\u2019)\]*_]*+(?=\s|$)"
    r"|[\u3002\uff01\uff1f]+"
)
_TITLES = frozenset(
    {"mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "vs", "e.g", "i.e", "cf", "no", "fig"}
)
"""Abbreviations that are followed by a name or a number, so that no sentence ends there."""


def num_words(text: str) -> int:
    """Return how many runs of letters, digits and underscores a text has."""
    return len(_WORD.findall(text))


def all_upper_words(text: str) -> int:
    """Return how many words have letters in upper case only, "A" and "I" included."""
    return sum(word.isupper() for word in _JOINED_WORD.findall(text))


def num_sentences(text: str) -> int:
    """Return how many sentences a text has.

    A sentence ends with ``.``, ``!``, ``?``, ``…`` or their East Asian forms before white space,
    or with its paragraph; not after a title such as "Dr.", an initial or the number of a list.
    """
    return sum(_sentences_of(paragraph) for paragraph in re.split(r"\n\s*\n", text))


def _sentences_of(paragraph: str) -> int:
    count, rest = 0, 0
    for match in _STOP.finditer(paragraph):
        if _WORD.search(paragraph, rest, match.end()) is None:
            continue
        if match["stop"] == "." and _is_inside(_word_before(paragraph, match.start())):
            continue
        count, rest = count + 1, match.end()
    return count + (_WORD.search(paragraph, rest) is not None)


def _word_before(text: str, end: int) -> str:
    """Return the end of what stands before a place without white space, at most 12 characters."""
    return (text[max(0, end - 12) : end].split(None) or [""])[-1] if end else ""


def _is_inside(word: str) -> bool:
    """Return whether a full stop after a word is a part of it."""
    bare = word.strip("(\"'\u201c\u2018*").lower()
    is_initial = len(bare) == 1 and bare.isalpha() and bare != "i" and word.strip("(\"'").isupper()
    return bare in _TITLES or is_initial or (bare.isdigit() and len(bare) <= 2)
