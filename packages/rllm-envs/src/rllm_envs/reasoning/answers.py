r"""Read the answers of reasoning tasks: numbers, lists, assignments, in plain text or LaTeX.

Each function takes any text, returns None (or an empty list) where it cannot read it, and takes
time linear in its length, which is bounded.
"""

import re

from rllm_envs.grading.exact import exact_value
from rllm_envs.grading.latex import clean

MAX_ANSWER_LENGTH = 4_000
"""Characters of an answer that is read at all."""

_STYLE = re.compile(
    r"\\(?:text|textbf|textit|textrm|texttt|mathrm|mathbf|mathtt|mbox)\s*\{([^{}]*)\}"
)
_SPACING = re.compile(r"\\(?:left|right|[,;:! ]|q?quad(?![a-zA-Z]))|[$~`]|\*\*")
_ARROW = re.compile(r"\\(?:long)?(?:right)?arrow(?![a-zA-Z])|\\to(?![a-zA-Z])|-+>|=>|\u2192|\u21d2")
_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_BETWEEN = re.compile(r"[,;\n]")
_PAIR = re.compile(r"\s*(.{1,60}?)\s*(?::|=|\bis\b|->)\s*(.{1,60}?)\s*", re.DOTALL)
_INTEGER = re.compile(r"[+-]?\d{1,40}")


def plain_text(answer: str) -> str:
    r"""Return an answer without the marks of LaTeX and Markdown that say nothing.

    Text commands are reduced to their content, spacing and dollar signs go, every arrow becomes
    ``->``, escaped braces become braces, and white space is collapsed. Line breaks and ``\\``
    become semicolons. An answer of more than 4,000 characters becomes the empty text.
    """
    if len(answer) > MAX_ANSWER_LENGTH:
        return ""
    text = answer.strip().replace("\\\\", ";").replace("\r", "").replace("\n", ";")
    text = _STYLE.sub(r"\1", _ARROW.sub("->", clean(text)))
    text = _SPACING.sub(" ", text).replace("\\{", "{").replace("\\}", "}").replace("\\_", "_")
    return " ".join(text.split())


def read_word(answer: str) -> str:
    """Return an answer in lower case without quotes, final stop and surrounding marks."""
    return plain_text(answer).strip(" \"'.;").lower()


def read_integer(answer: str) -> int | None:
    """Return the integer that an answer writes, or None."""
    value = exact_value(answer)
    return int(value) if value is not None and value.denominator == 1 else None


def read_items(answer: str) -> list[str]:
    """Return the items of a list separated by commas, semicolons or line breaks.

    Brackets around the whole list and quotes around items go; empty items are left out.
    """
    text = plain_text(answer).strip("; .")
    while len(text) > 1 and _BRACKETS.get(text[0]) == text[-1]:
        text = text[1:-1].strip()
    parts = (part.strip(" \"'") for part in _BETWEEN.split(text))
    return [part.removeprefix("and ").strip(" \"'") for part in parts if part]


def read_integers(answer: str) -> list[int] | None:
    """Return the integers of a list (see ``read_items``), or None where an item is none.

    The list may be empty. Where there are no commas spaces separate too.
    """
    items = read_items(answer)
    if len(items) == 1:
        items = items[0].split()
    if not all(_INTEGER.fullmatch(item) for item in items):
        return None
    return [int(item) for item in items]


def read_pairs(answer: str) -> dict[str, str] | None:
    """Return the pairs of ``Ana: knight, Ben = knave, Eva is a knight``, in lower case.

    Returns:
        Values by name, or None where an item is no pair or a name has two values.
    """
    pairs: dict[str, str] = {}
    for item in read_items(answer.lower()):
        match = _PAIR.fullmatch(item)
        if match is None:
            return None
        name, value = match.groups()
        value = re.sub(r"^(?:an?|the)\s+", "", value).strip(" .")
        if pairs.setdefault(name, value) != value:
            return None
    return pairs
