import re
from collections import Counter

import gymnasium
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.countdown import CountdownEnv
from rllm_envs.tools.calculator import evaluate

TASK = {"numbers": [3, 7, 25, 4], "target": 88}


def reward(task, answer):
    env = CountdownEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_states_the_rules():
    env = CountdownEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "Reach 88 with the numbers 3, 7, 25, 4. Use each number at most once, with + - * / and "
        r"parentheses. Give the expression in \boxed{}."
    )
    observation, _ = env.reset(options={"task": {**TASK, "use_all": True, "target": 95}})
    assert "exactly once" in observation


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("(25 - 3) * 4", 1.0), ("4 * 25 - 3 * 4", 0.0), ("25 * 4", 0.0), ("88", 0.0), ("", 0.0)],
)
def test_any_expression_of_the_given_numbers_counts(answer, expected):
    assert reward(TASK, answer) == expected


@pytest.mark.parametrize(
    ("env_id", "count", "most"),
    [("Countdown", 4, 50), ("CountdownHard", 6, 100), ("Game24", 4, 13)],
)
def test_every_drawn_task_is_solved_with_its_own_numbers(env_id, count, most):
    env = gymnasium.make(f"rllm/{env_id}-v0", split="all")
    for seed in range(40):
        env.reset(seed=seed)
        task = env.unwrapped.task
        assert len(task["numbers"]) == count
        assert all(1 <= number <= most for number in task["numbers"])
        assert task["target"] == 24 or env_id != "Game24"
        assert evaluate(task["answer"]) == task["target"]
        used = Counter(map(int, re.findall(r"\d+", task["answer"])))
        given = Counter(task["numbers"])
        assert used == given if env_id != "Countdown" else not used - given


def test_a_right_answer_of_a_given_task_is_taken_and_a_wrong_one_refused():
    # No whole-number way exists on the way over 8/3, so that only the given answer helps.
    task = {"numbers": [3, 3, 8, 8, 1], "target": 24, "use_all": True, "answer": "8/(3-8/3)*1"}
    env = CountdownEnv()
    env.reset(options={"task": task})
    assert env.oracle_action() == r"\boxed{8/(3-8/3)*1}"
    with pytest.raises(TaskError, match="is not right"):
        reward({**TASK, "answer": "25 * 4"}, "1")


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"target": 4}, "'numbers' must be a list of 1 to 6"),
        ({"numbers": [1, 0], "target": 4}, "integers from 1"),
        ({"numbers": [1, 2]}, "'target' must hold integers"),
        ({"numbers": [1, 1], "target": 9}, "no expression"),
        ({**TASK, "use_all": 1}, "'use_all' must be true or false"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        reward(task, "1")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"num_numbers": 7}, "num_numbers"),
        ({"max_number": 8}, "max_number"),
        ({"max_target": 10}, "max_target"),
        ({"target": 0}, "target"),
        ({"target": 24, "num_numbers": 5}, "a fixed target needs"),
        ({"use_all": 1}, "use_all"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        CountdownEnv(**arguments)
