import json

import gymnasium
import pytest

from rllm_envs import (
    DatasetError,
    DatasetNotFoundError,
    DatasetRegistry,
    EnvArgumentError,
    ReferenceAnswerError,
    TaskError,
)
from rllm_envs.grading import symbolic
from rllm_envs.reasoning.math_problem import MathEnv


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_HOME", str(tmp_path / "home"))


@pytest.fixture
def rows(tmp_path):
    pytest.importorskip("math_verify", reason="data sets are graded with math-verify")

    def write(*rows):
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return str(path)

    return write


def test_a_generated_problem_is_graded_by_value_without_waiting():
    env = MathEnv()
    env.reset(seed=0)
    assert env.blocking is False
    value = env.task["answer"]
    _, reward, terminated, _, info = env.step(f"So \\boxed{{{value}}}")
    assert (reward, terminated, info["outcome"], info["success"]) == (1.0, True, "correct", True)
    env.reset(seed=0)
    _, reward, _, _, info = env.step(r"\boxed{no}")
    assert (reward, info["outcome"], info["invalid"]) == (0.0, "wrong", False)
    env.reset(seed=0)
    *_, info = env.step("no box")
    assert (info["outcome"], info["invalid"]) == ("no_answer", True)


def test_generated_questions_end_with_the_instruction_and_families_can_be_chosen():
    env = gymnasium.make("rllm/Math-v0", families=["percentage"])
    for seed in range(5):
        observation, _ = env.reset(seed=seed)
        assert observation.startswith("What is ")
        assert observation.endswith(r"? Give the answer in \boxed{}.")
        assert "%" in observation


@pytest.mark.parametrize("families", [["algebra"], [], "percentage", [3]])
def test_unknown_families_are_refused_with_what_exists(families):
    with pytest.raises(EnvArgumentError, match="linear_equation, fraction_sum"):
        MathEnv(families=families)


def test_a_generated_task_played_again_is_graded_alike():
    env = MathEnv()
    env.reset(seed=1)
    task = env.task
    env.reset(options={"task": task})
    assert env.task == task
    assert not env.may_block(task)
    assert env.step(env.oracle_action())[1] == 1.0


@pytest.mark.parametrize(
    ("row", "right", "wrong"),
    [
        ({"question": "2 + 2?", "answer": "4"}, "4", "5"),
        ({"problem": "2 + 2?", "solution": "It is\n#### 4"}, "4.0", "3"),
        ({"prompt": "2 + 2?", "ground_truth": 4}, r"\frac{8}{2}", "44"),
        ({"question": "Root?", "answer": r"\sqrt{8}"}, r"2\sqrt{2}", r"\sqrt{2}"),
        ({"question": "Root?", "solution": r"so \boxed{\sqrt{8}}"}, r"2\sqrt{2}", "8"),
        ({"question": "One of?", "answer": ["1", "2"]}, "2", "3"),
    ],
)
def test_rows_in_all_spellings_are_played_and_graded(rows, row, right, wrong):
    env = gymnasium.make("rllm/Math-v0", dataset=rows(row))
    assert env.unwrapped.blocking is True
    for answer, expected in ((right, 1.0), (wrong, 0.0)):
        observation, _ = env.reset(seed=0)
        assert observation.endswith(r" Give the answer in \boxed{}.")
        assert env.step(f"\\boxed{{{answer}}}")[1] == expected
    env.reset(seed=0)
    assert env.step(env.unwrapped.oracle_action())[1] == 1.0


def test_a_question_that_asks_for_a_box_is_shown_as_it_is(rows):
    question = r"Put 1 + 1 in \boxed{}."
    env = gymnasium.make("rllm/Math-v0", dataset=rows({"question": question, "answer": "2"}))
    assert env.reset(seed=0)[0] == question


def test_a_row_is_also_played_as_a_given_task():
    pytest.importorskip("math_verify", reason="data sets are graded with math-verify")
    env = MathEnv()
    row = {"problem": "Find x.", "answer": r"\frac{1}{2}", "unique_id": "a/1.json", "level": 5}
    observation, _ = env.reset(options={"task": row})
    assert observation == r"Find x. Give the answer in \boxed{}."
    assert env.task == {"question": "Find x.", "answer": r"\frac{1}{2}", "unique_id": "a/1.json"}
    assert env.may_block(row)
    assert env.step(r"\boxed{0.5}")[1] == 1.0


def test_registered_data_sets_are_used_by_name_and_split(rows):
    path = rows({"question": "train?", "answer": "1"})
    DatasetRegistry.register_dataset("mine", path, split="train")
    DatasetRegistry.register_dataset("mine", [{"question": "test?", "answer": "1"}], split="test")
    assert "train?" in MathEnv(dataset="mine").reset(seed=0)[0]
    assert "test?" in MathEnv(dataset="mine", split="test").reset(seed=0)[0]


def test_an_unknown_data_set_lists_what_exists(rows):
    DatasetRegistry.register_dataset("mine", rows({"question": "?", "answer": "1"}))
    with pytest.raises(DatasetNotFoundError, match="'gsm'; registered: mine"):
        MathEnv(dataset="gsm")
    with pytest.raises(DatasetNotFoundError, match="no such file"):
        MathEnv(dataset="no/such/file.jsonl")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "?", "answer": "1"}, "row 2: needs one of the fields question, problem, prompt"),
        ({"question": "?"}, "row 2: needs one of the fields ground_truth, answer, solution"),
        ({"question": 3, "answer": "1"}, "row 2: the question must be text, got 3"),
        ({"question": " ", "answer": "1"}, "row 2: the question must be text"),
        ({"question": "?", "answer": True}, "row 2: 'answer' must be text or a number, got True"),
        ({"question": "x" * 65_001, "answer": "1"}, "row 2: the question has 65001 characters"),
    ],
)
def test_a_row_that_is_no_problem_is_named_with_its_number(rows, row, reason):
    path = rows({"question": "?", "answer": "1"}, row)
    with pytest.raises(DatasetError, match=reason) as caught:
        MathEnv(dataset=path)
    assert len(str(caught.value)) < 400


def test_a_reference_that_nobody_can_read_is_an_error_at_reset_not_a_zero(rows):
    env = MathEnv(dataset=rows({"question": "?", "answer": r"\frac{1}{ ++ ** }"}))
    with pytest.raises(ReferenceAnswerError, match=r"rows\.jsonl, row 1: .*cannot be read"):
        env.reset(seed=0)


def test_given_tasks_are_checked():
    with pytest.raises(TaskError, match="question, problem, prompt"):
        MathEnv().reset(options={"task": {"answer": "1"}})


def test_families_and_a_data_set_exclude_each_other(rows):
    path = rows({"question": "?", "answer": "1"})
    with pytest.raises(EnvArgumentError, match="not both"):
        MathEnv(dataset=path, families=["mean"])


def test_without_math_verify_a_data_set_is_refused_with_the_command_that_helps(tmp_path):
    from rllm_envs import MissingDependencyError

    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "?", "answer": "1"}\n')
    found = symbolic._has_math_verify
    symbolic._has_math_verify = lambda: False
    try:
        with pytest.raises(MissingDependencyError, match=r'pip install "rllm-envs\[math\]"'):
            MathEnv(dataset=path)
        env = MathEnv()
        env.reset(seed=0)
        assert env.step(env.oracle_action())[1] == 1.0
    finally:
        symbolic._has_math_verify = found


def test_an_answer_too_large_to_compare_is_reported_as_unverifiable(rows):
    env = MathEnv(dataset=rows({"question": "?", "answer": "1"}))
    _, info = env.reset(seed=0)
    assert (info["outcome"], info["unverifiable"]) == ("", False)
    _, reward, _, _, info = env.step(r"\boxed{9^{9^{9}}}")
    assert (reward, info["outcome"], info["unverifiable"]) == (0.0, "unverifiable", True)
    env.reset(seed=0)
    *_, info = env.step(r"\boxed{2}")
    assert (info["outcome"], info["unverifiable"]) == ("wrong", False)


def test_making_many_environments_over_one_file_reads_it_once(rows):
    path = rows(*({"question": f"{n}?", "answer": "1"} for n in range(50)))
    assert MathEnv(dataset=path)._tasks is MathEnv(dataset=path)._tasks
