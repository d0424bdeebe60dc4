import subprocess
import sys

import numpy as np
import pytest

from rllm_envs import TaskError
from rllm_envs.reasoning.program_drawing import draw_program
from rllm_envs.reasoning.tiny_program import check_program, run_program, write_program

PROGRAM = [
    ["set", "a", 7],
    ["set", "b", ["-", "a", ["-", 3, 1]]],
    ["list", "xs", [4, 1]],
    ["append", "xs", ["*", ["+", "a", "b"], 2]],
    ["range", "i", ["len", "xs"], [["update", "a", "+", ["at", "xs", "i"]]]],
    ["if", ["<=", ["%", "a", 5], 1], [["update", "b", "//", 2]], [["set", "b", -1]]],
    ["each", "x", "xs", [["if", ["!=", "x", 1], [["update", "b", "-", "x"]], []]]],
    ["set", "c", ["//", ["-", 0, ["sum", "xs"]], 4]],
    ["print", ["a", "b", "c", "xs"]],
]


def test_a_program_is_written_as_python():
    assert write_program(PROGRAM) == (
        "a = 7\nb = a - (3 - 1)\nxs = [4, 1]\nxs.append((a + b) * 2)\n"
        "for i in range(len(xs)):\n    a += xs[i]\n"
        "if a % 5 <= 1:\n    b //= 2\nelse:\n    b = -1\n"
        "for x in xs:\n    if x != 1:\n        b -= x\n"
        "c = (0 - sum(xs)) // 4\nprint(a, b, c, xs)"
    )


def test_a_program_prints_what_was_worked_out_by_hand():
    # b = 5; xs = [4, 1, 24]; a = 7 + 29 = 36; 36 % 5 = 1, so b = 2; b = 2 - 4 - 24 = -26;
    # c = -29 // 4 = -8.
    assert run_program(PROGRAM) == "36 -26 -8 [4, 1, 24]"


def test_python_prints_the_same_for_many_random_programs(tmp_path):
    # The programs are the interpreter's own, so Python itself may run them.
    programs = [draw_program(np.random.default_rng(seed), 1 + seed % 12) for seed in range(200)]
    source = "\n".join(map(write_program, [*programs, PROGRAM]))
    path = tmp_path / "programs.py"
    path.write_text(source, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [run_program(program) for program in [*programs, PROGRAM]]


def test_parentheses_are_written_just_where_they_matter():
    for expression, text in [
        (["+", ["+", 1, 2], 3], "1 + 2 + 3"),
        (["+", 1, ["+", 2, 3]], "1 + (2 + 3)"),
        (["*", ["+", 1, 2], 3], "(1 + 2) * 3"),
        (["+", ["*", 1, 2], 3], "1 * 2 + 3"),
        (["%", 7, ["*", 2, 2]], "7 % (2 * 2)"),
        (["at", "xs", ["+", "i", 1]], "xs[i + 1]"),
    ]:
        assert write_program([["set", "a", expression]]) == f"a = {text}"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ([["print", ["a"]]], "uses a before"),
        ([["set", "a", ["//", 1, 0]]], "divides by zero"),
        ([["list", "xs", [1]], ["set", "a", ["at", "xs", 1]]], r"xs\[1\] is outside"),
        ([["list", "xs", [1]], ["set", "a", ["at", "xs", -1]]], r"xs\[-1\] is outside"),
        ([["set", "a", 10**9], ["update", "a", "*", "a"]], "exceeds"),
        ([["range", "i", 10**9, [["set", "a", 1]]]], "runs 1000000000 times"),
        (
            [["range", "i", 100, [["range", "j", 100, [["set", "a", 1]]]]]],
            "more than 2000 statements",
        ),
        ([["list", "xs", [1]], ["each", "x", "xs", [["append", "xs", 1]]]], "changes xs"),
        ([["set", "a", ["len", "xs"]]], "uses xs before"),
    ],
)
def test_programs_that_fail_are_refused(program, reason):
    check_program(program)
    with pytest.raises(TaskError, match=reason):
        run_program(program)


def _nested(depth):
    program = [["set", "a", 1]]
    for _ in range(depth):
        program = [["range", "i", 1, program]]
    return program


@pytest.mark.parametrize(
    "program",
    [
        None,
        [],
        ["set a 1"],
        [["set", "a"]],
        [["set", "os", 1]],
        [["set", "a", "import"]],
        [["set", "a", True]],
        [["set", "a", 1.5]],
        [["set", "a", ["**", 9, 9]]],
        [["set", "a", [["+"], 1, 2]]],
        [["update", "a", "**", 2]],
        [["print", []]],
        [["each", "x", "a", [["set", "a", 1]]]],
        [["range", "i", 3, []]],
        [["if", ["in", 1, 2], [["set", "a", 1]], []]],
        [["list", "xs", ["a"]]],
        [["while", "a", []]],
        _nested(9),
        [["set", "a", 1]] * 61,
    ],
)
def test_what_is_no_program_is_refused(program):
    with pytest.raises(TaskError):
        check_program(program)
