import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from rllm_envs import EnvArgumentError, check_text_env
from rllm_envs.reasoning.math_problem import MathEnv
from rllm_envs.reasoning.math_retry import MathRetryEnv


def test_it_keeps_the_contracts():
    check_text_env(gymnasium.make("rllm/MathRetry-v0"))
    check_env(gymnasium.make("rllm/MathRetry-v0").unwrapped, skip_render_check=True)


def test_the_problems_are_those_of_math_for_the_same_seed():
    one, other = MathEnv(), MathRetryEnv()
    assert [one.reset(seed=s)[0] for s in range(5)] == [other.reset(seed=s)[0] for s in range(5)]


def test_a_wrong_answer_may_be_corrected_and_the_feedback_does_not_give_it_away():
    env = MathRetryEnv()
    env.reset(seed=0)
    answer = env.task["answer"]
    observation, reward, terminated, truncated, info = env.step(r"\boxed{123456789}")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert observation == "Your answer is not right. Try again; you have 2 attempts left."
    assert (info["outcome"], info["invalid"], info["turns_left"]) == ("wrong", False, 2)
    observation, *_, info = env.step("hmm")
    assert observation == "There is no answer in \\boxed{}. Try again; you have 1 attempt left."
    assert info["invalid"] is True
    observation, reward, terminated, truncated, info = env.step(f"\\boxed{{{answer}}}")
    assert (observation, reward, terminated, truncated) == ("", 1.0, True, False)
    assert info["success"] is True


def test_the_last_wrong_answer_ends_the_episode_with_nothing():
    env = MathRetryEnv(max_turns=2)
    env.reset(seed=0)
    env.step("no")
    _, reward, terminated, truncated, info = env.step("no")
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)


@pytest.mark.parametrize("max_turns", [1, 0, True, 2.0])
def test_fewer_than_two_attempts_are_refused(max_turns):
    with pytest.raises(EnvArgumentError, match="max_turns must be an integer of at least 2"):
        MathRetryEnv(max_turns=max_turns)
