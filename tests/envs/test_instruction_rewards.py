import pytest

from rllm_envs import TaskError
from rllm_envs.instruction_rewards import ifeval_reward_fn

TASK = {
    "question": "Write in lower case without commas.",
    "instruction_id_list": ["punctuation:no_comma", "change_case:english_lowercase"],
    "kwargs": [{"num_words": None}, {}],
}


def test_all_instructions_have_to_be_followed():
    output = ifeval_reward_fn(TASK, "this is it.")
    assert (output.reward, output.is_correct) == (1.0, True)
    assert output.metadata["followed"] == [True, True]
    output = ifeval_reward_fn(TASK, "This is it.")
    assert (output.reward, output.is_correct) == (0.0, False)
    assert output.metadata["followed"] == [True, False]
    assert output.metadata["share"] == 0.5


def test_thoughts_are_no_response():
    assert ifeval_reward_fn(TASK, "<think>A, B</think>this is it.").reward == 1.0
    assert ifeval_reward_fn(TASK, "<think>this is it.</think>").reward == 0.0


def test_what_a_model_puts_around_a_response_is_forgiven_loosely_only():
    output = ifeval_reward_fn(TASK, "Sure, here it is:\nthis is it.")
    assert output.metadata["followed"] == [False, False]
    assert output.metadata["followed_loosely"] == [True, True]
    quoted = {"instruction_id_list": ["startend:quotation"], "kwargs": [{}]}
    output = ifeval_reward_fn(quoted, '**"so"**')
    assert (output.reward, output.metadata["followed_loosely"]) == (0.0, [True])


@pytest.mark.parametrize("action", ["", None, "x" * 200_001])
def test_no_response_follows_nothing(action):
    assert ifeval_reward_fn(TASK, action).metadata["followed"] == [False, False]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({}, "instruction_id_list"),
        ({"instruction_id_list": []}, "instruction_id_list"),
        ({"instruction_id_list": "a:b", "kwargs": []}, "instruction_id_list"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": []}, "kwargs"),
        ({"instruction_id_list": ["punctuation:no_comma"], "kwargs": [3]}, "object"),
        ({"instruction_id_list": ["a:b"], "kwargs": [{}]}, "a:b"),
    ],
)
def test_a_task_that_cannot_be_graded_is_refused(task, message):
    with pytest.raises(TaskError, match=message):
        ifeval_reward_fn(task, "a")
