import pytest

from rllm_envs import RewardOutput, TaskError, math_reward_fn
from rllm_envs.rewards import references_of


def test_a_right_answer_earns_one_and_says_how():
    output = math_reward_fn({"answer": "42"}, r"I think \boxed{42}")
    assert output == RewardOutput(
        1.0,
        True,
        {"outcome": "correct", "method": "text", "answer": "42", "detail": ""},
    )


@pytest.mark.parametrize(
    "response",
    [
        "The answer is not 42.",
        "42",
        r"\boxed{42} no, \boxed{41}",
        r"<think>\boxed{42}</think> \boxed{41}",
        r"<think>\boxed{42}",
        r"\boxed{42" + "}" * 0,
        "\\boxed{42}" * 99 + "\\boxed{7}",
        "",
    ],
)
def test_what_is_not_the_last_box_after_the_thoughts_earns_nothing(response):
    assert math_reward_fn({"answer": "42"}, response).reward == 0.0


def test_the_last_box_counts_even_after_a_wrong_one():
    assert math_reward_fn({"answer": "42"}, r"\boxed{41} wait \boxed{42}").is_correct


@pytest.mark.parametrize(
    ("task", "references"),
    [
        ({"answer": "42"}, ("42",)),
        ({"answer": 42}, ("42",)),
        ({"answer": 0.5}, ("0.5",)),
        ({"answer": 1e-7}, ("0.0000001",)),
        ({"answer": "16 - 3 = <<16-3=13>>13\n#### 1,300"}, ("1,300",)),
        ({"answer": r"so $x$ is \boxed{\frac{1}{2}}"}, (r"\frac{1}{2}",)),
        ({"ground_truth": ["1", r"\boxed{2}"], "answer": "worked solution"}, ("1", "2")),
        ({"ground_truth": None, "answer": "3"}, ("3",)),
    ],
)
def test_references_are_found_in_all_their_forms(task, references):
    assert references_of(task) == references


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"question": "1 + 1"}, r"needs 'answer' or 'ground_truth', got the fields \['question'\]"),
        ({"answer": True}, "must be text or a number, got True"),
        ({"answer": {"x": 1}}, "must be text or a number"),
        ({"answer": float("nan")}, "finite"),
        ({"answer": []}, "empty list"),
    ],
)
def test_a_task_without_a_usable_reference_is_an_error_not_a_zero(task, reason):
    with pytest.raises(TaskError, match=reason):
        math_reward_fn(task, r"\boxed{42}")


def test_an_action_that_is_no_text_is_no_answer():
    assert math_reward_fn({"answer": "42"}, None).metadata["outcome"] == "no_answer"
