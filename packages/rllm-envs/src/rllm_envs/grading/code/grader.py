"""Run a solution against its tests, in the sandbox, so that it cannot say itself that it passed.

- What is expected never enters the process of the solution.
- Values come back as exact built-in types and are compared here, or in a second process that holds
  the tests and reaches the solution through a socket.
- An exit code says nothing. A test passes where its value is right, or where the tests run to their
  end and give back a secret.
- Each test has a process of its own.
- A sandbox that fails raises; it is no wrong answer.
"""

import json
import re
import secrets
import time
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from rllm_envs.errors import EnvArgumentError, SandboxError, TaskError
from rllm_envs.grading.code import values
from rllm_envs.grading.code.tests import AssertTest, CallTest, StdinTest, Test, TestSuite
from rllm_envs.sandbox import (
    Limits,
    Program,
    RemoteSandbox,
    Sandbox,
    SandboxResult,
    default_sandbox,
)

Outcome = Literal["passed", "wrong", "error", "timeout", "memory", "output_limit", "not_run"]

_MOST_RESULT_BYTES = 2 * values.MAX_MESSAGE_BYTES
_MOST_NOISE_BYTES = 2**20
"""What a program may write to stderr, or besides what is asked."""
_MOST_DETAIL = 500
_PADDED = re.compile(r"(?:\S* )?[+-]?0\d")
"""One of two words starts with a zero that a number does not need, such as digits of a key."""


@dataclass(frozen=True, slots=True)
class TestResult:
    """What became of one test. Made by ``CodeGrader``, read by rewards and environments."""

    __test__ = False  # not one of pytest's

    outcome: Outcome
    """"passed"; "wrong": another value or output; "error": an exception, a crash, or nothing came
    back; a limit that was broken; "not_run": an earlier test had failed, or the time was over."""
    seconds: float
    """Wall-clock time."""
    detail: str = ""
    """What was asked and what came, or the error; short."""


@dataclass(frozen=True, slots=True)
class CodeVerdict:
    """What became of a solution. Made by ``CodeGrader.grade``."""

    results: tuple[TestResult, ...]
    """One for each test, in their order."""

    @property
    def num_passed(self) -> int:
        """How many tests passed."""
        return sum(result.outcome == "passed" for result in self.results)

    @property
    def is_correct(self) -> bool:
        """Whether every test passed."""
        return self.num_passed == len(self.results)

    @property
    def outcome(self) -> Outcome:
        """The outcome of the first test that failed; "passed" where none did."""
        for result in self.results:
            if result.outcome != "passed":
                return result.outcome
        return "passed"


class CodeGrader:
    """Grades solutions; usable from several threads at once.

    Args:
        timeout_seconds: Time of one test.
        total_seconds: Time of all tests of a solution; what has not run by then is "not_run".
        memory_bytes: Memory of each process.
        run_all: Whether the tests after a failed one are run too, for partial credit.
        sandbox: Where it all runs; the sandbox of this process by default.

    Raises:
        EnvArgumentError: A limit is out of range.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float = 6.0,
        total_seconds: float = 60.0,
        memory_bytes: int = 2**30,
        run_all: bool = False,
        sandbox: Sandbox | RemoteSandbox | None = None,
    ) -> None:
        self._limits = Limits(timeout_seconds, memory_bytes, _MOST_RESULT_BYTES)
        is_number = isinstance(total_seconds, int | float) and not isinstance(total_seconds, bool)
        if not is_number or not total_seconds > 0:
            raise EnvArgumentError(f"total_seconds must be positive, got {total_seconds!r:.80}")
        self._total_seconds = total_seconds
        self._run_all = run_all
        self._sandbox = sandbox

    def grade(self, solution: str, suite: TestSuite) -> CodeVerdict:
        """Return what became of a solution.

        Raises:
            SandboxError: The sandbox failed.
            TaskError: The tests themselves cannot be run.
        """
        deadline = time.monotonic() + self._total_seconds
        results: list[TestResult] = []
        is_over = False
        for test in suite.tests:
            if is_over or time.monotonic() > deadline:
                results.append(TestResult("not_run", 0.0))
                continue
            results.append(self._run(solution, test, suite))
            is_over = results[-1].outcome != "passed" and not self._run_all
        return CodeVerdict(tuple(results))

    def _run(self, solution: str, test: Test, suite: TestSuite) -> TestResult:
        if isinstance(test, StdinTest):
            return self._run_stdin(solution, test)
        if isinstance(test, CallTest):
            return self._run_call(solution, test, suite)
        return self._run_assert(solution, test, suite)

    def _run_stdin(self, solution: str, test: StdinTest) -> TestResult:
        result = self._start(solution, test.stdin, _MOST_NOISE_BYTES + 4 * len(test.expected))
        if result.status != "ok":
            return _failed(result, result.stderr)
        if same_output(test.expected, result.stdout):
            return TestResult("passed", result.wall_seconds)
        asked, got = _shown(test.expected.strip()), _shown(result.stdout.strip())
        stdin = _shown(test.stdin.strip())
        detail = f"input {stdin}: expected {asked}, got {got}"
        return TestResult("wrong", result.wall_seconds, detail[:_MOST_DETAIL])

    def _run_call(self, solution: str, test: CallTest, suite: TestSuite) -> TestResult:
        task = {
            "solution": solution,
            "entry": suite.entry_point,
            "arguments": test.arguments,
            "classes": [],
        }
        result = self._start(_harness("call_once()"), json.dumps(task))
        reply = _reply_of(result)
        if reply is None:
            return _failed(result, "the solution ended its process before it returned")
        if "value" not in reply:
            error = reply.get("error")
            detail = error if isinstance(error, str) else "the solution returned nothing"
            return TestResult("error", result.wall_seconds, _end_of(detail))
        try:
            got = values.loads(reply["value"])
        except values.CrossingError as error:
            return TestResult("error", result.wall_seconds, str(error)[:_MOST_DETAIL])
        if any(values.same(e, got, json_form=test.is_json) for e in test.accepted):
            return TestResult("passed", result.wall_seconds)
        (arguments, _), call = values.loads(test.arguments), suite.entry_point
        called = f"{call}({', '.join(map(_shown, arguments))})"
        detail = f"{called}: expected {_shown(test.expected)}, got {_shown(got)}"
        return TestResult("wrong", result.wall_seconds, detail[:_MOST_DETAIL])

    def _run_assert(self, solution: str, test: AssertTest, suite: TestSuite) -> TestResult:
        sandbox = self._sandbox or default_sandbox()
        if not isinstance(sandbox, Sandbox):
            raise SandboxError(
                f"tests that call the solution need a sandbox on this machine, not "
                f"{sandbox.description}"
            )
        secret = secrets.token_hex(16)
        tests = {
            "prelude": suite.prelude,
            "tests": test.code,
            "entry": suite.entry_point,
            "proxies": dict(test.proxies),
            "classes": list(suite.classes),
            "secret": secret,
        }
        tested = {"solution": solution, "classes": list(suite.classes)}
        result = sandbox.run_pair(self._program("test()", tests), self._program("serve()", tested))
        reply = _reply_of(result) or {}
        if "broken" in reply:
            raise TaskError(f"the tests cannot be run: {_end_of(reply['broken'])}")
        if reply.get("passed") == secret:
            return TestResult("passed", result.wall_seconds)
        if "failed" not in reply:
            return _failed(result, "the tests did not run to their end")
        problem = str(reply["failed"])
        outcome = "wrong" if "AssertionError" in problem else "error"
        return TestResult(outcome, result.wall_seconds, _end_of(problem))

    def _start(
        self, code: str, stdin: str, output_bytes: int = _MOST_RESULT_BYTES
    ) -> SandboxResult:
        sandbox, limits = self._sandbox or default_sandbox(), self._limits
        return sandbox.run(
            code,
            stdin=stdin.encode("utf-8", "replace"),
            timeout_seconds=limits.timeout_seconds,
            memory_bytes=limits.memory_bytes,
            output_bytes=output_bytes,
        )

    def _program(self, call: str, task: dict[str, Any]) -> Program:
        return Program(_harness(call), json.dumps(task).encode(), limits=self._limits)


def same_output(expected: str, printed: str) -> bool:
    """Return whether a program printed what it should.

    White space at the ends of lines and of the whole does not count. Lines that differ are equal
    where their words are, one by one, as text or as decimal numbers of one value.
    """
    asked, got = expected.strip().splitlines(), printed.strip().splitlines()
    return len(asked) == len(got) and all(map(_same_line, asked, got))


def _same_line(asked: str, got: str) -> bool:
    if asked.strip() == got.strip():
        return True
    left, right = asked.split(), got.split()
    return len(left) == len(right) and all(map(_same_word, left, right))


def _same_word(asked: str, got: str) -> bool:
    if asked == got:
        return True
    try:
        # Long words are no numbers that anyone prints; comparing them would take long.
        is_number = max(len(asked), len(got)) <= 400 and not _PADDED.match(asked + " " + got)
        return is_number and Decimal(asked) == Decimal(got)
    except InvalidOperation:
        return False


@lru_cache(maxsize=4)
def _harness(call: str) -> str:
    folder = Path(__file__).parent
    codec = (folder / "values.py").read_text(encoding="utf-8")
    inside = (folder / "inside.py").read_text(encoding="utf-8")
    # One program of two files: only the first may speak of the future.
    inside = inside.replace("from __future__ import annotations\n", "", 1)
    return f"{codec}\n{inside}\n{call}\n"


def _reply_of(result: SandboxResult) -> dict[str, Any] | None:
    """Return what a harness printed; None where it printed nothing that can be read."""
    if result.truncated:
        return None
    try:
        reply = json.loads(result.stdout)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None


def _failed(result: SandboxResult, detail: str) -> TestResult:
    known: dict[str, Outcome] = {
        "timeout": "timeout",
        "memory": "memory",
        "output_limit": "output_limit",
    }
    if result.status == "signal":
        detail = f"the process was ended by signal {result.signal}"
    return TestResult(known.get(result.status, "error"), result.wall_seconds, _end_of(detail))


def _end_of(text: object) -> str:
    end = str(text).strip()[-_MOST_DETAIL:]
    return end.encode("utf-8", "replace").decode("utf-8")


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except (RecursionError, ValueError):
        text = f"a {type(value).__name__}"
    text = text if len(text) <= 100 else text[:97] + "..."
    return text.encode("utf-8", "replace").decode("utf-8")
