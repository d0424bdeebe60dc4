r"""Grade a mathematical answer against its references.

From cheap to dear, and the first that decides is final:

1. equal text after ``latex.canonical``;
2. exact numbers, lists and tuples (``exact``);
3. reference in words: nothing but its text is right;
4. rules: one value where one is asked, no chain of equalities, no prose around the value;
5. static guards (``guards``): too large to compare is "unverifiable";
6. symbolic comparison in a child process (``symbolic``); too slow is "unverifiable".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from rllm_envs.errors import ReferenceAnswerError, excerpt
from rllm_envs.grading import symbolic
from rllm_envs.grading.exact import (
    Number,
    NumberList,
    read_number,
    read_numbers,
    same_number,
    same_numbers,
    split_values,
)
from rllm_envs.grading.guards import hazard
from rllm_envs.grading.latex import canonical, compact, without_plain_unit, words_of

MAX_REFERENCE_LENGTH = 10_000

Outcome = Literal["correct", "wrong", "no_answer", "unverifiable"]
Method = Literal["text", "exact", "rule", "guard", "symbolic", "none"]

_RELATION = re.compile(r"[<>≤≥≠≈]|\\(?:n?eq?|l[et]q?|g[et]q?|approx|equiv|sim|neq)(?![a-zA-Z])")
_CONJUNCTION = re.compile(r"\s*,?\s*(?:\\(?:text|mbox)\s*\{\s*(?:or|and)\s*\}|\b(?:or|and)\b)\s*")
_PLUS_MINUS = re.compile(r"\\[pm][pm](?![a-zA-Z])|±")
_FUNCTION_WORDS = frozenset(("sqrt", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "infty"))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What grading found. Made by ``grade_answer``, read by rewards and environments."""

    outcome: Outcome
    """"unverifiable": too large or too slow to compare; scored like "wrong", but worth counting."""
    method: Method
    """Which stage decided."""
    answer: str | None
    """The answer as extracted; None where there was none."""
    detail: str = ""
    """Why, in a few words, where a rule or a guard decided."""

    @property
    def is_correct(self) -> bool:
        """Whether the answer equals a reference."""
        return self.outcome == "correct"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference answer, read once. Made by ``read_reference``, read by ``grade_answer``."""

    text: str
    """Canonical text."""
    number: Number | None
    """Its exact value, if it is one number."""
    numbers: NumberList | None
    """Its exact values, if it is a list, tuple, set or interval of numbers."""
    is_words: bool
    """Whether it is prose, a name or the letter of a choice."""
    num_values: int
    """How many values it names at the top level."""


@lru_cache(maxsize=65_536)
def read_reference(text: str) -> Reference:
    """Return a reference answer, read; raise unless answers can be graded against it.

    Raises:
        ReferenceAnswerError: It is empty, too long, or no parser can read it.
        MissingDependencyError: It needs math-verify, which is not installed.
    """
    if len(text) > MAX_REFERENCE_LENGTH:
        raise ReferenceAnswerError(
            f"reference answer of {len(text)} characters is longer than {MAX_REFERENCE_LENGTH}: "
            f"{excerpt(text)}"
        )
    plain = canonical(text)
    if not plain:
        raise ReferenceAnswerError(f"reference answer {excerpt(text)} is empty")
    number, numbers = read_number(plain), read_numbers(plain)
    is_words = number is None and numbers is None and _is_words(plain)
    num_values = 2 if _PLUS_MINUS.search(plain) else len(split_values(plain))
    is_expression = number is None and numbers is None and not is_words
    if is_expression and not symbolic.shared_pool().can_read(plain):
        raise ReferenceAnswerError(
            f"reference answer {excerpt(text)} cannot be read as a number or as LaTeX"
        )
    return Reference(plain, number, numbers, is_words, num_values)


def grade_answer(answer: str | None, references: Sequence[str]) -> Verdict:
    """Grade an extracted answer; it is correct if it equals any of the references.

    Args:
        answer: What the model wrote in its box; None where there is no box.
        references: Equally right answers, at least one.

    Raises:
        ReferenceAnswerError: A reference cannot be read.
        MissingDependencyError: The comparison needs math-verify, which is not installed.
    """
    read = [read_reference(reference) for reference in references]
    if not read:
        raise ReferenceAnswerError("there is no reference answer to grade against")
    if answer is None:
        return Verdict("no_answer", "none", None, "no complete \\boxed{} after the thoughts")
    verdicts = [_compare(answer, reference) for reference in read]
    order: tuple[Outcome, ...] = ("correct", "unverifiable", "wrong", "no_answer")
    return min(verdicts, key=lambda verdict: order.index(verdict.outcome))


def _compare(answer: str, reference: Reference) -> Verdict:
    limit = hazard_of_length(answer, reference)
    if limit:
        return Verdict("unverifiable", "guard", answer, limit)
    text = canonical(answer)
    if not text:
        return Verdict("no_answer", "none", answer, "the box is empty")
    if compact(text) == compact(reference.text):
        return Verdict("correct", "text", answer)
    if reference.is_words:
        same = _folded(text) == _folded(reference.text)
        return Verdict("correct" if same else "wrong", "text", answer)
    if reference.num_values > 1:
        text = _CONJUNCTION.sub(", ", text)
    exact = _compare_exactly(text, reference)
    if exact is not None:
        return Verdict("correct" if exact else "wrong", "exact", answer)
    broken = _broken_rule(text, reference)
    if broken:
        return Verdict("wrong", "rule", answer, broken)
    danger = hazard(text, reference_length=len(reference.text))
    if danger:
        return Verdict("unverifiable", "guard", answer, danger)
    verdict = symbolic.compare(reference.text, text)
    if verdict in ("timeout", "failed"):
        return Verdict("unverifiable", "symbolic", answer, verdict)
    return Verdict("correct" if verdict == "equal" else "wrong", "symbolic", answer)


def hazard_of_length(answer: str, reference: Reference) -> str | None:
    """Return why an answer is too long to be looked at, or None; spaces and commands count."""
    limit = max(4096, 4 * len(reference.text))
    return f"longer than {limit} characters" if len(answer) > limit else None


def _compare_exactly(text: str, reference: Reference) -> bool | None:
    if reference.number is not None:
        number = read_number(text) or read_number(without_plain_unit(text))
        return None if number is None else same_number(reference.number, number)
    if reference.numbers is not None:
        numbers = read_numbers(text)
        return None if numbers is None else same_numbers(reference.numbers, numbers)
    return None


def _broken_rule(text: str, reference: Reference) -> str | None:
    if text.count("=") > reference.text.count("="):
        return "an equation where a value is asked"
    if reference.number is not None and _RELATION.search(text):
        return "a relation where a number is asked"
    foreign = set(words_of(text)) - set(words_of(reference.text)) - _FUNCTION_WORDS
    if foreign:
        return f"words around the value: {' '.join(sorted(foreign))[:60]}"
    num_values = 2 if _PLUS_MINUS.search(text) else len(split_values(text))
    if num_values > 1 and reference.num_values == 1:
        return "several values where one is asked"
    return None


def _is_words(text: str) -> bool:
    """Return whether a canonical reference is prose, a name, or the capital letter of a choice."""
    if re.fullmatch(r"[A-J]", text):
        return True
    is_plain = re.fullmatch(r"[^\W\d_]+(?:[ '.,-]+[^\W\d_]+)*[.!?]?", text)
    return bool(is_plain) and any(len(word) >= 4 for word in re.findall(r"[^\W\d_]+", text))


def _folded(text: str) -> str:
    return " ".join(re.sub(r"[().,'\"]", " ", text).casefold().split())
