"""Reward functions for instructions that a program can check."""

from collections.abc import Mapping
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.instructions.checks import check_instruction, is_followed
from rllm_envs.parsing import strip_thoughts
from rllm_envs.rewards import RewardOutput

MAX_INSTRUCTIONS = 100
MAX_RESPONSE_LENGTH = 200_000


def ifeval_reward_fn(task_info: Mapping[str, Any], action: str) -> RewardOutput:
    """Reward a response by the instructions that it follows: 1 for all of them, else 0.

    The task has ``instruction_id_list``, names of ``rllm_envs.grading.instructions.checks``, and
    ``kwargs``, the arguments of each. Thoughts do not count as response. What is longer than
    200,000 characters follows nothing.

    Returns:
        The reward with ``metadata`` of ``followed`` (bool of each instruction), ``share`` of those
        followed, and ``followed_loosely``: also without the first line, the last, or asterisks, as
        the loose accuracy of the paper has it.

    Raises:
        TaskError: An instruction is unknown, or an argument of one is missing or wrong.
    """
    instructions = instructions_of(task_info)
    text = strip_thoughts(action) if isinstance(action, str) else ""
    text = text if len(text) <= MAX_RESPONSE_LENGTH else ""
    variants = _variants(text)
    followed = [is_followed(name, arguments, text) for name, arguments in instructions]
    loosely = [
        strictly or any(is_followed(name, arguments, variant) for variant in variants)
        for strictly, (name, arguments) in zip(followed, instructions, strict=True)
    ]
    share = sum(followed) / len(followed)
    metadata = {"followed": followed, "share": share, "followed_loosely": loosely}
    return RewardOutput(float(all(followed)), all(followed), metadata)


def instructions_of(task_info: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the instructions of a task: names and arguments, without those that are None.

    Raises:
        TaskError: One is unknown, or an argument is missing or wrong.
    """
    names, arguments = task_info.get("instruction_id_list"), task_info.get("kwargs")
    if not isinstance(names, list) or not 1 <= len(names) <= MAX_INSTRUCTIONS:
        raise TaskError(
            f"'instruction_id_list' must be a list of 1 to {MAX_INSTRUCTIONS} names, got "
            f"{excerpt(names)}"
        )
    if not isinstance(arguments, list) or len(arguments) != len(names):
        raise TaskError(f"'kwargs' must be a list of {len(names)}, got {excerpt(arguments)}")
    instructions = []
    for name, given in zip(names, arguments, strict=True):
        is_object = isinstance(given, Mapping)
        kept = {k: v for k, v in given.items() if v is not None} if is_object else given
        check_instruction(name, kept)
        instructions.append((name, kept))
    return instructions


def _variants(text: str) -> list[str]:
    """Return a response without what models put around it."""
    lines = text.split("\n")
    cut = [text, *("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))]
    return [*cut[1:], *(part.replace("*", "") for part in cut)]
