"""Reward functions for questions whose answer is a few words, such as those of HotpotQA."""

import re
from collections.abc import Mapping
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.text_match import is_exact_match, token_f1
from rllm_envs.parsing import last_boxed, strip_thoughts
from rllm_envs.rewards import REFERENCE_FIELDS, RewardOutput

CORRECT_F1 = 0.3
"""F1 from which on an answer that is not equal to a reference still counts."""

_TAG = re.compile(r"<(/?)answer>", re.IGNORECASE)
_ANNOUNCEMENT = re.compile(r"\banswer\s*(?:is\b|:)", re.IGNORECASE)
_ORNAMENTS = " \t\r\n*_`\"'."
_MAX_RESPONSE = 100_000


def search_reward_fn(task_info: Mapping[str, Any], action: str) -> RewardOutput:
    r"""Reward a short answer: 1 for an exact match, else its F1 where that is at least 0.3.

    The answer is looked for after the thoughts: the last ``\boxed{}``, else the last
    ``<answer>...</answer>``, else what follows the last "answer is" or "answer:", else the last
    line. Exact match and F1 are those of SQuAD (``rllm_envs.grading.text_match``), the best over
    the references ``task_info["ground_truth"]`` or ``["answer"]``, a text or a list of texts.

    Returns:
        The reward with ``metadata`` of ``outcome`` ("correct", "partial", "wrong" or "no_answer"),
        ``answer`` (text or None), ``f1`` and ``method`` (where the answer was found).

    Raises:
        TaskError: There is no reference, or it is no text.
    """
    found = _graded(task_info, action)
    is_correct = found.reward >= CORRECT_F1
    reward = found.reward if is_correct else 0.0
    return RewardOutput(reward, is_correct, found.metadata)


def f1_reward_fn(task_info: Mapping[str, Any], action: str) -> RewardOutput:
    """Reward a short answer with its F1, however small; otherwise as ``search_reward_fn``."""
    return _graded(task_info, action)


def find_short_answer(response: str) -> tuple[str, str] | None:
    """Return the answer in a response and how it was found; None where there is none.

    Returns:
        The text, and "boxed", "tagged", "announced" or "last_line".
    """
    text = strip_thoughts(response[-_MAX_RESPONSE:])
    boxed = last_boxed(text)
    if boxed is not None:
        return boxed.strip(), "boxed"
    tagged = _last_tagged(text)
    if tagged is not None:
        return tagged.strip(), "tagged"
    announced = _last_announced(text)
    if announced:
        return announced, "announced"
    lines = [line.strip(_ORNAMENTS) for line in text.splitlines() if line.strip(_ORNAMENTS)]
    return (lines[-1], "last_line") if lines else None


def _last_tagged(text: str) -> str | None:
    """Return what the last complete pair of tags holds. One pass: pairs may be opened by thousands.

    Of nested opening tags the innermost counts.
    """
    start: int | None = None
    last: tuple[int, int] | None = None
    for tag in _TAG.finditer(text):
        if not tag.group(1):
            start = tag.end()
        elif start is not None:
            last, start = (start, tag.start()), None
    return None if last is None else text[slice(*last)]


def _last_announced(text: str) -> str:
    """Return the rest of the line after the last announcement that has one; empty if none has."""
    for match in reversed(list(_ANNOUNCEMENT.finditer(text))):
        end = text.find("\n", match.end())
        answer = text[match.end() : end if end >= 0 else None].strip(_ORNAMENTS)
        if answer:
            return answer
    return ""


def _graded(task_info: Mapping[str, Any], action: str) -> RewardOutput:
    references = _references(task_info)
    found = find_short_answer(action) if isinstance(action, str) else None
    if found is None:
        metadata = {"outcome": "no_answer", "answer": None, "f1": 0.0, "method": ""}
        return RewardOutput(0.0, False, metadata)
    answer, method = found
    is_exact = any(is_exact_match(answer, reference) for reference in references)
    f1 = 1.0 if is_exact else max(token_f1(answer, reference) for reference in references)
    outcome = "correct" if is_exact else "partial" if f1 >= CORRECT_F1 else "wrong"
    metadata = {"outcome": outcome, "answer": answer, "f1": f1, "method": method}
    return RewardOutput(f1, f1 >= CORRECT_F1, metadata)


def _references(task_info: Mapping[str, Any]) -> list[str]:
    for name in REFERENCE_FIELDS:
        value = task_info.get(name)
        if value is None:
            continue
        texts = list(value) if isinstance(value, list | tuple) else [value]
        if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
            raise TaskError(f"{name!r} must be a text or a list of texts, got {excerpt(value)}")
        return texts
    raise TaskError(
        f"the task has no reference answer: it needs {' or '.join(REFERENCE_FIELDS)}, got the "
        f"fields {sorted(map(str, task_info))}"
    )
