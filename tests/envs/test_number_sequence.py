import itertools

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.number_sequence import RULES, NumberSequenceEnv


def start(terms):
    env = NumberSequenceEnv()
    return env, env.reset(options={"task": {"terms": terms}})[0]


@pytest.mark.parametrize(
    ("terms", "following"),
    [
        ([3, 7, 11, 15, 19, 23], 27),
        ([2, 6, 18, 54, 162, 486], 1458),
        ([5, -10, 20, -40, 80, -160], 320),
        ([1, 4, 9, 16, 25, 36], 49),
        ([1, 2, 3, 5, 8, 13], 21),
        ([1, 3, 7, 15, 31, 63], 127),
        ([1, 10, 2, 20, 3, 30], 4),
        ([1, 10, 2, 20, 3, 30, 4], 40),
    ],
)
def test_sequences_worked_by_hand(terms, following):
    env, observation = start(terms)
    assert observation.startswith(f"What number comes next: {', '.join(map(str, terms))}? ")
    assert env.oracle_action() == f"\\boxed{{{following}}}"
    assert env.step(f"\\boxed{{{following}}}")[1] == 1.0


@pytest.mark.parametrize("answer", ["28", "27.5", "", "x", "27, 31"])
def test_other_answers_earn_nothing(answer):
    env, _ = start([3, 7, 11, 15, 19, 23])
    assert env.step(f"\\boxed{{{answer}}}")[1] == 0.0


def _keeps(rule, t):
    """Whether terms keep a rule, by its defining property on all neighbours."""
    steps = [b - a for a, b in itertools.pairwise(t)]
    if rule == "arithmetic":
        return len(set(steps)) == 1
    if rule == "quadratic":
        return len({b - a for a, b in itertools.pairwise(steps)}) == 1
    if rule == "geometric":
        return all(t[n] * t[n - 2] == t[n - 1] ** 2 for n in range(2, len(t)))
    if rule == "additive":
        return all(t[n] == t[n - 1] + t[n - 2] for n in range(2, len(t)))
    if rule == "affine":
        return all(steps[n] * steps[n - 2] == steps[n - 1] ** 2 for n in range(2, len(steps)))
    return all(t[n] - t[n - 2] == t[n - 2] - t[n - 4] for n in range(4, len(t)))


@pytest.mark.parametrize("num_terms", [6, 10])
@pytest.mark.parametrize("rule", list(RULES))
def test_the_answer_continues_the_rule_that_was_drawn(rule, num_terms):
    env = NumberSequenceEnv(rules=[rule], num_terms=num_terms)
    for seed in range(15):
        env.reset(seed=seed)
        task = env.task
        assert len(task["terms"]) == num_terms
        assert max(map(abs, task["terms"])) < 10**6
        assert _keeps(rule, [*task["terms"], int(task["answer"])])


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "'terms' must be a list of 6 to 20"),
        ({"terms": [1, 2, 3]}, "'terms' must be a list of 6 to 20"),
        ({"terms": [1, 5, 2, 8, 1, 9]}, "has 0 continuations"),
        ({"terms": [2, 4, 6, 8, 10, 12], "answer": "15"}, "'14' is"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        NumberSequenceEnv().reset(options={"task": task})


@pytest.mark.parametrize("arguments", [{"rules": []}, {"rules": ["prime"]}, {"num_terms": 5}])
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        NumberSequenceEnv(**arguments)
