r"""The child process of ``symbolic``: compares LaTeX expressions with math-verify.

Run as a script, so that it starts without the rest of the package. It loads math-verify once and
then forks a comparer, which is killed and replaced at once when a question takes too long, and
replaced after 1,000 questions. One JSON object per line comes in on standard input and one goes out
on standard output; the first says that the process is ready.

    in   {"reference": "\\sqrt{2}", "answer": "2^{1/2}"}      or  {"reference": "\\sqrt{2}"}
    out  {"verdict": "equal" | "different" | "unreadable reference" | "failed" | "timeout"}

No text is ever handed to ``eval`` or to sympy's ``parse_expr``: only math-verify's LaTeX grammar
reads it. The process ends, and its comparer with it, when standard input closes.
"""

import contextlib
import gc
import json
import logging
import os
import select
import signal
import sys
from functools import lru_cache

MEMORY_BYTES = 1 << 30
QUESTIONS_PER_COMPARER = 1_000


def main() -> None:
    """Answer questions until standard input closes."""
    time_limit_seconds = float(sys.argv[1])
    logging.disable(logging.CRITICAL)
    replies = os.dup(1)
    # A library that prints must not write into the replies.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    _compare(r"\sqrt{2}", r"2^{\frac{1}{2}}")
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
    except (ImportError, OSError, ValueError):
        # Not every system has these limits; the time limit holds everywhere.
        return


def _verdict(request: dict[str, str]) -> str:
    try:
        if "answer" in request:
            return _compare(request["reference"], request["answer"])
        return "equal" if _parse(request["reference"]) else "unreadable reference"
    except (Exception, MemoryError):
        return "failed"


def _compare(reference: str, answer: str) -> str:
    from math_verify import verify

    gold = _parse_reference(reference)
    if not gold:
        return "unreadable reference"
    parsed = _parse(answer)
    if not parsed:
        return "different"
    # The order matters: verify is not symmetric.
    return "equal" if verify(list(gold), parsed, timeout_seconds=None) else "different"


@lru_cache(maxsize=1024)
def _parse_reference(latex: str) -> tuple:
    return tuple(_parse(latex))


def _parse(latex: str) -> list:
    from math_verify.parser import LatexExtractionConfig, parse

    return parse(
        f"\\boxed{{{latex}}}",
        [LatexExtractionConfig(boxed_match_priority=0)],
        fallback_mode="no_fallback",
        extraction_mode="first_match",
        # The process is killed from outside; math-verify's own alarm would undo ours.
        parsing_timeout=None,  # type: ignore[arg-type]
    )


if __name__ == "__main__":
    main()
