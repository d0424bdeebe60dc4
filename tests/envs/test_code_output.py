import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.code_output import CodeOutputEnv

TASK = {
    "program": [
        ["set", "a", 3],
        ["list", "xs", [5, 8]],
        ["each", "x", "xs", [["update", "a", "+", "x"]]],
        ["print", ["a", "xs"]],
    ]
}


def reward(task, answer):
    env = CodeOutputEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_shows_the_program():
    env = CodeOutputEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "What does this Python program print?\n\n"
        "a = 3\nxs = [5, 8]\nfor x in xs:\n    a += x\nprint(a, xs)\n\n"
        r"Give the printed text in \boxed{}."
    )
    assert env.oracle_action() == r"\boxed{16 [5, 8]}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("16 [5, 8]", 1.0),
        ("16 [5,8]", 1.0),
        (r"\texttt{16 [5, 8]}", 1.0),
        ("`16 [5, 8]`", 1.0),
        ("16, [5, 8]", 0.0),
        ("16 5 8", 0.0),
        ("16", 0.0),
        ("1 6 [5, 8]", 0.0),
        ("", 0.0),
    ],
)
def test_the_printed_text_must_be_right_spaces_aside(answer, expected):
    assert reward(TASK, answer) == expected


@pytest.mark.parametrize("num_blocks", [1, 3, 12])
def test_drawn_programs_have_their_size_and_print_small_numbers(num_blocks):
    env = CodeOutputEnv(num_blocks=num_blocks)
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        program = env.task["program"]
        assert len(program) == 3 + 1 + num_blocks + 1
        assert observation.count("print(") == 1
        numbers = env.task["answer"].replace("[", "").replace("]", "").replace(",", "").split()
        assert max(abs(int(number)) for number in numbers) <= 9999
        assert env.task["answer"] not in observation


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "'program' must be a list of statements"),
        ({"program": [["print", ["a"]]]}, "uses a before"),
        ({"program": [["set", "a", 1]]}, "prints nothing"),
        ({**TASK, "answer": "3 [5, 8]"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        reward(task, "1")


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_blocks must be an integer from 1 to 12, got 0"):
        CodeOutputEnv(num_blocks=0)
