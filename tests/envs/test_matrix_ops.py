import json

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.matrix_ops import KINDS, MatrixOpsEnv, read_matrix

PRODUCT = {"kind": "product", "a": [[1, 2], [3, 4]], "b": [[0, 1], [1, 0]]}


def reward(task, answer):
    env = MatrixOpsEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_shows_the_matrices():
    env = MatrixOpsEnv()
    assert env.reset(options={"task": PRODUCT})[0] == (
        "A = [[1, 2], [3, 4]]\nB = [[0, 1], [1, 0]]\n"
        "These are matrices, given as lists of rows. Compute the matrix product A B. Give the list "
        r"of its rows in \boxed{}."
    )
    # Swapping columns.
    assert env.oracle_action() == r"\boxed{[[2, 1], [4, 3]]}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("[[2, 1], [4, 3]]", 1.0),
        ("[[2,1],[4,3]]", 1.0),
        (r"\begin{pmatrix} 2 & 1 \\ 4 & 3 \end{pmatrix}", 1.0),
        (r"\begin{bmatrix}2&1\\4&3\\\end{bmatrix}", 1.0),
        ("[2, 1], [4, 3]", 1.0),
        ("[[2, 1], [4, 2]]", 0.0),
        ("[[2, 1]]", 0.0),
        ("[[2, 1, 4, 3]]", 0.0),
        ("[[2, 1], [4, x]]", 0.0),
        ("[[2, 1], [4, 3]] or so", 0.0),
        ("[[2, 1], [4, 3.0]]", 0.0),
        ("", 0.0),
    ],
)
def test_a_matrix_may_be_a_list_of_rows_or_latex(answer, expected):
    assert reward(PRODUCT, answer) == expected


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_agree_with_numpy(kind, size):
    env = MatrixOpsEnv(kinds=[kind], size=size)
    for seed in range(12):
        env.reset(seed=seed)
        task = env.task
        a, b = np.array(task["a"]), np.array(task.get("b", []))
        if kind == "determinant":
            assert int(task["answer"]) == round(np.linalg.det(a))
            continue
        if kind == "sum":
            expected = a + b
        elif kind == "product":
            expected = a @ b
        else:
            expected = a.T if kind == "transpose" else np.linalg.matrix_power(a, 3)
        assert json.loads(task["answer"]) == expected.tolist()
        assert set(a.shape) <= {size, max(2, size - 1)}


@pytest.mark.parametrize(
    ("matrix", "determinant"),
    [
        ([[5]], "5"),
        ([[0, 1], [1, 0]], "-1"),
        ([[1, 2], [2, 4]], "0"),
        ([[0, 0, 2], [0, 3, 1], [4, 1, 1]], "-24"),
        ([[2, 0, 1], [1, 3, 2], [1, 1, 1]], "0"),
    ],
)
def test_determinants_worked_by_hand(matrix, determinant):
    assert reward({"kind": "determinant", "a": matrix}, determinant) == 1.0


def test_text_that_is_no_matrix_is_not_read():
    assert read_matrix("[[1, 2], [3, 4]") == [[1, 2], [3, 4]]
    assert read_matrix("hello") is None
    assert read_matrix("[" * 3000) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "trace"}, "'kind' must be one of"),
        ({"a": [[1, 2], [3]]}, "'a' must be a list of 2 to 2"),
        ({"a": [[1] * 7]}, "7 columns, more than 6"),
        ({"a": [1, 2]}, "'a' must be a list of 1 to 1"),
        ({"b": [[1, 2]]}, "'b' must have 2 rows"),
        ({"kind": "sum", "b": [[1, 2]]}, "'b' must have the shape"),
        ({"kind": "power", "a": [[1, 2]]}, "'a' must be square"),
        ({"answer": "[[1, 2], [3, 4]]"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**PRODUCT, **changes}, "1")


@pytest.mark.parametrize("arguments", [{"kinds": ["x"]}, {"size": 7}, {"max_entry": 0}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        MatrixOpsEnv(**arguments)
