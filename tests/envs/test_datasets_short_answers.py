import pytest

from rllm_envs import DatasetError
from rllm_envs.datasets.short_answers import (
    hotpotqa_task,
    question_and_answers,
    squad_task,
    triviaqa_task,
)

HOTPOT = {
    "id": "5a7",
    "question": "Were they of the same nationality? ",
    "answer": "yes",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": {"title": ["Ann"], "sent_id": [0]},
    "context": {"title": ["Ann", "Eve"], "sentences": [["Ann is ", "Dutch."], ["Eve is Dutch."]]},
}
TRIVIA = {
    "question": "Where?",
    "question_id": "tc_1",
    "question_source": "x",
    "answer": {"value": "Ulm", "aliases": ["Ulm", "Ulm (Donau)"], "normalized_aliases": ["ulm"]},
}


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ({"question": "q", "answer": ["14 December 1972", "1972"]}, ["14 December 1972", "1972"]),
        ({"query": "q", "answers": ["p"], "query_id": "1", "subqueries": []}, ["p"]),
        ({"question": "q", "possible_answers": '["politician", "pol"]'}, ["politician", "pol"]),
        ({"problem": "q", "answer": "Ulm", "metadata": "{}"}, ["Ulm"]),
        ({"question": "q", "golden_answers": ["p"]}, ["p"]),
        ({"question": "q", "answer": 1972}, ["1972"]),
    ],
)
def test_answers_are_a_list_of_equally_right_ones(row, answers):
    task = question_and_answers(row)
    assert (task["question"], task["answer"]) == ("q", answers)


def test_hotpotqa_brings_its_passages_where_the_row_has_them():
    task = hotpotqa_task(HOTPOT)
    assert task["passages"] == [
        {"title": "Ann", "text": "Ann is Dutch."},
        {"title": "Eve", "text": "Eve is Dutch."},
    ]
    assert (task["question"], task["answer"], task["id"]) == (
        "Were they of the same nationality?", ["yes"], "5a7",
    )  # fmt: skip
    assert "passages" not in hotpotqa_task({"question": "q", "answer": "no"})


def test_triviaqa_has_aliases_and_squad_its_passage():
    assert triviaqa_task(TRIVIA)["answer"] == ["Ulm", "Ulm (Donau)"]
    assert triviaqa_task(TRIVIA)["id"] == "tc_1"
    row = {"id": "56", "title": "t", "context": "Ann lives in Ulm.", "question": "Where?",
           "answers": {"text": ["Ulm", "Ulm", "in Ulm"], "answer_start": [1, 1, 2]}}  # fmt: skip
    assert squad_task(row) == {
        "question": "Ann lives in Ulm.\n\nQuestion: Where?", "answer": ["Ulm", "in Ulm"],
        "id": "56",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("to_task", "row", "field"),
    [
        (question_and_answers, {"question": "q"}, "answer"),
        (question_and_answers, {"question": "q", "answer": []}, "answer"),
        (question_and_answers, {"question": "q", "answer": [""]}, "answer"),
        (question_and_answers, {"question": "", "answer": "a"}, "question"),
        (question_and_answers, {"question": "q", "answer": "a", "id": 1.5}, "id"),
        (hotpotqa_task, HOTPOT | {"context": []}, "context"),
        (hotpotqa_task, HOTPOT | {"context": {"title": ["a"], "sentences": []}}, "sentences"),
        (triviaqa_task, TRIVIA | {"answer": {"value": "", "aliases": []}}, "value"),
        (triviaqa_task, TRIVIA | {"answer": "Ulm"}, "answer"),
    ],
)
def test_a_wrong_field_is_named(to_task, row, field):
    with pytest.raises(DatasetError, match=f"'{field}'"):
        to_task(row)
