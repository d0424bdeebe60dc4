import pytest

from rllm_envs import TaskError
from rllm_envs.choice_rewards import find_choice, mcq_reward_fn

CITIES = ["Berlin", "Paris", "Rome", "A small town"]
NUMBERS = ["-3", "3", "3.5", "x + 1"]


@pytest.mark.parametrize(
    ("response", "method"),
    [
        (r"\boxed{B}", "boxed"),
        (r"\boxed{b}", "boxed"),
        (r"\boxed{(B)}", "boxed"),
        (r"\boxed{\text{B}}", "boxed"),
        (r"\boxed{\textbf{(B)}}", "boxed"),
        (r"\boxed{ B. }", "boxed"),
        (r"\boxed{B) Paris}", "boxed"),
        (r"\boxed{B: paris.}", "boxed"),
        (r"\boxed{Option B}", "boxed"),
        (r"\boxed{Paris}", "boxed"),
        (r"\boxed{paris}", "boxed"),
        (r"First I thought \boxed{A}, but \boxed{B}", "boxed"),
        (r"<think>\boxed{A}</think> \boxed{B}", "boxed"),
        ("<answer>B</answer>", "tagged"),
        ("<answer> (b) </answer> Done.", "tagged"),
        ("The answer is B", "announced"),
        ("The answer is (B).", "announced"),
        ("The correct answer is **B**", "announced"),
        ("Answer: B) Paris", "announced"),
        ("**Answer:** B", "announced"),
        ("Answer: Paris", "announced"),
        ("The answer is B because Paris is in France.", "announced"),
        ("The correct choice is option B, as is known.", "announced"),
        ("Not A.\nB", "last_line"),
        ("I thought about it.\n\n**B) Paris**", "last_line"),
        ("Well.\nParis.", "last_line"),
    ],
)
def test_a_choice_is_found_in_many_spellings(response, method):
    assert find_choice(response, CITIES) == (1, method)


@pytest.mark.parametrize(
    "response",
    [
        "",
        "   ",
        "A cat sat on B.",
        "I do not know.",
        "b",
        r"\boxed{}",
        r"\boxed{E}",
        r"\boxed{AB}",
        r"\boxed{A, B}",
        r"\boxed{A or B}",
        r"\boxed{B) Rome}",
        r"\boxed{B",
        r"<think>\boxed{B}",
        "<answer>A and B</answer>",
        "The answer is A city in France",
        "The answer is not clear",
        "The answer is B or C",
        "The answer is Bologna",
        "The answer is B) Rome",
        "Answer:",
        "A and B are both fine",
        "Berlin or Paris",
    ],
)
def test_what_is_no_clear_choice_is_none(response):
    assert find_choice(response, CITIES) is None


def test_the_article_counts_as_a_letter_only_where_it_is_one():
    assert find_choice("The answer is A.", CITIES) == (0, "announced")
    assert find_choice("The answer is A because of that", CITIES) == (0, "announced")
    assert find_choice("The answer is a small town", CITIES) == (3, "announced")
    assert find_choice("The answer is A small town", CITIES) == (3, "announced")


def test_numbers_and_expressions_are_told_apart_by_their_signs():
    assert find_choice(r"\boxed{-3}", NUMBERS) == (0, "boxed")
    assert find_choice(r"\boxed{3}", NUMBERS) == (1, "boxed")
    assert find_choice(r"\boxed{3.5}", NUMBERS) == (2, "boxed")
    assert find_choice(r"\boxed{x+1}", NUMBERS) == (3, "boxed")
    assert find_choice(r"\boxed{35}", NUMBERS) is None


def test_a_choice_that_is_there_twice_is_chosen_by_its_letter_only():
    assert find_choice(r"\boxed{same}", ["same", "Same", "other"]) is None
    assert find_choice(r"\boxed{B}", ["same", "Same", "other"]) == (1, "boxed")


@pytest.mark.parametrize("answer", [1, "B", "b"])
def test_the_reward_is_one_for_the_right_choice(answer):
    task = {"question": "?", "choices": CITIES, "answer": answer}
    output = mcq_reward_fn(task, r"\boxed{B}")
    assert (output.reward, output.is_correct) == (1.0, True)
    assert output.metadata == {"outcome": "correct", "answer": "B", "method": "boxed"}
    assert mcq_reward_fn(task, r"\boxed{C}").metadata["outcome"] == "wrong"
    assert mcq_reward_fn(task, "hm").metadata["outcome"] == "no_answer"
    assert mcq_reward_fn(task, None).reward == 0.0


@pytest.mark.parametrize(
    ("task", "field"),
    [
        ({"answer": 0}, "choices"),
        ({"choices": ["a"], "answer": 0}, "choices"),
        ({"choices": ["a", ""], "answer": 0}, "choices"),
        ({"choices": "ab", "answer": 0}, "choices"),
        ({"choices": ["a", "b"]}, "answer"),
        ({"choices": ["a", "b"], "answer": 2}, "answer"),
        ({"choices": ["a", "b"], "answer": True}, "answer"),
        ({"choices": ["a", "b"], "answer": "C"}, "answer"),
    ],
)
def test_a_task_that_cannot_be_graded_is_refused(task, field):
    with pytest.raises(TaskError, match=f"'{field}'"):
        mcq_reward_fn(task, r"\boxed{A}")
