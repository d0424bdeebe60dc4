"""Tasks whose answer is a few words: rows checked, questions drawn, answers graded."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from rllm_envs.errors import DatasetError, EnvArgumentError, TaskError, excerpt
from rllm_envs.rewards import REFERENCE_FIELDS, RewardOutput
from rllm_envs.search_rewards import f1_reward_fn, find_short_answer
from rllm_envs.tasks import ID_FIELDS, Dataset, Task

METRICS = ("exact", "f1")
MAX_QUESTION_LENGTH = 65_000
MAX_ANSWER_LENGTH = 10_000
MAX_PASSAGES = 10_000


def check_metric(metric: Any) -> None:
    """Raise ``EnvArgumentError`` unless a metric is known."""
    if metric not in METRICS:
        raise EnvArgumentError(f"metric must be one of {', '.join(METRICS)}, got {metric!r:.80}")


def check_whole(name: str, value: Any, least: int, most: int) -> None:
    """Raise ``EnvArgumentError`` unless an argument is a whole number in a range."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise EnvArgumentError(f"{name} must be in {least} to {most}, got {value!r:.80}")


def judge(task: Mapping[str, Any], action: str, metric: str) -> tuple[float, dict[str, Any]]:
    """Return the reward of an action that answers a task, and what info says of it.

    A last line without a box, a tag or an announcement is no answer here.
    """
    found = find_short_answer(action)
    is_answer = found is not None and found[1] != "last_line" and bool(found[0])
    output = f1_reward_fn(task, action) if is_answer else RewardOutput(0.0, False)
    outcome = output.metadata.get("outcome", "no_answer")
    f1 = float(output.metadata.get("f1", 0.0))
    reward = f1 if metric == "f1" else float(outcome == "correct")
    info = {
        "success": outcome == "correct",
        "invalid": not is_answer,
        "outcome": outcome,
        "f1": f1,
    }
    return reward, info


@lru_cache(maxsize=8)
def tasks_of(dataset: Dataset) -> tuple[Task, ...]:
    """Return the rows of a data set as tasks.

    Raises:
        DatasetError: A row has no question or no answer; the message names it.
    """
    tasks = []
    for number, row in enumerate(dataset, start=1):
        source = f"{dataset.name}, row {number}"
        try:
            tasks.append(checked_task(row) | {"source": source})
        except TaskError as error:
            raise DatasetError(f"{source}: {error}") from None
    return tuple(tasks)


def checked_task(row: Task) -> Task:
    """Return a row as a task: question, a list of answers, passages where there are some.

    Raises:
        TaskError: A field is missing or wrong; the message names it.
    """
    question = row.get("question")
    if not isinstance(question, str) or not question.strip():
        raise TaskError(f"'question' must be text, got {excerpt(question)}")
    if len(question) > MAX_QUESTION_LENGTH:
        raise TaskError(
            f"'question' has {len(question)} characters, more than {MAX_QUESTION_LENGTH}"
        )
    task: Task = {"question": question, "answer": _answers(row)}
    if row.get("passages") is not None:
        task["passages"] = _passages(row["passages"])
    return task | {name: row[name] for name in ID_FIELDS if row.get(name) is not None}


def _answers(row: Task) -> list[str]:
    field = next((name for name in REFERENCE_FIELDS if row.get(name) is not None), None)
    if field is None:
        raise TaskError(f"needs {' or '.join(REFERENCE_FIELDS)}, got the fields {sorted(row)}")
    value = row[field]
    items = list(value) if isinstance(value, list | tuple) else [value]
    is_whole = [isinstance(item, int) and not isinstance(item, bool) for item in items]
    texts = [str(item) if whole else item for item, whole in zip(items, is_whole, strict=True)]
    is_text = all(isinstance(t, str) and 0 < len(t.strip()) <= MAX_ANSWER_LENGTH for t in texts)
    if not texts or not is_text:
        raise TaskError(
            f"{field!r} must be a text of at most {MAX_ANSWER_LENGTH} characters or a list of "
            f"them, got {excerpt(value)}"
        )
    return texts


def _passages(value: Any) -> list[dict[str, str]]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_PASSAGES:
        raise TaskError(f"'passages' must be a list of 1 to {MAX_PASSAGES}, got {excerpt(value)}")
    for number, passage in enumerate(value):
        fields = passage if isinstance(passage, dict) else {}
        if not all(isinstance(fields.get(name), str) for name in ("title", "text")):
            raise TaskError(
                f"passages[{number}] must have the texts 'title' and 'text', got {excerpt(passage)}"
            )
    return [{"title": passage["title"], "text": passage["text"]} for passage in value]
