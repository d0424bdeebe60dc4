"""Benchmarks of questions with a short answer in words, for reading and for searching.

Tasks are ``{"question": ..., "answer": [...]}``, where any of the answers is right, ``id`` where
the row has one, and ``passages`` (``[{"title": ..., "text": ...}, ...]``) where the row brings what
is to be searched.
"""

from typing import Any

from rllm_envs.datasets.benchmark import Benchmark, Row
from rllm_envs.datasets.fields import (
    MAX_ANSWER_LENGTH,
    answer_of,
    group_of,
    id_of,
    listed,
    text_of,
    texts_of,
)
from rllm_envs.errors import DatasetError, excerpt
from rllm_envs.tasks import Task

_IDS = ("id", "_id", "question_id", "query_id")
_QUESTIONS = ("question", "query", "problem")


def question_and_answers(row: Row) -> Task:
    """Return the task of a row with a question and one answer or a list of them."""
    for name in ("answers", "golden_answers", "answer", "possible_answers"):
        if row.get(name) is not None:
            is_list = isinstance(listed(row[name]), list)
            answers = _short(texts_of(row, name)) if is_list else [answer_of(row, name)]
            return _task(row, answers)
    raise DatasetError(f"field 'answer' or 'answers' is missing; the row has {sorted(row)}")


def hotpotqa_task(row: Row) -> Task:
    """Return the task of a row of HotpotQA, with its passages where the row has some."""
    task = question_and_answers(row)
    if row.get("context") is None:
        return task
    context = group_of(row, "context")
    titles, sentences = texts_of(context, "title"), listed(context.get("sentences"))
    if not isinstance(sentences, list) or len(sentences) != len(titles):
        raise DatasetError(
            f"field 'sentences' must have {len(titles)} lists, got {excerpt(sentences)}"
        )
    texts = ["".join(texts_of({"sentences": part}, "sentences")).strip() for part in sentences]
    pairs = zip(titles, texts, strict=True)
    return task | {"passages": [{"title": title, "text": text} for title, text in pairs]}


def triviaqa_task(row: Row) -> Task:
    """Return the task of a row of TriviaQA, whose answer has aliases."""
    answer = group_of(row, "answer")
    value = answer_of(answer, "value")
    aliases = _short(texts_of(answer, "aliases", least=0)) if answer.get("aliases") else []
    return _task(row, list(dict.fromkeys([value, *aliases])))


def squad_task(row: Row) -> Task:
    """Return the task of a row of SQuAD: a passage and a question about it."""
    answers = list(dict.fromkeys(_short(texts_of(group_of(row, "answers"), "text"))))
    task = _task(row, answers)
    return task | {"question": f"{text_of(row, 'context')}\n\nQuestion: {task['question']}"}


def _task(row: Row, answers: list[str]) -> Task:
    return {"question": text_of(row, *_QUESTIONS).strip(), "answer": answers} | id_of(row, *_IDS)


def _short(answers: list[str]) -> list[str]:
    for answer in answers:
        if len(answer) > MAX_ANSWER_LENGTH:
            raise DatasetError(f"an answer is longer than {MAX_ANSWER_LENGTH}: {excerpt(answer)}")
    return answers


_TRAIN_VALIDATION = {"train": "train", "test": "validation"}


def _qa(name: str, hub_id: str, to_task: Any = question_and_answers, **fields: Any) -> Benchmark:
    given = {"env_id": "rllm/SearchQA-v0", "splits": _TRAIN_VALIDATION} | fields
    return Benchmark(
        name=name,
        hub_id=hub_id,
        to_task=to_task,
        reward="rllm_envs.search_rewards:search_reward_fn",
        metric="exact match and F1",
        **given,
    )


def _multi_hop(name: str, train: int | None, test: int, **fields: Any) -> Benchmark:
    sizes = {"test": test} | ({} if train is None else {"train": train})
    given = {"splits": {"test": "test"}} if train is None else {}
    return _qa(
        name, "corag/multihopqa", config=name, licence="apache-2.0", num_rows=sizes,
        **given | fields,
    )  # fmt: skip


SHORT_ANSWER_BENCHMARKS = (
    _qa(
        "hotpotqa",
        "hotpotqa/hotpot_qa",
        hotpotqa_task,
        config="distractor",
        licence="cc-by-sa-4.0",
        num_rows={"train": 90447, "test": 7405},
        aliases=("hotpot_qa", "hotpot"),
    ),
    _qa(
        "nq_open",
        "google-research-datasets/nq_open",
        licence="cc-by-sa-3.0",
        num_rows={"train": 87925, "test": 3610},
        aliases=("nq", "natural_questions"),
    ),
    _qa(
        "triviaqa",
        "mandarjoshi/trivia_qa",
        triviaqa_task,
        config="rc.nocontext",
        num_rows={"train": 138384, "test": 17944},
        aliases=("trivia_qa",),
    ),
    _multi_hop("2wikimultihopqa", 15000, 12576, aliases=("2wiki", "2wikimultihop")),
    _multi_hop("musique", 19938, 2417),
    _multi_hop("bamboogle", None, 125),
    _qa(
        "popqa",
        "akariasai/PopQA",
        splits={"test": "test"},
        num_rows={"test": 14267},
        aliases=("pop_qa",),
    ),
    _qa(
        "simpleqa",
        "basicv8vc/SimpleQA",
        splits={"test": "test"},
        env_id="rllm/QA-v0",
        licence="mit",
        num_rows={"test": 4326},
        aliases=("simple_qa",),
    ),
    _qa(
        "squad",
        "rajpurkar/squad",
        squad_task,
        env_id="rllm/QA-v0",
        licence="cc-by-sa-4.0",
        num_rows={"train": 87599, "test": 10570},
    ),
)
"""The benchmarks of short answers."""
