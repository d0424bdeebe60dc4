import json
import time

import pytest

from rllm_envs import TaskError, f1_reward_fn, search_reward_fn
from rllm_envs.search_rewards import find_short_answer


@pytest.mark.parametrize(
    ("response", "found"),
    [
        (r"I think \boxed{A} or \boxed{B}", ("B", "boxed")),
        ("<answer> Paris </answer> I am sure", ("Paris", "tagged")),
        ("So the answer is **Paris**.\nBye", ("Paris", "announced")),
        ("the answer is Rome, no, the answer is Paris", ("Paris", "announced")),
        ("The answer isn't far.\nParis", ("Paris", "last_line")),
        ("Answer:\n\nParis", ("Paris", "last_line")),
        ("<answer>Rome</answer> <ANSWER>a <answer>Paris</Answer>", ("Paris", "tagged")),
        ("</answer>Paris<answer>", ("</answer>Paris<answer>", "last_line")),
        ("Some thoughts.\n\nParis.\n", ("Paris", "last_line")),
        ("<think>the answer is Rome</think>Paris", ("Paris", "last_line")),
        ("<think>the answer is Rome", None),
        ("", None),
    ],
)
def test_the_answer_is_found_where_it_most_clearly_stands(response, found):
    assert find_short_answer(response) == found


def test_an_exact_match_earns_one_and_a_near_one_its_f1():
    task = {"question": "?", "answer": ["Chief of Protocol", "protocol chief"]}
    exact = search_reward_fn(task, "<answer>the chief of protocol</answer>")
    assert (exact.reward, exact.is_correct, exact.metadata["outcome"]) == (1.0, True, "correct")
    # Best over references: 2 of 3 words in common with 2: p = 2/3, r = 1, F1 = 0.8.
    near = search_reward_fn(task, "<answer>the chief protocol officer</answer>")
    assert near.reward == pytest.approx(0.8)
    assert (near.is_correct, near.metadata["outcome"]) == (True, "partial")


def test_below_the_threshold_nothing_is_earned_save_with_plain_f1():
    task = {"ground_truth": "Paris"}
    action = "it was probably somewhere around Paris I guess"  # 1 of 8 words: F1 = 2/9
    assert search_reward_fn(task, action).reward == 0.0
    assert search_reward_fn(task, action).is_correct is False
    assert f1_reward_fn(task, action).reward == pytest.approx(2 / 9)


def test_yes_and_no_are_right_as_a_whole_or_not_at_all():
    assert search_reward_fn({"answer": "yes"}, r"\boxed{Yes}").reward == 1.0
    for action in (r"\boxed{no}", r"\boxed{yes and no}"):
        assert search_reward_fn({"answer": "yes"}, action).reward == 0.0
        assert f1_reward_fn({"answer": "yes"}, action).reward == 0.0


def test_no_answer_earns_nothing_and_says_so():
    output = search_reward_fn({"answer": "Paris"}, "<think>")
    assert (output.reward, output.metadata["outcome"]) == (0.0, "no_answer")
    assert search_reward_fn({"answer": "Paris"}, None).reward == 0.0  # type: ignore[arg-type]


@pytest.mark.parametrize("task", [{}, {"answer": ""}, {"answer": 3}, {"answer": []}])
def test_a_task_without_a_reference_in_words_is_an_error(task):
    with pytest.raises(TaskError):
        search_reward_fn(task, "Paris")


def test_a_hostile_response_is_judged_quickly():
    started = time.perf_counter()
    for text in ("answer is ", "answer is\n", "<answer>", "</answer>", "answer ", "\\boxed{", "{"):
        assert search_reward_fn({"answer": "Paris"}, text * 200_000).is_correct is False
    # Each is a fraction of a second; trying every opening tag anew takes several.
    assert time.perf_counter() - started < 5


def test_every_real_reference_is_right_for_itself(data_dir):
    rows = [json.loads(line) for line in (data_dir / "hotpotqa" / "dev.jsonl").open()]
    wrong = [r for r in rows if search_reward_fn(r, f"<answer>{r['answer']}</answer>").reward != 1]
    assert len(rows) == 7405 and not wrong
