import asyncio
import contextlib
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rllm_envs.grading.symbolic import SymbolicPool

pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")

ROOT = r"\sqrt{42}"
SLOW = r"\sin(" * 40 + "x" + ")" * 40


@pytest.fixture(scope="module")
def pool():
    pool = SymbolicPool(2, time_limit_seconds=1.0)
    assert pool.compare("1+1", "2") == "equal"
    yield pool
    pool.close()


def test_a_comparison_that_takes_too_long_is_given_up_and_the_next_one_is_right(pool):
    start = time.perf_counter()
    assert pool.compare(ROOT, SLOW) == "timeout"
    assert 0.9 < time.perf_counter() - start < 3.0
    start = time.perf_counter()
    assert pool.compare("x + y", "y + x") == "equal"
    assert time.perf_counter() - start < 1.0


def test_a_good_answer_beside_a_slow_one_is_graded_at_once():
    pool = SymbolicPool(2, time_limit_seconds=4.0)
    with contextlib.closing(pool), ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: pool.compare("a", "a"), range(4)))
        slow = threads.submit(pool.compare, ROOT, SLOW)
        time.sleep(0.1)
        assert pool.compare("x^2", "x \\cdot x") == "equal"
        assert not slow.done()
        assert slow.result() == "timeout"


def test_many_threads_get_their_own_verdicts(pool):
    questions = [(f"{n}+x", f"x+{n + n % 2}") for n in range(60)]
    with ThreadPoolExecutor(8) as threads:
        verdicts = list(threads.map(lambda pair: pool.compare(*pair), questions))
    assert verdicts == ["different" if n % 2 else "equal" for n in range(60)]


def test_it_works_inside_an_event_loop(pool):
    async def grade():
        return await asyncio.to_thread(pool.compare, "x/2", r"\frac{x}{2}")

    assert asyncio.run(grade()) == "equal"


def test_memory_of_a_comparison_is_limited(pool):
    assert pool.compare("x", "10^{9999999}") in ("different", "failed", "timeout")
    assert pool.compare("x", "x") == "equal"


def test_an_unreadable_reference_is_told_apart_from_a_wrong_answer(pool):
    assert pool.can_read(r"\frac{1}{2}")
    assert not pool.can_read(r"\frac{1}{ ++ ** }")
    assert pool.compare(r"\frac{1}{ ++ ** }", "1") == "unreadable reference"


def test_a_killed_process_is_replaced_and_the_question_asked_again():
    pool = SymbolicPool(1)
    try:
        assert pool.compare("x", "x") == "equal"
        [worker] = pool._idle
        os.killpg(worker._process.pid, 9)
        worker._process.wait()
        assert pool.compare("2x", "x+x") == "equal"
    finally:
        pool.close()


def test_closing_ends_all_processes():
    pool = SymbolicPool(1)
    pool.compare("x", "x")
    [worker] = pool._idle
    pool.close()
    assert worker._process.returncode is not None


def test_a_script_without_a_main_guard_grades_and_leaves_no_process(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import multiprocessing, threading\n"
        "from rllm_envs import math_reward_fn\n"
        "def grade(n):\n"
        "    return math_reward_fn({'answer': 'x+1'}, r'\\boxed{1+x}').reward\n"
        "print(grade(0))\n"
        "seen = []\n"
        "thread = threading.Thread(target=lambda: seen.append(grade(1)))\n"
        "thread.start(); thread.join(); print(seen)\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "    print(pool.map(grade, [2]))\n"
        "from rllm_envs.grading import symbolic\n"
        "print([w._process.pid for w in symbolic._shared._idle])\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    *results, pids = done.stdout.split("\n")[:4]
    assert results == ["1.0", "[1.0]", "[1.0]"]
    deadline = time.monotonic() + 5
    for pid in map(int, pids.strip("[]").split(",")):
        while time.monotonic() < deadline and os.path.exists(f"/proc/{pid}"):
            time.sleep(0.05)
        assert not os.path.exists(f"/proc/{pid}")


def test_the_child_ends_when_its_parent_is_killed():
    code = (
        "import os\n"
        "from rllm_envs.grading.symbolic import SymbolicPool\n"
        "pool = SymbolicPool(1)\n"
        "pool.compare('x', 'x')\n"
        "print(pool._idle[0]._process.pid, flush=True)\n"
        f"pool.compare({ROOT!r}, {SLOW!r})\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.3)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and _runs(child):
        time.sleep(0.05)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_threads_of_this_process_do_not_pile_up(pool):
    before = threading.active_count()
    for _ in range(5):
        pool.compare("x", "x")
    time.sleep(0.1)
    assert threading.active_count() <= before + 1
