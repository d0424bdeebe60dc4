"""Reward functions: ``(task_info, action) -> RewardOutput``."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.math_grader import grade_answer
from rllm_envs.parsing import boxed_answer, last_boxed

REFERENCE_FIELDS = ("ground_truth", "answer")
"""Fields of a task that may hold the reference; the first present counts."""

HIDDEN_FIELDS = (
    *REFERENCE_FIELDS,
    *("solution", "canonical_solution", "tests", "test", "test_list", "challenge_test_list"),
    *("test_cases", "input_output", "inputs", "outputs", "private_test_cases", "stations"),
)
"""Fields of a task that an agent must not see."""


@dataclass(frozen=True, slots=True)
class RewardOutput:
    """A graded action. Made by a reward function, read by the environment that called it."""

    reward: float
    """The reward."""
    is_correct: bool
    """Whether the action solves the task."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """How the reward came about; JSON values."""


def math_reward_fn(task_info: Mapping[str, Any], action: str) -> RewardOutput:
    r"""Return reward 1 if the last ``\boxed{}`` after the thoughts equals a reference, else 0.

    The reference is ``task_info["ground_truth"]`` or ``task_info["answer"]``: text, a number, or a
    list of equally right ones. A worked solution counts too: what follows its last ``####`` (as in
    GSM8K), or its last ``\boxed{}``.

    Returns:
        The reward with ``metadata`` of ``outcome`` ("correct", "wrong", "no_answer" or
        "unverifiable"), ``method``, ``answer`` (text or None) and ``detail``.

    Raises:
        TaskError: There is no reference, or it is neither text nor number.
        ReferenceAnswerError: A reference cannot be read.
        MissingDependencyError: The comparison needs math-verify, which is not installed.
    """
    answer = boxed_answer(action) if isinstance(action, str) else None
    verdict = grade_answer(answer, references_of(task_info))
    metadata = {
        "outcome": verdict.outcome,
        "method": verdict.method,
        "answer": verdict.answer,
        "detail": verdict.detail,
    }
    return RewardOutput(float(verdict.is_correct), verdict.is_correct, metadata)


def references_of(task_info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the reference answers of a task as text.

    Raises:
        TaskError: No field of ``REFERENCE_FIELDS`` is present, or its value is of a wrong type.
    """
    for name in REFERENCE_FIELDS:
        if task_info.get(name) is not None:
            value = task_info[name]
            items = value if isinstance(value, list | tuple) else [value]
            if not items:
                raise TaskError(f"{name!r} is an empty list; at least one reference is needed")
            return tuple(reference_text(item, name) for item in items)
    raise TaskError(
        f"the task has no reference answer: it needs 'answer' or 'ground_truth', got the fields "
        f"{sorted(map(str, task_info))}"
    )


def reference_text(value: Any, name: str) -> str:
    r"""Return one reference as text: a number in full, a worked solution reduced to its answer.

    Raises:
        TaskError: The value is neither text nor a finite number.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TaskError(f"{name!r} must be text or a number, got {excerpt(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TaskError(f"{name!r} must be a finite number, got {value}")
    if isinstance(value, float):
        return format(Decimal(repr(value)), "f")
    if not isinstance(value, str):
        return str(value)
    if "####" in value:
        return value.rpartition("####")[2].strip()
    boxed = last_boxed(value)
    return value.strip() if boxed is None else boxed.strip()
