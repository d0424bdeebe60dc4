import pytest

from rllm_envs import EnvArgumentError
from rllm_envs.tool_use.calculator import HINT, CalculatorEnv

TASK = {"task": {"expression": "47 * 83"}}


def start(**arguments):
    env = CalculatorEnv(**arguments)
    return env, env.reset(options=TASK)[0]


def test_the_question_shows_the_call_with_an_example_that_is_not_the_task():
    env, observation = start()
    assert observation == (
        "What is 47 * 83? You may write <calc>2 * 3</calc> to use a calculator. "
        r"Give the answer in \boxed{}."
    )
    assert env.max_turns == 3


def test_a_call_is_answered_and_then_the_answer_ends_the_episode():
    env, _ = start()
    observation, reward, terminated, truncated, info = env.step("<calc>47 * 83</calc>")
    assert observation == "Result: 3901"
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["tool_call"], info["invalid"], info["turns_left"]) == (True, False, 2)
    _, reward, terminated, truncated, info = env.step(r"\boxed{3901}")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)


def test_a_box_ends_the_episode_and_the_tool_is_not_run():
    env, _ = start()
    observation, reward, terminated, _, info = env.step(r"<calc>47 * 83</calc> \boxed{3902}")
    assert (observation, reward, terminated, info["tool_call"]) == ("", 0.0, True, False)


@pytest.mark.parametrize(
    ("call", "observation"),
    [
        ("1 / 3", "Result: 0.3333333333"),
        ("1 / 0", "Error: division by zero"),
        ("two", "Error: cannot read 'two'"),
        ("", "Error: the expression is incomplete"),
        ("9^9^9", "Error: an exponent must be a whole number of at most 256"),
    ],
)
def test_calls_are_answered_with_a_result_or_an_error(call, observation):
    env, _ = start()
    shown, _, terminated, _, info = env.step(f"<calc>{call}</calc>")
    assert shown == observation
    assert not terminated
    assert info["tool_call"] is True


@pytest.mark.parametrize(
    "action", ["", "3901", "<calc>47", r"\boxed{3901", "<think><calc>1</calc>"]
)
def test_anything_else_gets_a_hint_and_costs_a_turn(action):
    env, _ = start()
    observation, reward, terminated, truncated, info = env.step(action)
    assert (observation, reward, terminated, truncated) == (HINT, 0.0, False, False)
    assert (info["invalid"], info["turns_left"]) == (True, 2)


def test_the_episode_is_truncated_when_the_turns_are_spent():
    env, _ = start(max_turns=2)
    env.step("<calc>1</calc>")
    observation, reward, terminated, truncated, _ = env.step("<calc>2</calc>")
    assert (observation, reward, terminated, truncated) == ("Result: 2", 0.0, False, True)


def test_a_single_turn_is_terminated_and_the_oracle_then_answers_at_once():
    env, _ = start(max_turns=1)
    assert env.oracle_action() == r"\boxed{3901}"
    assert env.step("hm")[2:4] == (True, False)


def test_the_oracle_calls_once_and_then_answers():
    env, _ = start()
    assert env.oracle_action() == "<calc>47 * 83</calc>"
    env.step(env.oracle_action())
    assert env.oracle_action() == r"\boxed{3901}"
    env.reset(options=TASK)
    assert env.oracle_action() == "<calc>47 * 83</calc>"


def test_the_default_task_is_a_product_of_two_two_digit_numbers():
    env = CalculatorEnv()
    for seed in range(20):
        env.reset(seed=seed)
        first, second = env.task["expression"].split(" * ")
        assert 10 <= int(first) <= 99
        assert 10 <= int(second) <= 99
        assert env.task["answer"] == str(int(first) * int(second))


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="max_turns"):
        CalculatorEnv(max_turns=0)
    with pytest.raises(EnvArgumentError, match="digits"):
        CalculatorEnv(digits=10)
