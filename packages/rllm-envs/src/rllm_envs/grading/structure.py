r"""Lists, tuples, sets, intervals and matrices of values, compared member by member.

Members that are exact numbers are compared here; where another expression decides, the answer is
"unknown", and ``as_json`` gives the structure to the process that compares symbolically.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from rllm_envs.grading.exact import Number, read_number, same_number
from rllm_envs.grading.latex import compact, split_name

MAX_DEPTH = 3
"""Lists in lists are read so deep; what is deeper is one value."""
MAX_UNMATCHED = 32
"""Members without an equal in the other list that are tried against each other."""

_MATRIX = re.compile(r"\\begin\s*\{pmatrix\}(.*)\\end\s*\{pmatrix\}", re.DOTALL)
_ROW_END = re.compile(r"\\\\(?:\s*\[[^\]]*\])?")
_CONJUNCTION = re.compile(
    r" ?,? ?(?:\\(?:text|mbox)\s*\{\s*,?\s*(?:or|and)\s*\}|(?<![a-zA-Z\\])(?:or|and)(?![a-zA-Z]))"
)
_THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?:,\d{3})+(?![\d])")
_PLUS_MINUS = re.compile(r"\\pm(?![a-zA-Z])")

Kind = Literal["values", "tuple", "interval", "matrix", "row"]


@dataclass(frozen=True, slots=True)
class Value:
    """One value. Made by ``read_structure``, read by ``same_exactly``."""

    text: str
    """Canonical text."""
    number: Number | None
    """Its exact value, if it is a written number."""


@dataclass(frozen=True, slots=True)
class Values:
    """Several values. Made by ``read_structure``, read by ``same_exactly``."""

    text: str
    """Canonical text of the whole."""
    kind: Kind
    """"values": no order (``1, 2`` or ``\\{1, 2\\}``); "tuple": ``(1, 2)``; "interval": any pair
    with a square bracket; "matrix": its members are rows."""
    brackets: str
    """Opening and closing bracket of a tuple or interval; empty for the others."""
    members: tuple["Structure", ...]
    """The members in the order written."""


Structure = Value | Values


def read_structure(text: str, *, depth: int = 0) -> Structure:
    r"""Return a canonical text as a value, or as values where it writes more than one.

    ``a \pm b`` outside of brackets is two values.
    """
    if depth >= MAX_DEPTH:
        return Value(text, read_number(text))
    if matrix := _MATRIX.fullmatch(text):
        return _read_matrix(text, matrix.group(1), depth)
    inner, kind, brackets = text, "values", ""
    if text.startswith(r"\{") and text.endswith(r"\}") and _encloses_all(text[1:]):
        inner = text[2:-2].strip()
    elif text[:1] in ("(", "[") and text[-1:] in (")", "]") and _encloses_all(text):
        inner, brackets = text[1:-1].strip(), text[0] + text[-1]
        kind = "tuple" if brackets == "()" else "interval"
    parts = split_values(inner)
    if kind == "values":
        parts = [sign for part in parts for sign in _both_signs(part)]
    if len(parts) < 2:
        return Value(text, read_number(text))
    members = tuple(read_structure(part, depth=depth + 1) for part in parts)
    return Values(text, kind, brackets, members)


def split_values(text: str) -> list[str]:
    """Split a text at the commas that stand in no bracket; thousands separators are no such commas.

    A comma counts as a thousands separator where exactly three digits follow it and one to three
    digits, not more, stand before.
    """
    if "," not in text:
        return [text.strip()]
    parts, depth, start = [], 0, 0
    thousands = {
        match.start() + offset
        for match in _THOUSANDS.finditer(text)
        for offset, character in enumerate(match.group())
        if character == ","
    }
    for position, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == "," and depth == 0 and position not in thousands:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def listed(text: str) -> str:
    """Return a text that may name several values with commas between them, and without names.

    ``x = 1 or x = 2`` becomes ``1, 2``; semicolons separate as commas do.
    """
    text = _CONJUNCTION.sub(", ", text).replace(";", ",")
    return ", ".join(split_name(part)[1] for part in split_values(text))


def same_exactly(reference: Structure, answer: Structure) -> bool | None:
    """Return whether two structures are equal, or None where only symbolic comparison tells.

    Tuples, intervals and matrices compare in order, values without brackets and sets in any order,
    each member counted as often as it is written.
    """
    if isinstance(reference, Values) and isinstance(answer, Values):
        if _shape(reference) != _shape(answer):
            return False
        if reference.kind == "values":
            return _same_in_any_order(reference.members, answer.members)
        return _all(map(same_exactly, reference.members, answer.members))
    if compact(reference.text) == compact(answer.text):
        return True
    number = reference.number if isinstance(reference, Value) else None
    other = answer.number if isinstance(answer, Value) else None
    if isinstance(reference, Values) or isinstance(answer, Values):
        # A written number is never several values.
        return None if number is other is None else False
    if number is None or other is None:
        return None
    return same_number(number, other)


def as_json(structure: Structure) -> Any:
    """Return a structure as JSON data for ``symbolic_worker``: a text, or a dict."""
    if isinstance(structure, Value):
        number = structure.number
        if number is None or number.base:
            return _without_thousands(structure.text)
        return {"text": structure.text, "number": [str(number.value), number.is_percent]}
    return {
        "text": structure.text,
        "kind": structure.kind,
        "brackets": structure.brackets,
        "members": [as_json(member) for member in structure.members],
    }


def _without_thousands(text: str) -> str:
    """Return an expression without thousands separators; in ``(`` and ``[`` commas part values."""
    if "," not in text:
        return text
    pieces, depth, start = [], 0, 0
    for match in re.finditer(r"[(\[]|[)\]]|" + _THOUSANDS.pattern, text):
        token = match.group()
        if len(token) == 1:
            depth += 1 if token in "([" else -1
        elif depth == 0:
            pieces += [text[start : match.start()], token.replace(",", "")]
            start = match.end()
    return "".join([*pieces, text[start:]])


def _shape(values: Values) -> tuple[Kind, str, int]:
    return values.kind, values.brackets, len(values.members)


def _read_matrix(text: str, inner: str, depth: int) -> Structure:
    if r"\begin" in inner:
        return Value(text, None)
    rows = [row.strip() for row in _ROW_END.split(inner)]
    if not rows[-1]:
        rows.pop()
    cells = [[cell.strip() for cell in row.split("&")] for row in rows]
    members = tuple(
        Values(text, "row", "", tuple(read_structure(cell, depth=depth + 1) for cell in row))
        for row in cells
    )
    return Values(text, "matrix", "", members)


def _encloses_all(text: str) -> bool:
    """Return whether the bracket that opens a text is closed by its last character only."""
    depth = 0
    last = len(text) - 1
    for position, character in enumerate(text):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return position == last
    return False


def _both_signs(text: str) -> list[str]:
    signs = list(_PLUS_MINUS.finditer(text))
    if len(signs) != 1 or r"\mp" in text:
        return [text]
    before, after = text[: signs[0].start()].rstrip(), text[signs[0].end() :].lstrip()
    if before[-1:] in ("", "{", "(", "["):
        return [before + after, f"{before}- {after}"]
    return [f"{before} + {after}", f"{before} - {after}"]


def _all(results: Iterable[bool | None]) -> bool | None:
    found = set(results)
    if False in found:
        return False
    return None if None in found else True


def _same_in_any_order(
    references: tuple[Structure, ...], answers: tuple[Structure, ...]
) -> bool | None:
    unmatched = {}
    for reference in references:
        unmatched.setdefault(_key(reference), []).append(reference)
    rest_of_answers = []
    for answer in answers:
        equals = unmatched.get(_key(answer))
        if equals:
            equals.pop()
        else:
            rest_of_answers.append(answer)
    rest = [reference for equals in unmatched.values() for reference in equals]
    if len(rest) > MAX_UNMATCHED:
        numbers = [isinstance(m, Value) and m.number is not None for m in (*rest, *rest_of_answers)]
        return False if all(numbers) else None
    is_certain = True
    for reference in rest:
        results = [same_exactly(reference, answer) for answer in rest_of_answers]
        if True in results:
            rest_of_answers.pop(results.index(True))
        elif None in results:
            is_certain = False
        else:
            return False
    return True if is_certain else None


def _key(structure: Structure) -> object:
    if isinstance(structure, Value) and structure.number is not None:
        return structure.number
    return compact(structure.text)
