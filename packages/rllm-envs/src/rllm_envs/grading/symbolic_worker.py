r"""The child process of ``symbolic``: compares LaTeX expressions with math-verify.

Run as a script, so that it starts without the rest of the package. It loads math-verify once and
then forks a comparer, which is killed and replaced at once when a question takes too long, and
replaced after 1,000 questions. One JSON object per line comes in on standard input and one goes out
on standard output; the first says that the process is ready.

    in   {"reference": structure, "answer": structure}      or  {"reference": structure}
    out  {"verdict": "equal" | "different" | "unreadable reference" | "failed" | "timeout"}

A structure is a LaTeX text, ``{"text": ..., "number": ["1/3", false]}`` or ``{"text", "kind",
"brackets", "members"}``; see ``structure.as_json``. No text is ever handed to ``eval`` or to
sympy's ``parse_expr``: only math-verify's LaTeX grammar reads it. The process ends, and its
comparer with it, when standard input closes.
"""

import contextlib
import gc
import json
import logging
import os
import select
import signal
import sys
from fractions import Fraction
from functools import lru_cache
from typing import Any
from zlib import crc32

MEMORY_BYTES = 1 << 30
QUESTIONS_PER_COMPARER = 1_000
POINT_TOLERANCE = 1e-5
WARM_UP = (
    (r"-\frac{a+2}{3b}\cdot\sqrt{x} - 4.5\pi", r"x^2+3x-7y^{-1}"),
    ("x^2-1", "(x-1)(x+1)"),
    (r"2\sqrt{3}", r"\sqrt{12}"),
)
"""The grammar learns from what it reads, which every comparer then knows when it is forked."""


def main() -> None:
    """Answer questions until standard input closes."""
    time_limit_seconds = float(sys.argv[1])
    logging.disable(logging.CRITICAL)
    sys.dont_write_bytecode = True
    replies = os.dup(1)
    # A library that prints must not write into the replies.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for reference, answer in WARM_UP:
        _compare(reference, answer)
    gc.freeze()
    _write_verdict(replies, "ready")
    comparer: Comparer | None = None
    while question := _read_line(0):
        verdict = "died"
        for _ in range(2):
            # A comparer may be killed from outside, so the question is put to a second one.
            if comparer is None or comparer.num_questions >= QUESTIONS_PER_COMPARER:
                if comparer is not None:
                    comparer.kill()
                comparer = Comparer(time_limit_seconds, replies)
            verdict = comparer.ask(question)
            if verdict in ("timeout", "died"):
                comparer.kill()
                comparer = None
            if verdict != "died":
                break
        _write_verdict(replies, "failed" if verdict == "died" else verdict)
    if comparer is not None:
        comparer.kill()


class Comparer:
    """A forked process that answers questions one at a time."""

    def __init__(self, time_limit_seconds: float, replies: int) -> None:
        self.num_questions = 0
        self._time_limit_seconds = time_limit_seconds
        questions, self._questions = os.pipe()
        self._verdicts, verdicts = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                for inherited in (0, replies, self._questions, self._verdicts):
                    os.close(inherited)
                _serve(questions, verdicts, time_limit_seconds)
            finally:
                os._exit(0)
        os.close(questions)
        os.close(verdicts)

    def ask(self, question: bytes) -> str:
        """Return the verdict, "timeout", or "died"."""
        self.num_questions += 1
        try:
            os.write(self._questions, question)
        except BrokenPipeError:
            return "died"
        ready, _, _ = select.select([self._verdicts, 0], [], [], self._time_limit_seconds)
        if not ready:
            return "timeout"
        if self._verdicts not in ready:
            # Nothing is sent while a question is open: standard input has closed.
            self.kill()
            os._exit(0)
        line = _read_line(self._verdicts)
        return json.loads(line)["verdict"] if line else "died"

    def kill(self) -> None:
        """End the process and release its pipes."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._questions)
        os.close(self._verdicts)


def _serve(questions: int, verdicts: int, time_limit_seconds: float) -> None:
    _limit_memory()
    while question := _read_line(questions):
        # The default action of SIGALRM ends the process even inside a long C call, so that it never
        # outlives a supervisor that is gone.
        signal.setitimer(signal.ITIMER_REAL, time_limit_seconds + 1)
        verdict = _verdict(json.loads(question))
        signal.setitimer(signal.ITIMER_REAL, 0)
        _write_verdict(verdicts, verdict)


def _read_line(descriptor: int) -> bytes:
    """Return the next line, or nothing where the other side has closed."""
    parts = []
    while part := os.read(descriptor, 65_536):
        parts.append(part)
        if part.endswith(b"\n"):
            return b"".join(parts)
    return b""


def _write_verdict(descriptor: int, verdict: str) -> None:
    os.write(descriptor, json.dumps({"verdict": verdict}).encode("ascii") + b"\n")


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Nothing here writes a file, and what would must not.
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    except (ImportError, OSError, ValueError):
        # Not every system has these limits; the time limit holds everywhere.
        return


def _verdict(request: dict[str, Any]) -> str:
    try:
        if "answer" not in request:
            return "equal" if _is_readable(request["reference"]) else "unreadable reference"
        return "equal" if _same(request["reference"], request["answer"]) else "different"
    except UnreadableError:
        return "unreadable reference"
    except (Exception, MemoryError):
        return "failed"


class UnreadableError(Exception):
    """A reference is no LaTeX that the grammar knows."""


def _is_readable(reference: Any) -> bool:
    if isinstance(reference, str):
        return bool(_parse(reference))
    return "number" in reference or all(map(_is_readable, reference["members"]))


def _same(reference: Any, answer: Any) -> bool:
    reference, answer = _as_dict(reference), _as_dict(answer)
    if "members" not in reference or "members" not in answer:
        if "number" in reference and "number" in answer:
            return _same_number(reference["number"], answer["number"])
        return _compare(reference["text"], answer["text"])
    members, others = reference["members"], list(answer["members"])
    shapes = [
        (part["kind"], part["brackets"], len(part["members"])) for part in (reference, answer)
    ]
    if shapes[0] != shapes[1]:
        return False
    if reference["kind"] != "values":
        return all(map(_same, members, others))
    for member in members:
        found = next((index for index, other in enumerate(others) if _same(member, other)), None)
        if found is None:
            return False
        others.pop(found)
    return True


def _as_dict(structure: Any) -> dict[str, Any]:
    return {"text": structure} if isinstance(structure, str) else structure


def _same_number(reference: list, answer: list) -> bool:
    """Compare as ``exact.same_number`` does: a percent sign divides by 100 or is a unit."""
    first, second = Fraction(reference[0]), Fraction(answer[0])
    if first == second:
        return True
    percent, plain = (first, second) if reference[1] else (second, first)
    return reference[1] != answer[1] and percent == 100 * plain


def _compare(reference: str, answer: str) -> bool:
    from math_verify import verify
    from sympy import Expr, Symbol, simplify

    gold = _parse(reference)
    if not gold:
        raise UnreadableError
    parsed = _parse(answer)
    if not parsed:
        return False
    sides = gold[0], parsed[0]
    num_names = sum(isinstance(side, Symbol) for side in sides)
    # verify compares a variable by its name alone.
    if not num_names and _differ_at_a_point(*sides):
        return False
    # The order matters: verify is not symmetric.
    if verify(list(gold), list(parsed), timeout_seconds=None):
        return not _are_unsolvable_equations(*sides)
    if num_names != 1 or not all(isinstance(side, Expr) for side in sides):
        return False
    return not _differ_at_a_point(*sides) and simplify(sides[0] - sides[1]) == 0


def _differ_at_a_point(reference: Any, answer: Any) -> bool:
    """Return whether two expressions have clearly different values at some point.

    Most wrong answers are found out so, in milliseconds, where expanding them may take for ever.
    The tolerance is wider than that of ``verify``, which then decides about what is close.
    """
    import sympy

    # verify compares percentages in two ways; the others may take long to evaluate.
    special = (sympy.UnevaluatedExpr, sympy.Sum, sympy.Product, sympy.Integral, sympy.Limit,
               sympy.Derivative)  # fmt: skip
    for side in (reference, answer):
        is_expression = isinstance(side, sympy.Expr) and not isinstance(side, sympy.MatrixExpr)
        if not is_expression or side.has(*special):
            return False
    symbols = reference.free_symbols | answer.free_symbols
    point = {symbol: 0.5 + crc32(symbol.name.encode()) % 9973 / 9973 for symbol in symbols}
    try:
        first, second = (side.evalf(15, subs=point) for side in (reference, answer))
        if not (first.is_number and second.is_number and first.is_finite and second.is_finite):
            return False
        scale = max(1, abs(first), abs(second))
        return bool(abs(first - second) > POINT_TOLERANCE * scale)
    except Exception:
        # A point without a value proves nothing.
        return False


def _are_unsolvable_equations(reference: Any, answer: Any) -> bool:
    """Return whether two equations have nothing in common but that no real number solves them."""
    from sympy import Eq, simplify, solve

    if not (isinstance(reference, Eq) and isinstance(answer, Eq)) or solve(reference):
        return False
    differences: list[Any] = [side.lhs - side.rhs for side in (reference, answer)]  # type: ignore[operator]
    ratio = simplify(differences[0] / differences[1])
    return not (ratio.is_number and ratio.is_nonzero)


@lru_cache(maxsize=4096)
def _parse(latex: str) -> tuple:
    from latex2sympy2_extended import NormalizationConfig
    from math_verify.parser import LatexExtractionConfig, parse

    # Units are gone already, and a trailing "m" may be a variable.
    spelling = NormalizationConfig(
        basic_latex=True, units=False, malformed_operators=True, nits=True, boxed="all"
    )
    return tuple(
        parse(
            f"\\boxed{{{latex}}}",
            [LatexExtractionConfig(boxed_match_priority=0, normalization_config=spelling)],
            fallback_mode="no_fallback",
            extraction_mode="first_match",
            # The process is killed from outside; math-verify's own alarm would undo ours.
            parsing_timeout=None,  # type: ignore[arg-type]
        )
    )


if __name__ == "__main__":
    main()
