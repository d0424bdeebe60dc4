"""Grading over the real data sets, with the references as the answers."""

import json

import gymnasium
import pytest

from rllm_envs import Dataset, math_reward_fn
from rllm_envs.grading.math_grader import read_reference
from rllm_envs.rewards import references_of


@pytest.mark.parametrize(
    ("name", "num_rows"),
    [
        ("gsm8k/test.jsonl", 1319),
        ("gsm8k/train.jsonl", 7473),
        ("aime2024/test.jsonl", 30),
        ("math500/test.jsonl", 500),
    ],
)
def test_every_reference_is_readable_and_correct_as_an_answer(name, num_rows, data_dir):
    if "math500" in name:
        pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")
    rows = Dataset.from_file(data_dir / name)
    assert len(rows) == num_rows
    for row in rows:
        [reference] = references_of(row)
        assert read_reference(reference)
        assert math_reward_fn(row, f"\\boxed{{{reference}}}").reward == 1.0
        assert math_reward_fn(row, r"\boxed{-123456.789}").reward == 0.0


@pytest.mark.parametrize("name", ["gsm8k/test.jsonl", "math500/test.jsonl"])
def test_the_env_plays_rows_of_the_file_and_its_oracle_is_right(name, data_dir):
    pytest.importorskip("math_verify", reason="data sets are graded with math-verify")
    env = gymnasium.make("rllm/Math-v0", dataset=str(data_dir / name))
    for seed in range(50):
        env.reset(seed=seed)
        assert env.step(env.unwrapped.oracle_action())[1] == 1.0


def test_equal_values_in_other_spellings_are_right(data_dir):
    pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")
    with (data_dir / "math500/test.jsonl").open() as file:
        answers = {row["unique_id"]: row["answer"] for row in map(json.loads, file)}
    # Each reference of the file as another person would write it.
    respelt = {
        r"\frac{14}{3}": "14/3",
        "11\\sqrt2": r"11\sqrt{2}",
        r"\frac{\sqrt{3}}{3}": r"\frac{1}{\sqrt{3}}",
        "(3,4]": r"\left(3, 4\right]",
        "10,\\!080": "10080",
        "\\$18.90": "18.9",
        "1 \\pm \\sqrt{19}": r"1-\sqrt{19}, 1+\sqrt{19}",
        "(a+5)(b+2)": "ab + 2a + 5b + 10",
    }
    for reference, answer in respelt.items():
        assert reference in answers.values()
        assert math_reward_fn({"answer": reference}, f"\\boxed{{{answer}}}").reward == 1.0


def test_references_of_gsm8k_are_right_in_other_spellings_and_wrong_when_changed(data_dir):
    for row in Dataset.from_file(data_dir / "gsm8k/test.jsonl"):
        [reference] = references_of(row)
        value = int(reference.replace(",", ""))
        right = [value, f"{value:,}", f"{value}.0", f"\\frac{{{2 * value}}}{{2}}", f"\\${value}",
                 f"x = {value}", f"{value} dollars", f"{value}\\text{{ hours}}"]  # fmt: skip
        wrong = [value + 1, 10 * value + 1, -value - 1, f"{value}.5", f"{value} \\text{{ or }} 1",
                 f"{value} = {value + 1}", f"{value}, {value}", f"{value} million"]  # fmt: skip
        for answers, reward in ((right, 1.0), (wrong, 0.0)):
            for answer in answers:
                output = math_reward_fn(row, f"\\boxed{{{answer}}}")
                assert output.reward == reward, (reference, answer, output)
