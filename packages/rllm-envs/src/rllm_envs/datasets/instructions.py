"""IFEval: prompts with instructions that a program can check.

Tasks are ``{"question": ..., "instruction_id_list": [...], "kwargs": [{...}, ...]}``, and ``id``.
"""

from rllm_envs.datasets.benchmark import Benchmark, Row
from rllm_envs.datasets.fields import id_of, listed, text_of, texts_of
from rllm_envs.errors import DatasetError, excerpt
from rllm_envs.tasks import Task


def ifeval_task(row: Row) -> Task:
    """Return the task of a row of IFEval; arguments that are None do not belong to it."""
    names = texts_of(row, "instruction_id_list")
    arguments = listed(row.get("kwargs"))
    is_listed = isinstance(arguments, list) and len(arguments) == len(names)
    if not is_listed or not all(item is None or isinstance(item, dict) for item in arguments):
        raise DatasetError(f"field 'kwargs' must be {len(names)} objects, got {excerpt(arguments)}")
    given = [{k: v for k, v in (item or {}).items() if v is not None} for item in arguments]
    return {
        "question": text_of(row, "prompt"),
        "instruction_id_list": names,
        "kwargs": given,
    } | id_of(row, "key")


INSTRUCTION_BENCHMARKS = (
    Benchmark(
        name="ifeval",
        hub_id="google/IFEval",
        splits={"test": "train"},
        env_id="rllm/IFEval-v0",
        to_task=ifeval_task,
        reward="rllm_envs.instruction_rewards:ifeval_reward_fn",
        metric="share of prompts with all instructions followed",
        licence="apache-2.0",
        num_rows={"test": 541},
        aliases=("if_eval",),
    ),
)
"""The benchmarks of instructions."""
