"""The child process of symbolic grading, seen from outside."""

import os
import signal
import threading
from pathlib import Path

import pytest

from rllm_envs.grading.structure import as_json, read_structure
from rllm_envs.grading.symbolic import SymbolicPool

pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")

has_proc = pytest.mark.skipif(
    not Path("/proc/self/limits").exists(), reason="looks at processes in /proc"
)


@pytest.fixture(scope="module")
def pool():
    pool = SymbolicPool(1)
    assert pool.compare("1+1", "2") == "equal"
    yield pool
    pool.close()


def comparer_of(pool):
    """Return the id of the one process that the pool's one worker has forked."""
    [worker] = pool._idle
    pid = worker._process.pid
    [child] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def compared(pool, reference, answer):
    return pool.compare(as_json(read_structure(reference)), as_json(read_structure(answer)))


@has_proc
def test_memory_files_and_core_dumps_of_a_comparer_are_limited(pool):
    lines = Path(f"/proc/{comparer_of(pool)}/limits").read_text().splitlines()
    limits = {line[:26].strip(): line[26:].split()[:2] for line in lines}
    assert limits["Max address space"] == [str(2**30), str(2**30)]
    assert limits["Max file size"] == ["0", "0"]
    assert limits["Max core file size"] == ["0", "0"]


@has_proc
def test_a_comparer_that_is_killed_from_outside_is_replaced(pool):
    killed = comparer_of(pool)
    os.kill(killed, signal.SIGKILL)
    assert pool.compare("2x", "x+x") == "equal"
    assert comparer_of(pool) != killed


@has_proc
def test_a_comparer_that_is_killed_at_work_costs_no_verdict():
    pool = SymbolicPool(1, time_limit_seconds=2.0)
    try:
        pool.compare("x", "x")
        working = comparer_of(pool)
        timer = threading.Timer(0.3, os.kill, (working, signal.SIGKILL))
        timer.start()
        assert pool.compare(r"\sqrt{42}", r"\sin(" * 40 + "x" + ")" * 40) == "timeout"
        timer.join()
        assert pool.compare("x", "x") == "equal"
        assert comparer_of(pool) != working
    finally:
        pool.close()


@has_proc
def test_a_comparer_is_replaced_after_a_thousand_questions():
    pool = SymbolicPool(1)
    try:
        assert pool.compare("x", "x") == "equal"
        first = comparer_of(pool)
        for _ in range(999):
            pool.compare("x", "x")
        assert comparer_of(pool) == first
        assert pool.compare("x", "x") == "equal"
        assert comparer_of(pool) != first
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        (r"1, \sqrt{2}", r"\frac{2}{\sqrt{2}}, 1", "equal"),
        (r"1, \sqrt{2}", r"\sqrt{2}, \sqrt{1}", "equal"),
        (r"1, 1, \sqrt{2}", r"\sqrt{2}, \sqrt{2}, 1", "different"),
        (r"(1, \sqrt{2})", r"(1, \frac{2}{\sqrt{2}})", "equal"),
        (r"(1, \sqrt{2})", r"(\frac{2}{\sqrt{2}}, 1)", "different"),
        (r"(0, \pi]", r"[0, \pi]", "different"),
        (r"(0, \pi), 2x", r"x+x, (0, \frac{2\pi}{2})", "equal"),
        (r"50%, \sqrt{2}", r"0.5, 2^{\frac{1}{2}}", "equal"),
        (r"\begin{pmatrix} 1 & x \end{pmatrix}", r"\begin{pmatrix} 1 & 2x-x \end{pmatrix}",
         "equal"),
        (r"\begin{pmatrix} 1 & x \end{pmatrix}", r"\begin{pmatrix} x & 1 \end{pmatrix}",
         "different"),
        (r"[1,2] \cup [3,4]", r"[3,4] \cup [1,2]", "equal"),
        (r"[1,2] \cup [3,4]", r"[3,4] \cup [1,2)", "different"),
    ],
)  # fmt: skip
def test_structures_are_compared_member_by_member(pool, reference, answer, expected):
    assert compared(pool, reference, answer) == expected


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        (r"\frac{1}{1+\sqrt{2}}", r"\sqrt{2} - 1"),
        (r"\sin^2 x", r"1 - \cos^2 x"),
        (r"\ln 8", r"3 \ln 2"),
        (r"\binom{n}{2}", r"\frac{n(n-1)}{2}"),
        ("e", "2.718282"),
        (r"\sqrt{2}", "1.4142136"),
        ("(a+b)^3", "a^3 + 3a^2b + 3ab^2 + b^3"),
        (r"\frac{x^2-1}{x-1}", "x+1"),
        ("6 - 5i", "-5i + 6"),
        (r"\sum_{k=1}^{10} k", "55"),
        ("k", r"\frac{2k}{2}"),
        ("2x - 3y = 5", "4x - 6y = 10"),
        (r"x > 5", "5 < x"),
    ],
)
def test_equal_expressions_stay_equal(pool, reference, answer):
    assert pool.compare(reference, answer) == "equal"


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("k", "2k"),
        ("k", "n"),
        ("2m", "2"),
        ("2m", "2g"),
        (r"\sqrt{2}", r"\sqrt{2} m"),
        (r"\sqrt{2}", "1.4143"),
        ("x^2 + 1 = 0", "x^2 + 2 = 0"),
        ("6 - 5i", "6 + 5i"),
        ("(x+1)^{9999}", "(x+2)^{9999}"),
        (r"\infty", r"-\infty"),
        (r"\infty", r"\frac{1}{0}"),
    ],
)
def test_different_expressions_stay_different(pool, reference, answer):
    assert pool.compare(reference, answer) == "different"


def test_a_member_that_cannot_be_read_makes_the_reference_unreadable(pool):
    broken = r"1, \frac{1}{ ++ ** }"
    assert not pool.can_read(as_json(read_structure(broken)))
    assert compared(pool, broken, "1, x") == "unreadable reference"
