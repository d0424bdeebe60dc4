"""Symbolic comparison in killable child processes.

Comparing two expressions may take for ever, or all memory, and it holds the interpreter's lock. So
it runs in child processes (``symbolic_worker``), each of which answers one question at a time over
pipes and gives up after a time limit. The pool works from any thread and needs no ``if __name__ ==
"__main__"`` in the caller's script. It needs a system with ``fork``: Linux or macOS.
"""

import atexit
import contextlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from rllm_envs.errors import GradingError, MissingDependencyError

TIME_LIMIT_SECONDS = 3.0
START_LIMIT_SECONDS = 60.0
GRACE_SECONDS = 5.0
MAX_WORKERS = 8
MAX_REMEMBERED = 16_384
"""Verdicts of ``compare`` that are kept."""

Structure = str | dict[str, Any]
"""A LaTeX text, or what ``structure.as_json`` returns."""

SymbolicVerdict = Literal["equal", "different", "unreadable reference", "failed", "timeout"]

_WORKER_FILE = Path(__file__).with_name("symbolic_worker.py")


def default_num_workers() -> int:
    """Return how many processes compare at once: the number of cores, from 2 to 8."""
    return max(2, min(os.cpu_count() or 1, MAX_WORKERS))


class SymbolicPool:
    """Child processes that compare expressions; started when first needed.

    Args:
        num_workers: Processes at most; the number of cores, from 2 to 8, by default.
        time_limit_seconds: How long one comparison may take before it is given up.
    """

    def __init__(
        self, num_workers: int | None = None, *, time_limit_seconds: float = TIME_LIMIT_SECONDS
    ) -> None:
        self._time_limit_seconds = time_limit_seconds
        self._slots = threading.BoundedSemaphore(num_workers or default_num_workers())
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._is_closed = False

    def compare(self, reference: Structure, answer: Structure) -> SymbolicVerdict:
        """Return whether an answer equals a reference; "failed" or "timeout" where nobody knows.

        Args:
            reference: A LaTeX text, or ``structure.as_json`` of several values.
            answer: Likewise.
        """
        return self.ask(_question(reference, answer))

    def can_read(self, reference: Structure) -> bool:
        """Return whether a reference can be parsed within the time limit."""
        return self.ask(_question(reference)) == "equal"

    def close(self) -> None:
        """Kill all idle processes; a running comparison ends its own."""
        with self._lock:
            self._is_closed = True
            workers, self._idle = self._idle, []
        for worker in workers:
            worker.kill()

    def ask(self, question: bytes) -> SymbolicVerdict:
        """Return the verdict on a line for ``symbolic_worker``."""
        for _ in range(2):
            with self._worker() as worker:
                verdict = worker.ask(question)
            # A process may be killed from outside, so the question is put to a second one.
            if verdict != "died":
                return verdict
        return "failed"

    @contextlib.contextmanager
    def _worker(self) -> Iterator["_Worker"]:
        with self._slots:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            worker = worker or _Worker(self._time_limit_seconds)
            try:
                yield worker
            finally:
                with self._lock:
                    is_kept = worker.is_usable and not self._is_closed
                    if is_kept:
                        self._idle.append(worker)
                if not is_kept:
                    worker.kill()


class _Worker:
    """One child process; used by one thread at a time."""

    def __init__(self, time_limit_seconds: float) -> None:
        # The child keeps the time limit; the grace is for a child that is itself stuck.
        self._answer_limit_seconds = time_limit_seconds + GRACE_SECONDS
        self._is_ready = False
        self._owes_answer = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        # The child finds exactly the modules that this process finds.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_WORKER_FILE), str(time_limit_seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=environment,
                # Ctrl-C is for the parent; the child ends when its input closes.
                start_new_session=True,
            )
            assert self._process.stdout is not None
            self._poll = select.poll()
            self._poll.register(self._process.stdout, select.POLLIN)
        except OSError as error:
            raise GradingError(
                f"cannot start a grading process with {sys.executable}: {error}"
            ) from error

    @property
    def is_usable(self) -> bool:
        """Whether it awaits the next question."""
        return self._process.poll() is None and self._is_ready and not self._owes_answer

    def ask(self, question: bytes) -> Any:
        """Return the verdict, "timeout", or "died".

        Raises:
            GradingError: The process does not start.
        """
        if not self._is_ready:
            if self._read(START_LIMIT_SECONDS) != "ready":
                raise GradingError(f"the grading process does not start: {self._last_errors()}")
            self._is_ready = True
        assert self._process.stdin is not None
        self._owes_answer = True
        try:
            self._process.stdin.write(question)
            self._process.stdin.flush()
        except OSError:
            return "died"
        verdict = self._read(self._answer_limit_seconds)
        self._owes_answer = verdict == "died"
        return verdict

    def _read(self, limit_seconds: float) -> Any:
        """Return the verdict of the next line; end the process when none comes in time."""
        assert self._process.stdout is not None
        # A reply is one short line, written at once, so what is readable is the whole of it.
        if not self._poll.poll(1000 * limit_seconds):
            self._end()
            return "timeout"
        line = self._process.stdout.readline()
        return json.loads(line)["verdict"] if line.endswith(b"\n") else "died"

    def _last_errors(self) -> str:
        self._end()
        self._process.wait()
        self._errors.seek(0)
        text = self._errors.read().decode("utf-8", "replace").strip()
        return text[-500:] or f"exit code {self._process.poll()}"

    def _end(self) -> None:
        # The process leads a session of its own; its group holds the comparer that it has forked.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process and release its pipes."""
        if self._process.returncode is None:
            self._end()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


_pool_lock = threading.Lock()
_shared: SymbolicPool | None = None


def shared_pool() -> SymbolicPool:
    """Return the one pool of this process.

    Raises:
        MissingDependencyError: math-verify is not installed.
        GradingError: The system cannot fork processes.
    """
    require_math_verify()
    if not hasattr(os, "fork"):
        raise GradingError(f"symbolic grading needs Linux or macOS, this is {sys.platform}")
    global _shared
    with _pool_lock:
        if _shared is None:
            _shared = SymbolicPool()
        return _shared


def require_math_verify() -> None:
    """Raise MissingDependencyError unless math-verify is installed."""
    if not _has_math_verify():
        raise MissingDependencyError(
            "this answer can only be graded with math-verify, which is not installed; run: "
            'pip install "rllm-envs[math]"'
        )


class _Answers:
    """Verdicts by question; a question that is being asked is waited for, not asked twice."""

    def __init__(self, maxsize: int) -> None:
        self._maxsize = maxsize
        self._lock = threading.Lock()
        # The oldest question comes first and goes first.
        self._verdicts: OrderedDict[bytes, Future[SymbolicVerdict]] = OrderedDict()

    def of(self, question: bytes) -> SymbolicVerdict:
        with self._lock:
            verdict = self._verdicts.get(question)
            is_first = verdict is None
            if verdict is None:
                verdict = self._verdicts[question] = Future()
                if len(self._verdicts) > self._maxsize:
                    self._verdicts.popitem(last=False)
        if is_first:
            return self._ask(question, verdict)
        # Whoever asked first may have been interrupted; that is not this caller's interrupt.
        return verdict.result() if verdict.exception() is None else self.of(question)

    def _ask(self, question: bytes, verdict: Future[SymbolicVerdict]) -> SymbolicVerdict:
        try:
            found = shared_pool().ask(question)
        except BaseException as error:
            self._forget(question)
            verdict.set_exception(error)
            raise
        if found == "failed":
            # Somebody ended the process; the same question may be answered another time.
            self._forget(question)
        verdict.set_result(found)
        return found

    def _forget(self, question: bytes) -> None:
        with self._lock:
            self._verdicts.pop(question, None)


_answers = _Answers(MAX_REMEMBERED)


def compare(reference: Structure, answer: Structure) -> SymbolicVerdict:
    """Compare through the shared pool; equal questions are asked once, "timeout" included."""
    return _answers.of(_question(reference, answer))


def _question(reference: Structure, answer: Structure | None = None) -> bytes:
    question = {"reference": reference} | ({} if answer is None else {"answer": answer})
    return json.dumps(question).encode("ascii") + b"\n"


@lru_cache(maxsize=1)
def _has_math_verify() -> bool:
    return importlib.util.find_spec("math_verify") is not None


def _forget_pool_after_fork() -> None:
    # The forked child must not talk into its parent's pipes; it starts its own processes.
    global _shared, _pool_lock, _answers
    _pool_lock = threading.Lock()
    _shared = None
    _answers = _Answers(MAX_REMEMBERED)


def _close_shared_pool() -> None:
    if _shared is not None:
        _shared.close()


atexit.register(_close_shared_pool)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool_after_fork)
