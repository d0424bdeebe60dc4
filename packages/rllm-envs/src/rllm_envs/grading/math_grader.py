r"""Grade a mathematical answer against its references.

From cheap to dear, and the first that decides is final:

1. equal text after ``latex.canonical``;
2. exact numbers (``exact``), and lists, tuples, sets and matrices of them (``structure``);
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
from rllm_envs.grading.exact import Number, read_number, same_number
from rllm_envs.grading.guards import hazard
from rllm_envs.grading.latex import (
    compact,
    is_text_command,
    name_and_value,
    without_plain_unit,
    words_of,
)
from rllm_envs.grading.structure import (
    Structure,
    Value,
    Values,
    as_json,
    listed,
    read_structure,
    same_exactly,
)

MAX_REFERENCE_LENGTH = 10_000

Outcome = Literal["correct", "wrong", "no_answer", "unverifiable"]
Method = Literal["text", "exact", "rule", "guard", "symbolic", "none"]

_APPROXIMATION = re.compile(r"≈|\\approx(?![a-zA-Z])")
_RELATION = re.compile(
    r"[<>≤≥≠]|\\(?:n?eq?|l[et]q?|g[et]q?|[lg]eqslant|ll|gg|equiv|sim|simeq|cong)(?![a-zA-Z])"
)
_BOX = re.compile(r"\\f?box(?:ed)?(?![a-zA-Z])")
_SUBSCRIPT = re.compile(r"_\s*\{[^{}]*\}")
_FUNCTION_WORDS = frozenset(("sqrt", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "infty"))
_SHORT_WORDS = frozenset(("yes", "no", "odd", "all"))


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
    name: str
    """The name in ``name = value``; empty where there is none."""
    number: Number | None
    """Its exact value, if it is one number."""
    structure: Structure
    """Its value or values."""
    is_words: bool
    """Whether it is prose, a name or the letter of a choice."""

    @property
    def has_values(self) -> bool:
        """Whether it names several values, in any order."""
        return isinstance(self.structure, Values) and self.structure.kind == "values"


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
    name, plain = name_and_value(text)
    if not plain:
        raise ReferenceAnswerError(f"reference answer {excerpt(text)} is empty")
    number = read_number(plain)
    if number is not None:
        return Reference(plain, name, number, Value(plain, number), is_words=False)
    if _is_words(plain, is_text=is_text_command(text)):
        return Reference(plain, name, None, Value(plain, None), is_words=True)
    structure = read_structure(listed(plain))
    if isinstance(structure, Value):
        structure = read_structure(plain)
    if needs_symbols(structure) and not symbolic.shared_pool().can_read(as_json(structure)):
        raise ReferenceAnswerError(
            f"reference answer {excerpt(text)} cannot be read as a number or as LaTeX"
        )
    return Reference(structure.text, name, None, structure, is_words=False)


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
    found: list[Verdict] = []
    undecided: list[tuple[Reference, Structure]] = []
    for reference in read:
        verdict = _compare(answer, reference)
        if isinstance(verdict, Verdict):
            if verdict.is_correct:
                return verdict
            found.append(verdict)
        else:
            undecided.append((reference, verdict))
    for reference, structure in undecided:
        verdict = _compare_symbolically(answer, reference, structure)
        found.append(verdict)
        # An answer that takes too long once takes too long again.
        if verdict.outcome in ("correct", "unverifiable"):
            break
    order: tuple[Outcome, ...] = ("correct", "unverifiable", "wrong", "no_answer")
    return min(found, key=lambda verdict: order.index(verdict.outcome))


def _compare(answer: str, reference: Reference) -> Verdict | Structure:
    """Return the verdict of the stages in this process, or what is left to compare."""
    limit = hazard_of_length(answer, reference)
    if limit:
        return Verdict("unverifiable", "guard", answer, limit)
    name, text = name_and_value(answer)
    if not text:
        return Verdict("no_answer", "none", answer, "the box is empty")
    if _is_another_name(name, reference.name):
        return Verdict("wrong", "rule", answer, f"{name[:20]} where {reference.name} is asked")
    if text == reference.text or compact(text) == compact(reference.text):
        return Verdict("correct", "text", answer)
    if reference.is_words:
        same = _folded(text) == _folded(reference.text)
        return Verdict("correct" if same else "wrong", "text", answer)
    structure: Structure | None = None
    if reference.number is not None:
        number = read_number(text) or read_number(without_plain_unit(text))
        exact = None if number is None else same_number(reference.number, number)
    else:
        text = listed(text) if reference.has_values else text
        text = _without_common_unit(text, reference)
        structure = read_structure(text)
        exact = same_exactly(reference.structure, structure)
    if exact is not None:
        return Verdict("correct" if exact else "wrong", "exact", answer)
    structure = structure or read_structure(text)
    broken = _broken_rule(structure, reference)
    if broken:
        return Verdict("wrong", "rule", answer, broken)
    danger = hazard(text, reference_length=len(reference.text))
    return Verdict("unverifiable", "guard", answer, danger) if danger else structure


def _compare_symbolically(answer: str, reference: Reference, structure: Structure) -> Verdict:
    verdict = symbolic.compare(as_json(reference.structure), as_json(structure))
    if verdict in ("timeout", "failed"):
        return Verdict("unverifiable", "symbolic", answer, verdict)
    return Verdict("correct" if verdict == "equal" else "wrong", "symbolic", answer)


def hazard_of_length(answer: str, reference: Reference) -> str | None:
    """Return why an answer is too long to be looked at, or None; spaces and commands count."""
    limit = max(4096, 4 * len(reference.text))
    return f"longer than {limit} characters" if len(answer) > limit else None


def needs_symbols(structure: Structure) -> bool:
    """Return whether a value in a structure is no written number."""
    if isinstance(structure, Value):
        return structure.number is None
    return any(map(needs_symbols, structure.members))


def _is_another_name(name: str, reference_name: str) -> bool:
    r"""Return whether both are variables and differ, as in ``x = 5`` and ``y = 5``."""
    are_letters = len(name) == len(reference_name) == 1
    return are_letters and name.casefold() != reference_name.casefold()


def _without_common_unit(text: str, reference: Reference) -> str:
    value = without_plain_unit(text, common_only=True)
    unit = text[len(value) :]
    return text if unit and reference.text.endswith(unit) else value


def _broken_rule(structure: Structure, reference: Reference) -> str | None:
    text = structure.text
    if _num_equations(text) > _num_equations(reference.text):
        return "an equation where a value is asked"
    if _RELATION.search(text) and not _RELATION.search(reference.text):
        return "a relation where a value is asked"
    if reference.number is not None and _APPROXIMATION.search(text):
        return "an approximation where a number is asked"
    if _BOX.search(text) or _has_open_braces(text):
        return "a box or an open brace inside the answer"
    foreign = set(words_of(text)) - set(words_of(reference.text)) - _FUNCTION_WORDS
    if foreign:
        return f"words around the value: {' '.join(sorted(foreign))[:60]}"
    # Intervals and tuples may equal another spelling of a set, but never a number.
    is_foreign = isinstance(structure, Values) and (
        structure.kind == "values" or reference.number is not None
    )
    if is_foreign and isinstance(reference.structure, Value):
        return "several values where one is asked"
    return None


def _num_equations(text: str) -> int:
    r"""Count the equality signs that are no lower bound, as ``k=1`` of a sum is."""
    return _SUBSCRIPT.sub("", text).count("=")


def _has_open_braces(text: str) -> bool:
    depth = 0
    for brace in re.findall(r"\\.|[{}]", text, re.DOTALL):
        depth += (brace == "{") - (brace == "}")
        if depth < 0:
            return True
    return depth != 0


def _is_words(text: str, *, is_text: bool) -> bool:
    """Return whether a canonical reference is prose, a name, or the capital letter of a choice.

    Args:
        text: The canonical reference.
        is_text: Whether it stood in a text command, so that two letters are a word, not a product.
    """
    if re.fullmatch(r"[A-J]", text):
        return True
    if not re.fullmatch(r"[^\W\d_]+(?:[ '.,-]+[^\W\d_]+)*[.!?]?", text):
        return False
    words = re.findall(r"[^\W\d_]+", text)
    shortest = 2 if is_text else 4
    return text.lower() in _SHORT_WORDS or any(len(word) >= shortest for word in words)


def _folded(text: str) -> str:
    return " ".join(re.sub(r"[().,'\"]", " ", text).casefold().split())
