import pytest

from rllm_envs import DatasetError
from rllm_envs.datasets.choices import (
    boolq_task,
    gpqa_task,
    hellaswag_task,
    labelled_task,
    lettered_task,
    medqa_task,
    mmlu_pro_task,
    mmlu_task,
    sciq_task,
    truthfulqa_task,
    winogrande_task,
)

ROWS = {
    "mmlu": (
        mmlu_task,
        {"question": "?", "subject": "s", "choices": ["p", "q", "r", "s"], "answer": 2},
        "r",
    ),
    "mmlu_pro": (
        mmlu_pro_task,
        {"question_id": 70, "question": "?", "options": ["p", "q", "r"], "answer": "B",
         "answer_index": 1, "cot_content": "", "category": "law", "src": "x"},
        "q",
    ),
    "race": (
        lettered_task,
        {"example_id": "high1.txt", "article": "Long ago.", "question": "?", "answer": "D",
         "options": ["p", "q", "r", "s"]},
        "s",
    ),
    "supergpqa": (
        lettered_task,
        {"uuid": "a1", "question": "?", "options": ["p", "q"], "answer": "p", "answer_letter": "A"},
        "p",
    ),
    "gpqa": (
        gpqa_task,
        {"Question": "?", "Correct Answer": "p\n", "Incorrect Answer 1": "q",
         "Incorrect Answer 2": "r", "Incorrect Answer 3": "s", "Record ID": "rec1"},
        "p",
    ),
    "arc": (
        labelled_task,
        {"id": "M_1", "question": "?", "answerKey": "4",
         "choices": {"text": ["p", "q", "r", "s"], "label": ["1", "2", "3", "4"]}},
        "s",
    ),
    "openbookqa": (
        labelled_task,
        {"id": "7-1", "question_stem": "?", "answerKey": "B",
         "choices": {"text": ["p", "q"], "label": ["A", "B"]}},
        "q",
    ),
    "hellaswag": (
        hellaswag_task,
        {"ind": 4, "activity_label": "Roof", "ctx_a": "A man", "ctx_b": "he", "ctx": "A man he",
         "endings": ["p", "q", "r", "s"], "label": "3"},
        "s",
    ),
    "winogrande": (
        winogrande_task,
        {"sentence": "Ann thanked Eve, as _ had helped.", "option1": "Ann", "option2": "Eve",
         "answer": "2"},
        "Eve",
    ),
    "boolq": (boolq_task, {"question": "is it so", "answer": False, "passage": "It is not."}, "no"),
    "truthfulqa": (
        truthfulqa_task,
        {"question": "?", "mc1_targets": {"choices": ["p", "q", "r"], "labels": [0, 1, 0]},
         "mc2_targets": {"choices": ["p"], "labels": [1]}},
        "q",
    ),
    "sciq": (
        sciq_task,
        {"question": "?", "distractor1": "q", "distractor2": "r", "distractor3": "s",
         "correct_answer": "p", "support": ""},
        "p",
    ),
    "medqa": (
        medqa_task,
        {"question": "?", "answer": "r", "options": {"A": "p", "B": "q", "C": "r", "D": "s"},
         "meta_info": "step1", "answer_idx": "C"},
        "r",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_the_answer_points_at_the_right_choice(name):
    to_task, row, right = ROWS[name]
    task = to_task(row)
    assert task["choices"][task["answer"]] == right
    assert task["question"]
    assert set(task) <= {"question", "choices", "answer", "id"}


def test_passages_and_blanks_are_part_of_the_question():
    assert boolq_task(ROWS["boolq"][1])["question"] == "It is not.\n\nQuestion: is it so?"
    assert lettered_task(ROWS["race"][1])["question"] == "Long ago.\n\nQuestion: ?"
    assert hellaswag_task(ROWS["hellaswag"][1])["question"].endswith("\n\nRoof: A man he")
    assert winogrande_task(ROWS["winogrande"][1])["question"].endswith("as _ had helped.")


def test_ids_name_one_row_each():
    assert mmlu_pro_task(ROWS["mmlu_pro"][1])["id"] == "70"
    assert lettered_task(ROWS["supergpqa"][1])["id"] == "a1"
    assert "id" not in lettered_task(ROWS["race"][1])


@pytest.mark.parametrize(
    ("name", "change", "field"),
    [
        ("mmlu", {"answer": 4}, "answer"),
        ("mmlu", {"answer": -1}, "answer"),
        ("mmlu", {"answer": True}, "answer"),
        ("mmlu", {"answer": None}, "answer"),
        ("mmlu", {"choices": ["p"]}, "choices"),
        ("mmlu", {"choices": ["p", ""]}, "choices"),
        ("mmlu", {"choices": "pq"}, "choices"),
        ("mmlu", {"choices": [str(n) for n in range(27)]}, "choices"),
        ("mmlu_pro", {"answer": "D"}, "answer"),
        ("mmlu_pro", {"answer_index": 0}, "answer_index"),
        ("race", {"answer": "AB"}, "answer"),
        ("gpqa", {"Incorrect Answer 3": None}, "Incorrect Answer 3"),
        ("arc", {"answerKey": "E"}, "answerKey"),
        ("arc", {"choices": ["p", "q"]}, "choices"),
        ("hellaswag", {"label": ""}, "label"),
        ("winogrande", {"answer": "0"}, "answer"),
        ("boolq", {"answer": 1}, "answer"),
        ("truthfulqa", {"mc1_targets": {"choices": ["p", "q"], "labels": [1, 1]}}, "labels"),
        ("medqa", {"answer_idx": "E"}, "answer_idx"),
    ],
)
def test_a_wrong_field_is_named(name, change, field):
    to_task, row, _ = ROWS[name]
    with pytest.raises(DatasetError, match=f"'{field}'"):
        to_task(row | change)


def test_a_csv_row_has_its_lists_and_numbers_as_text():
    row = {"question": "?", "choices": '["p", "q"]', "answer": "1"}
    assert mmlu_task(row)["choices"] == ["p", "q"]
    assert mmlu_task(row)["answer"] == 1
    assert boolq_task({"question": "x", "answer": "True", "passage": "y"})["answer"] == 0
