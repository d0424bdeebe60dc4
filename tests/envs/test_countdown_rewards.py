import pytest

from rllm_envs import RewardOutput, TaskError, countdown_reward_fn

ROW = {"numbers": [3, 7, 25, 4], "target": 88}


def outcome(answer, row=ROW):
    return countdown_reward_fn(row, f"\\boxed{{{answer}}}").metadata["outcome"]


def test_a_right_expression_earns_one():
    output = countdown_reward_fn(ROW, r"<think>hm</think> \boxed{(25 - 3) * 4}")
    assert output == RewardOutput(1.0, True, {"outcome": "correct", "answer": "(25 - 3) * 4"})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("4*(25-3)", "correct"),
        ("(25 - 3) * 4 = 88", "correct"),
        (r"(25 - 3) \times 4", "correct"),
        (r"\left(25 - 3\right) \cdot 4", "correct"),
        (r"\frac{25 - 3}{1/4}", "wrong_numbers"),
        (r"4 + 7 \cdot 3 * 4", "wrong_numbers"),
        ("25 * 4 - 3", "wrong"),
        ("88", "wrong_numbers"),
        ("22 * 4", "wrong_numbers"),
        ("(25 - 3) * 4 = 89", "unreadable"),
        ("25 ** 3", "unreadable"),
        ("25 // 3", "unreadable"),
        ("25^3", "unreadable"),
        ("2.5", "unreadable"),
        ("25 / (3 - 3)", "unreadable"),
        ("__import__('os')", "unreadable"),
        ("(" * 300, "unreadable"),
        ("1" * 1000, "unreadable"),
        ("", "unreadable"),
    ],
)
def test_outcomes(answer, expected):
    assert outcome(answer) == expected


def test_fractions_on_the_way_are_exact():
    # 8 / (3 - 8/3) = 8 / (1/3) = 24
    row = {"nums": [3, 3, 8, 8], "target": 24}
    assert outcome("8 / (3 - 8 / 3)", row) == "correct"
    assert outcome(r"\frac{8}{3 - 8/3}", row) == "correct"


def test_use_all_demands_every_number():
    row = {"numbers": [2, 3, 4], "target": 6, "use_all": True}
    assert outcome("2 * 3", row) == "wrong_numbers"
    assert outcome("2 * 3", {**row, "use_all": False}) == "correct"
    assert outcome("(4 - 2) * 3", row) == "correct"


@pytest.mark.parametrize("action", ["(25 - 3) * 4", "", None, r"<think>\boxed{(25 - 3) * 4}"])
def test_without_a_box_there_is_no_answer(action):
    assert countdown_reward_fn(ROW, action).metadata == {"outcome": "no_answer", "answer": None}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"target": 1}, "'numbers' must be a list"),
        ({"numbers": [], "target": 1}, "'numbers' must be a list"),
        ({"numbers": [1, "2"], "target": 1}, "'numbers' must be a list"),
        ({"numbers": [1, -2], "target": 1}, "at least 0"),
        ({"numbers": [1, 2], "target": "3"}, "'target' must be an integer"),
    ],
)
def test_rows_without_numbers_or_target_are_errors(row, reason):
    with pytest.raises(TaskError, match=reason):
        countdown_reward_fn(row, r"\boxed{1}")
