import pytest

from rllm_envs import DatasetError
from rllm_envs.datasets.mathematics import (
    boxed_solution_task,
    gsm8k_task,
    numina_task,
    olympiad_task,
    problem_and_answer,
    prompt_and_solution,
    svamp_task,
)


def test_a_worked_solution_of_gsm8k_becomes_its_number():
    row = {"question": "How many?", "answer": "2 + 3 = <<2+3=5>>5 apples\n#### 1,005"}
    assert gsm8k_task(row) == {"question": "How many?", "answer": "1,005"}


@pytest.mark.parametrize("answer", ["5", "5\n####", "5\n####  ", "", None, 5])
def test_a_row_of_gsm8k_without_a_final_number_is_refused(answer):
    with pytest.raises(DatasetError, match="'answer'"):
        gsm8k_task({"question": "How many?", "answer": answer})


def test_rows_of_math500_and_aime_keep_their_ids():
    row = {"problem": "Find $x$.", "solution": "...", "answer": "\\frac{1}{2}",
           "subject": "Algebra", "level": 2, "unique_id": "test/algebra/1.json"}  # fmt: skip
    assert problem_and_answer(row) == {
        "question": "Find $x$.", "answer": "\\frac{1}{2}", "id": "test/algebra/1.json",
    }  # fmt: skip
    row = {"id": 60, "problem": "Find $n$.", "solution": "...", "answer": "025", "year": "2024"}
    assert problem_and_answer(row)["answer"] == "025"
    assert problem_and_answer(row)["id"] == "60"


@pytest.mark.parametrize(
    ("answer", "text"), [(142.0, "142"), (7, "7"), (0.5, "0.5"), (1e21, "1000000000000000000000")]
)
def test_answers_that_are_numbers_become_text(answer, text):
    assert problem_and_answer({"problem": "?", "answer": answer})["answer"] == text


@pytest.mark.parametrize("answer", [True, [], {}, float("nan"), float("inf"), " ", "x" * 10_001])
def test_answers_of_another_kind_are_refused(answer):
    with pytest.raises(DatasetError, match="'answer'"):
        problem_and_answer({"problem": "?", "answer": answer})


def test_a_question_that_is_missing_blank_or_too_long_is_refused():
    with pytest.raises(DatasetError, match=r"'problem' or 'question'.*\['answer'\]"):
        problem_and_answer({"answer": "1"})
    with pytest.raises(DatasetError, match="'problem' must be text"):
        problem_and_answer({"problem": "  ", "answer": "1"})
    with pytest.raises(DatasetError, match="65001 characters"):
        problem_and_answer({"problem": "x" * 65_001, "answer": "1"})


def test_the_answer_of_math_is_the_last_box_of_its_solution():
    row = {"problem": "?", "level": "Level 1", "type": "Algebra",
           "solution": "First $\\boxed{1}$, so $\\boxed{\\frac{3}{4}}$."}  # fmt: skip
    assert boxed_solution_task(row) == {"question": "?", "answer": "\\frac{3}{4}"}
    assert boxed_solution_task(row | {"solution": "As was to be shown."}) is None


@pytest.mark.parametrize(
    ("answer", "is_kept"),
    [("12", True), ("proof", False), ("notfound", False), ("", False), (None, False)],
)
def test_proofs_of_numina_are_left_out(answer, is_kept):
    row = {"problem": "?", "solution": "...", "answer": answer, "problem_type": "Algebra"}
    assert (numina_task(row) is not None) == is_kept


def test_olympiad_problems_have_a_context_and_dollars():
    row = {"id": 1606, "question": "Find $T$.", "solution": ["..."], "final_answer": ["$4$", "$9$"],
           "context": "Let $T$ be as above.", "is_multiple_answer": True}  # fmt: skip
    assert olympiad_task(row) == {
        "question": "Let $T$ be as above.\nFind $T$.", "answer": "4, 9", "id": "1606",
    }  # fmt: skip
    assert olympiad_task(row | {"final_answer": None}) is None
    with pytest.raises(DatasetError, match="final_answer"):
        olympiad_task(row | {"final_answer": [4]})


def test_the_parts_of_svamp_are_joined_and_dapo_has_bare_solutions():
    row = {"ID": "chal-1", "Body": "Ann has 3 pens", "Question": "How many pens?", "Answer": 3.0,
           "Equation": "3", "Type": "Addition"}  # fmt: skip
    assert svamp_task(row) == {
        "question": "Ann has 3 pens. How many pens?", "answer": "3", "id": "chal-1",
    }  # fmt: skip
    assert prompt_and_solution({"prompt": "?", "solution": "34", "ability": "MATH"}) == {
        "question": "?", "answer": "34",
    }  # fmt: skip
