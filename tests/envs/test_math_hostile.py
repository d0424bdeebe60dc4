"""Answers written to hang, fill, break or cheat the grader; the cases are in ``math_cases``."""

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from math_cases import HOSTILE, INJECTIONS, REFERENCES, VERDICTS

from rllm_envs import math_reward_fn
from rllm_envs.grading import symbolic
from rllm_envs.grading.math_grader import grade_answer, read_reference

pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")

CEILING_SECONDS = 4.0
DEEP = HOSTILE["deep sines"]
"""The grammar takes longer than the time limit to read it."""
ORDINARY = [
    ("42", r"\boxed{42.0}", 1.0),
    ("42", r"\boxed{43}", 0.0),
    (r"\frac{1}{2}", r"\boxed{0.5}", 1.0),
    (r"\sqrt{8}", r"\boxed{2\sqrt{2}}", 1.0),
    (r"\sqrt{8}", r"\boxed{3\sqrt{2}}", 0.0),
    ("x^2 - 1", r"\boxed{(x+1)(x-1)}", 1.0),
    (r"1, \sqrt{2}", r"\boxed{\frac{2}{\sqrt{2}}, 1}", 1.0),
    (r"\text{east}", r"\boxed{East}", 1.0),
]


@pytest.fixture(scope="module", autouse=True)
def _warm():
    """Start both processes: a start is not part of the time that an answer takes."""
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda n: symbolic.shared_pool().compare("x+1", f"x+{n}"), (1, 2)))


def boxed(content):
    return rf"\boxed{{{content}}}"


def test_there_are_as_many_cases_as_were_meant():
    assert (len(HOSTILE), len(VERDICTS), len(INJECTIONS)) == (48, 29, 8)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_settled_in_time_and_earns_nothing(name):
    for reference in REFERENCES:
        read_reference(reference)
    start = time.perf_counter()
    output = math_reward_fn({"answer": list(REFERENCES)}, boxed(HOSTILE[name]))
    assert time.perf_counter() - start < CEILING_SECONDS
    assert output.reward == 0.0
    assert output.metadata["outcome"] in ("wrong", "unverifiable", "no_answer")


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_are_as_the_rules_say(name):
    reference, response, is_right = VERDICTS[name]
    output = math_reward_fn({"answer": reference}, response)
    assert (output.is_correct, output.reward) == (is_right, float(is_right)), output
    assert output.metadata["outcome"] != "unverifiable"


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A pool whose process works in an empty directory, and that directory."""
    directory = tmp_path_factory.mktemp("watched")
    before = os.getcwd()
    os.chdir(directory)
    pool = symbolic.SymbolicPool(1)
    pool.compare("x", "x")
    os.chdir(before)
    yield pool, directory
    pool.close()


@pytest.mark.parametrize("name", INJECTIONS)
def test_code_in_answers_is_never_run(name, watched, monkeypatch):
    pool, directory = watched
    code = INJECTIONS[name].format(mark=directory / "mark")
    places = [directory, Path.cwd()]
    monkeypatch.chdir(directory)
    for reference in REFERENCES:
        assert math_reward_fn({"answer": reference}, boxed(code)).reward == 0.0
    for reference in REFERENCES:
        assert pool.compare(reference, code) in ("different", "failed")
    assert not pool.can_read(f"{code} \\")
    assert list(directory.iterdir()) == []
    assert not any((place / "MARK").exists() for place in places)


@pytest.mark.parametrize("content", ["1" + "a" * 4000 + "!", "1" + "~" * 4000 + "2", "(a," * 1300])
@pytest.mark.parametrize("reference", ["42", "1, 2"])
def test_reading_takes_time_in_proportion_to_the_length(content, reference):
    start = time.perf_counter()
    assert grade_answer(content, [reference]).outcome in ("wrong", "unverifiable")
    assert time.perf_counter() - start < 1.0


def test_a_hostile_answer_neither_delays_nor_fails_others_in_threads():
    slow = threading.Event()
    with ThreadPoolExecutor(8) as threads:

        def hostile():
            slow.set()
            return math_reward_fn({"answer": "x + 17"}, boxed(DEEP))

        pending = threads.submit(hostile)
        assert slow.wait(10)
        outputs = list(threads.map(_grade, ORDINARY * 3))
        assert not pending.done()
        assert outputs == [reward for *_, reward in ORDINARY * 3]
        assert pending.result().metadata["outcome"] == "unverifiable"


def test_a_hostile_answer_neither_delays_nor_fails_others_in_an_event_loop():
    async def run():
        pending = asyncio.create_task(
            asyncio.to_thread(math_reward_fn, {"answer": "x + 18"}, boxed(DEEP))
        )
        await asyncio.sleep(0)
        tasks = [asyncio.to_thread(_grade, row) for row in ORDINARY * 3]
        outputs = await asyncio.gather(*tasks)
        assert not pending.done()
        assert outputs == [reward for *_, reward in ORDINARY * 3]
        assert (await pending).metadata["outcome"] == "unverifiable"
        assert _grade(("x + 22", r"\boxed{22 + x}", 1.0)) == 1.0

    asyncio.run(run())


def test_the_same_hostile_answer_of_a_whole_group_is_compared_once():
    start = time.perf_counter()
    with ThreadPoolExecutor(16) as threads:
        grades = threads.map(lambda _: grade_answer(DEEP, ["x + 19"]).outcome, range(16))
        assert list(grades) == ["unverifiable"] * 16
    assert time.perf_counter() - start < CEILING_SECONDS
    start = time.perf_counter()
    assert grade_answer(DEEP, ["x + 19"]).outcome == "unverifiable"
    assert time.perf_counter() - start < 0.1


def test_an_answer_that_takes_too_long_is_not_compared_with_further_references():
    start = time.perf_counter()
    references = ["x + 20", "x + 21", "x + 22", "42"]
    assert grade_answer(DEEP, references).outcome == "unverifiable"
    assert time.perf_counter() - start < CEILING_SECONDS


def _grade(row):
    reference, response, _ = row
    return math_reward_fn({"answer": reference}, response).reward
