"""The check of Countdown answers: an expression of given numbers that reaches a target."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from rllm_envs.errors import TaskError, ToolError, excerpt
from rllm_envs.parsing import boxed_answer
from rllm_envs.rewards import RewardOutput
from rllm_envs.tools.calculator import evaluate

NUMBER_FIELDS = ("numbers", "nums")
"""Fields of a row that may hold the numbers; the first present counts."""
MAX_NUMBERS = 20
MAX_ANSWER_LENGTH = 400

_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_SIGNS = (
    *(("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("\\left", ""), ("\\right", "")),
    *(("\u00d7", "*"), ("\u00b7", "*"), ("\u00f7", "/"), ("\u2212", "-"), ("\\,", " ")),
    *(("$", ""), ("[", "("), ("]", ")")),
)
_ALLOWED = re.compile(r"[0-9+\-*/() ]+")


def countdown_reward_fn(task_info: Mapping[str, Any], action: str) -> RewardOutput:
    r"""Return reward 1 if the last ``\boxed{}`` after the thoughts reaches the target, else 0.

    The task holds ``numbers`` (or ``nums``), up to 20 integers of at least 0, and ``target``, an
    integer. The answer is an expression of integers, ``+ - * /`` and parentheses that uses each
    number at most as often as it is given; where the task holds ``use_all`` as true, exactly as
    often. ``= target`` may follow. Values are exact fractions; nothing is evaluated as code.

    Returns:
        The reward with ``metadata`` of ``outcome`` ("correct", "wrong", "wrong_numbers",
        "unreadable" or "no_answer") and ``answer`` (text or None).

    Raises:
        TaskError: The numbers or the target are missing or of another form.
    """
    numbers, target = _problem(task_info)
    answer = boxed_answer(action) if isinstance(action, str) else None
    if answer is None:
        outcome = "no_answer"
    else:
        use_all = bool(task_info.get("use_all", False))
        outcome = judge_expression(answer, numbers, target, use_all=use_all)
    is_correct = outcome == "correct"
    return RewardOutput(float(is_correct), is_correct, {"outcome": outcome, "answer": answer})


def judge_expression(
    answer: str, numbers: Sequence[int], target: int, *, use_all: bool = False
) -> str:
    """Return how an expression does: "correct", "wrong", "wrong_numbers" or "unreadable".

    Args:
        answer: The expression, in plain text or LaTeX; ``= target`` may follow.
        numbers: What may be used, each at most as often as it is given.
        target: What is to be reached.
        use_all: Whether each number must be used as often as it is given.
    """
    if len(answer) > MAX_ANSWER_LENGTH:
        return "unreadable"
    text = _FRACTION.sub(r"((\1)/(\2))", answer)
    for sign, plain in _SIGNS:
        text = text.replace(sign, plain)
    left, equals, right = text.partition("=")
    if equals and right.strip() != str(target):
        return "unreadable"
    left = left.strip()
    # The calculator also knows decimals, powers, // and %, which are not part of this game.
    if not _ALLOWED.fullmatch(left) or "**" in left or "//" in left:
        return "unreadable"
    try:
        value = evaluate(left)
    except ToolError:
        return "unreadable"
    used, given = Counter(map(int, re.findall(r"\d+", left))), Counter(numbers)
    if used - given or (use_all and used != given):
        return "wrong_numbers"
    return "correct" if value == Fraction(target) else "wrong"


def _problem(task_info: Mapping[str, Any]) -> tuple[list[int], int]:
    numbers: Any = next(
        (task_info[name] for name in NUMBER_FIELDS if task_info.get(name) is not None), None
    )
    is_list = isinstance(numbers, list | tuple) and 0 < len(numbers) <= MAX_NUMBERS
    if not is_list or not all(type(number) is int and number >= 0 for number in numbers):
        raise TaskError(
            f"'numbers' must be a list of 1 to {MAX_NUMBERS} integers of at least 0, got "
            f"{excerpt(numbers)}"
        )
    target = task_info.get("target")
    if type(target) is not int:
        raise TaskError(f"'target' must be an integer, got {excerpt(target)}")
    return list(numbers), target
