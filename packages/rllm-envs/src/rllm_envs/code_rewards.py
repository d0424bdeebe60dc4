"""Reward functions for programs, graded by hidden tests in the sandbox."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rllm_envs.grading.code.grader import CodeGrader, CodeVerdict
from rllm_envs.grading.code.tests import TestSuite, read_tests
from rllm_envs.parsing import code_block
from rllm_envs.rewards import RewardOutput
from rllm_envs.sandbox import RemoteSandbox, Sandbox
from rllm_envs.tasks import canonical_json

MAX_SOLUTION_LENGTH = 100_000
_FUTURE = re.compile(r"^from __future__ import .*$", re.MULTILINE)


class CodeReward:
    """Reward a program by the tests of its task.

    The program is the last fenced block of the response. The tests are those of
    ``rllm_envs.grading.code.tests``: of HumanEval, MBPP, LiveCodeBench, LeetCode, APPS and TACO.

    Args:
        partial: Whether the reward is the share of tests that pass, instead of 1 for all of them.
        timeout_seconds: Time of one test.
        total_seconds: Time of all tests of one program.
        memory_bytes: Memory of each process.
        sandbox: Where programs run; the sandbox of this process by default.

    Raises:
        EnvArgumentError: A limit is out of range.
    """

    def __init__(
        self,
        *,
        partial: bool = False,
        timeout_seconds: float = 6.0,
        total_seconds: float = 60.0,
        memory_bytes: int = 2**30,
        sandbox: Sandbox | RemoteSandbox | None = None,
    ) -> None:
        self._is_partial = partial
        self._grader = CodeGrader(
            timeout_seconds=timeout_seconds,
            total_seconds=total_seconds,
            memory_bytes=memory_bytes,
            run_all=partial,
            sandbox=sandbox,
        )

    def __call__(self, task_info: Mapping[str, Any], action: str) -> RewardOutput:
        """Return the reward of a response.

        Returns:
            The reward with ``metadata`` of ``outcome`` ("passed", "wrong", "error", "timeout",
            "memory", "output_limit", or "no_answer" where there is no program), ``num_passed``,
            ``num_tests``, ``results`` (the outcome of each test) and ``detail`` (of the first
            failure).

        Raises:
            TaskError: The tests are missing or cannot be used.
            SandboxError: The sandbox failed, so nothing is known of the program.
        """
        suite = _suite_of(canonical_json(dict(task_info)))
        code = code_block(action) if isinstance(action, str) else None
        if code is None or len(code) > MAX_SOLUTION_LENGTH:
            detail = "there is no program" if code is None else "the program is too long"
            metadata = _metadata("no_answer", 0, ["not_run"] * len(suite.tests), detail)
            return RewardOutput(0.0, False, metadata)
        verdict = self._grader.grade(whole_program(task_info, suite, code), suite)
        share = verdict.num_passed / len(verdict.results)
        reward = share if self._is_partial else float(verdict.is_correct)
        return RewardOutput(reward, verdict.is_correct, _metadata_of(verdict))


code_reward_fn = CodeReward()
"""Reward 1 for a program that passes all tests of its task, else 0; see :class:`CodeReward`."""


def whole_program(task_info: Mapping[str, Any], suite: TestSuite, code: str) -> str:
    """Return a program with what the task's prompt gives it: imports, helpers, a function's head.

    A program that does not define the function that is asked for goes on where the prompt ends.
    """
    prompt = task_info.get("prompt")
    # Elsewhere than beside a ``test``, a prompt is a question in words.
    if suite.kind != "assert" or not isinstance(prompt, str) or not task_info.get("test"):
        return code
    name = re.escape(re.split(r"[.(]", suite.entry_point)[0])
    defines = re.search(rf"^(?:(?:async )?def|class) +{name}\b|^{name} *=", code, re.MULTILINE)
    whole = f"{prompt}\n\n{code}" if defines else f"{prompt.rstrip()}\n{code}"
    futures = _FUTURE.findall(whole)
    # Such a line must be the first of a program.
    return "\n".join([*futures, _FUTURE.sub("", whole)]) if futures else whole


@lru_cache(maxsize=128)  # some tasks have tests of megabytes
def _suite_of(task_json: str) -> TestSuite:
    return read_tests(json.loads(task_json))


def _metadata_of(verdict: CodeVerdict) -> dict[str, Any]:
    results = [result.outcome for result in verdict.results]
    detail = next((r.detail for r in verdict.results if r.outcome != "passed"), "")
    return _metadata(verdict.outcome, verdict.num_passed, results, detail)


def _metadata(outcome: str, num_passed: int, results: list[Any], detail: str) -> dict[str, Any]:
    return {
        "outcome": outcome,
        "num_passed": num_passed,
        "num_tests": len(results),
        "results": results,
        "detail": detail,
    }
