"""Multiple-choice benchmarks: rows with a question, some choices, and which of them is right.

Tasks are ``{"question": ..., "choices": [...], "answer": index from 0}``, and ``id`` where the row
has one.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from rllm_envs.datasets.benchmark import Benchmark, Row
from rllm_envs.datasets.fields import (
    answer_of,
    group_of,
    id_of,
    index_of,
    optional_text,
    text_of,
    texts_of,
    truth_of,
)
from rllm_envs.errors import DatasetError, excerpt
from rllm_envs.tasks import Task

MAX_CHOICES = 26
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def mmlu_task(row: Row) -> Task:
    """Return the task of a row whose answer is an index into ``choices``."""
    choices = _choices(row, "choices")
    return _task(text_of(row, "question"), choices, index_of(row, "answer", len(choices)), {})


def mmlu_pro_task(row: Row) -> Task:
    """Return the task of a row of MMLU-Pro, whose answer is a letter and an index."""
    choices = _choices(row, "options")
    index = _lettered(row, "answer", len(choices))
    if row.get("answer_index") is not None and index_of(row, "answer_index", len(choices)) != index:
        raise DatasetError(
            f"fields 'answer' and 'answer_index' disagree: {excerpt(row['answer'])} and "
            f"{excerpt(row['answer_index'])}"
        )
    return _task(text_of(row, "question"), choices, index, id_of(row, "question_id"))


def lettered_task(row: Row) -> Task:
    """Return the task of a row of options and the letter of the right one: RACE, SuperGPQA."""
    choices = _choices(row, "options")
    name = "answer_letter" if row.get("answer_letter") is not None else "answer"
    article = optional_text(row, "article")
    question = text_of(row, "question")
    question = f"{article}\n\nQuestion: {question}" if article else question
    # The ids of RACE name an article, which has several questions.
    return _task(question, choices, _lettered(row, name, len(choices)), id_of(row, "uuid"))


def gpqa_task(row: Row) -> Task:
    """Return the task of a row of GPQA."""
    fields = ("Correct Answer", *(f"Incorrect Answer {number}" for number in (1, 2, 3)))
    choices = [text_of(row, name).strip() for name in fields]
    return _mixed_task(text_of(row, "Question").strip(), choices, id_of(row, "Record ID"))


def labelled_task(row: Row) -> Task:
    """Return the task of a row of labelled choices: ARC, CommonsenseQA, OpenBookQA."""
    group = group_of(row, "choices")
    choices, labels = _choices(group, "text"), texts_of(group, "label")
    key = text_of(row, "answerKey")
    if len(labels) != len(choices) or key not in labels:
        raise DatasetError(f"field 'answerKey' must be one of {labels}, got {excerpt(key)}")
    question = text_of(row, "question", "question_stem")
    return _task(question, choices, labels.index(key), id_of(row, "id"))


def hellaswag_task(row: Row) -> Task:
    """Return the task of a row of HellaSwag: which ending continues the text."""
    choices = _choices(row, "endings")
    activity = optional_text(row, "activity_label")
    start = text_of(row, "ctx")
    text = f"{activity}: {start}" if activity else start
    index = index_of(row, "label", len(choices))
    return _task(f"Which ending continues the text best?\n\n{text}", choices, index, {})


def winogrande_task(row: Row) -> Task:
    """Return the task of a row of WinoGrande: what fills the blank."""
    choices = [text_of(row, "option1"), text_of(row, "option2")]
    index = index_of(row, "answer", 2, first=1)
    return _task(f"Which choice fills the blank?\n\n{text_of(row, 'sentence')}", choices, index, {})


def boolq_task(row: Row) -> Task:
    """Return the task of a row of BoolQ: a passage and a question of yes or no."""
    question = text_of(row, "question").strip()
    question = f"{text_of(row, 'passage')}\n\nQuestion: {question}?"
    return _task(question, ["yes", "no"], 0 if truth_of(row, "answer") else 1, {})


def truthfulqa_task(row: Row) -> Task:
    """Return the task of a row of TruthfulQA by ``mc1_targets``, of which one is right."""
    targets = group_of(row, "mc1_targets")
    choices = _choices(targets, "choices")
    labels = targets.get("labels")
    if (
        not isinstance(labels, Sequence)
        or len(labels) != len(choices)
        or list(labels).count(1) != 1
    ):
        raise DatasetError(f"field 'labels' must mark one choice by 1, got {excerpt(labels)}")
    return _task(text_of(row, "question"), choices, list(labels).index(1), {})


def sciq_task(row: Row) -> Task:
    """Return the task of a row of SciQ."""
    names = ("correct_answer", "distractor1", "distractor2", "distractor3")
    return _mixed_task(text_of(row, "question"), [answer_of(row, name) for name in names], {})


def medqa_task(row: Row) -> Task:
    """Return the task of a row of MedQA, whose options are under their letters."""
    options = group_of(row, "options")
    letters = sorted(options)
    key = text_of(row, "answer_idx")
    if key not in letters:
        raise DatasetError(f"field 'answer_idx' must be one of {letters}, got {excerpt(key)}")
    choices = [text_of(options, letter) for letter in letters]
    return _task(text_of(row, "question"), choices, letters.index(key), {})


def _choices(row: Row, name: str) -> list[str]:
    choices = texts_of(row, name, least=2)
    if len(choices) > MAX_CHOICES:
        raise DatasetError(f"field {name!r} has {len(choices)} choices, more than {MAX_CHOICES}")
    return choices


def _lettered(row: Row, name: str, count: int) -> int:
    letter = text_of(row, name).strip().upper()
    if len(letter) != 1 or letter not in _LETTERS[:count]:
        raise DatasetError(
            f"field {name!r} must be a letter of A to {_LETTERS[count - 1]}, got "
            f"{excerpt(row[name])}"
        )
    return _LETTERS.index(letter)


def _mixed_task(question: str, choices: list[str], row_id: dict[str, Any]) -> Task:
    """Return a task of choices of which the first is right, in an order of no meaning.

    It is that of the hashes of the texts, so that it is the same in every run.
    """
    hashes = [hashlib.sha256(f"{question}\n{choice}".encode()).digest() for choice in choices]
    order = sorted(range(len(choices)), key=hashes.__getitem__)
    return _task(question, [choices[i] for i in order], order.index(0), row_id)


def _task(question: str, choices: list[str], answer: int, row_id: dict[str, Any]) -> Task:
    return {"question": question, "choices": choices, "answer": answer} | row_id


def _mcq(name: str, hub_id: str, to_task: Any, splits: dict[str, str], **fields: Any) -> Benchmark:
    return Benchmark(
        name=name,
        hub_id=hub_id,
        splits=splits,
        env_id="rllm/MCQ-v0",
        to_task=to_task,
        reward="rllm_envs.choice_rewards:mcq_reward_fn",
        metric="accuracy",
        **fields,
    )


_TRAIN_TEST = {"train": "train", "test": "test"}
_TRAIN_VALIDATION = {"train": "train", "test": "validation"}
_ALL = {"train": "train", "validation": "validation", "test": "test"}


def _gpqa(subset: str, num_rows: int, *aliases: str) -> Benchmark:
    return _mcq(
        f"gpqa_{subset}",
        "Idavidrein/gpqa",
        gpqa_task,
        {"test": "train"},
        config=f"gpqa_{subset}",
        licence="cc-by-4.0",
        num_rows={"test": num_rows},
        aliases=aliases,
        is_gated=True,
    )


def _arc(name: str, config: str, num_rows: dict[str, int]) -> Benchmark:
    return _mcq(
        name,
        "allenai/ai2_arc",
        labelled_task,
        _ALL,
        config=config,
        licence="cc-by-sa-4.0",
        num_rows=num_rows,
    )


CHOICE_BENCHMARKS = (
    _mcq(
        "mmlu",
        "cais/mmlu",
        mmlu_task,
        {"train": "auxiliary_train", "validation": "validation", "test": "test"},
        config="all",
        licence="mit",
        num_rows={"train": 99842, "validation": 1531, "test": 14042},
    ),
    _mcq(
        "mmlu_pro",
        "TIGER-Lab/MMLU-Pro",
        mmlu_pro_task,
        {"validation": "validation", "test": "test"},
        licence="mit",
        num_rows={"validation": 70, "test": 12032},
    ),
    _gpqa("diamond", 198, "gpqa"),
    _gpqa("main", 448),
    _gpqa("extended", 546),
    _mcq(
        "supergpqa",
        "m-a-p/SuperGPQA",
        lettered_task,
        {"test": "train"},
        licence="odc-by",
        num_rows={"test": 26529},
    ),
    _arc("arc_challenge", "ARC-Challenge", {"train": 1119, "validation": 299, "test": 1172}),
    _arc("arc_easy", "ARC-Easy", {"train": 2251, "validation": 570, "test": 2376}),
    _mcq(
        "hellaswag",
        "Rowan/hellaswag",
        hellaswag_task,
        _TRAIN_VALIDATION,
        num_rows={"train": 39905, "test": 10042},
    ),
    _mcq(
        "winogrande",
        "allenai/winogrande",
        winogrande_task,
        _TRAIN_VALIDATION,
        config="winogrande_xl",
        num_rows={"train": 40398, "test": 1267},
    ),
    _mcq(
        "boolq",
        "google/boolq",
        boolq_task,
        _TRAIN_VALIDATION,
        licence="cc-by-sa-3.0",
        num_rows={"train": 9427, "test": 3270},
    ),
    _mcq(
        "commonsense_qa",
        "tau/commonsense_qa",
        labelled_task,
        _TRAIN_VALIDATION,
        licence="mit",
        num_rows={"train": 9741, "test": 1221},
        aliases=("commonsenseqa", "csqa"),
    ),
    _mcq(
        "openbookqa",
        "allenai/openbookqa",
        labelled_task,
        _ALL,
        config="main",
        num_rows={"train": 4957, "validation": 500, "test": 500},
        aliases=("openbook_qa", "obqa"),
    ),
    _mcq(
        "truthfulqa_mc",
        "truthfulqa/truthful_qa",
        truthfulqa_task,
        {"test": "validation"},
        config="multiple_choice",
        licence="apache-2.0",
        num_rows={"test": 817},
        aliases=("truthfulqa", "truthful_qa"),
    ),
    _mcq(
        "sciq",
        "allenai/sciq",
        sciq_task,
        _ALL,
        licence="cc-by-nc-3.0",
        num_rows={"train": 11679, "validation": 1000, "test": 1000},
    ),
    _mcq(
        "medqa",
        "GBaker/MedQA-USMLE-4-options",
        medqa_task,
        _TRAIN_TEST,
        licence="cc-by-4.0",
        num_rows={"train": 10178, "test": 1273},
    ),
    _mcq("race", "ehovy/race", lettered_task, _ALL, config="all"),
)
"""The multiple-choice benchmarks."""
