from collections import Counter
from itertools import product

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.syllogism import FORMS, SyllogismEnv, follows, is_consistent

TASK = {
    "terms": ["cats", "pets", "fish"],
    "premises": [["all", 0, 1], ["no", 1, 2]],
    "conclusions": [["no", 0, 2], ["some", 0, 1], ["all", 1, 0], ["no", 2, 0]],
}


def reward(task, answer):
    env = SyllogismEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_question_and_its_answer():
    env = SyllogismEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "Premises:\nAll cats are pets.\nNo pets are fish.\nConclusions:\n1. No cats are fish.\n"
        "2. Some cats are pets.\n3. All pets are cats.\n4. No fish are cats.\n"
        'Which conclusions follow ("some" means at least one, and there may be none of a kind '
        r"unless the premises say otherwise)? Give their numbers in \boxed{}, separated by commas, "
        r"or \boxed{none}."
    )
    # There may be no cats, so the second does not follow.
    assert env.oracle_action() == r"\boxed{1, 4}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *[("1, 4", 1.0), ("4,1", 1.0), (r"\{1, 4\}", 1.0), ("1 4", 1.0)],
        *[("1", 0.0), ("none", 0.0), ("1, 2, 4", 0.0), ("", 0.0), ("all", 0.0)],
    ],
)
def test_exactly_the_numbers_that_follow_are_right(answer, expected):
    assert reward(TASK, answer) == expected


def test_none_is_right_where_nothing_follows():
    task = {**TASK, "conclusions": [["some", 0, 1], ["all", 1, 0]]}
    assert reward(task, "none") == 1.0
    assert reward(task, r"\text{None}") == 1.0
    assert reward(task, "1") == 0.0
    assert reward(task, "") == 0.0


def _is_true(statement, things):
    form, a, b = statement
    those = [thing for thing in things if thing[a]]
    return {
        "all": all(thing[b] for thing in those),
        "no": not any(thing[b] for thing in those),
        "some": any(thing[b] for thing in those),
        "some_not": any(not thing[b] for thing in those),
    }[form]


KINDS = list(product([False, True], repeat=3))
MODELS = [[kind for kind, is_there in zip(KINDS, flags, strict=True) if is_there]
          for flags in product([False, True], repeat=8)]  # fmt: skip
STATEMENTS = [[form, a, b] for form in FORMS for a in range(3) for b in range(3) if a != b]


def test_all_pairs_of_premises_agree_with_all_models_of_three_groups():
    truths = {tuple(s): [_is_true(s, model) for model in MODELS] for s in STATEMENTS}
    for first in STATEMENTS:
        for second in STATEMENTS[::5]:
            in_force = [a and b for a, b in zip(truths[tuple(first)], truths[tuple(second)],
                                                strict=True)]  # fmt: skip
            premises = [first, second]
            assert is_consistent(premises, 3) == any(in_force)
            if not any(in_force):
                continue
            for conclusion in STATEMENTS:
                expected = all(
                    t for t, holds in zip(truths[tuple(conclusion)], in_force, strict=True) if holds
                )
                assert follows(conclusion, premises, 3) == expected


@pytest.mark.parametrize(
    ("premises", "conclusion"),
    [
        ([["all", 0, 1], ["all", 1, 2]], ["all", 0, 2]),
        ([["no", 1, 2], ["all", 0, 1]], ["no", 0, 2]),
        ([["all", 1, 2], ["some", 0, 1]], ["some", 0, 2]),
        ([["no", 1, 2], ["some", 0, 1]], ["some_not", 0, 2]),
    ],
)
def test_the_four_perfect_syllogisms_follow(premises, conclusion):
    assert follows(conclusion, premises, 3)


def test_drawn_tasks_have_new_conclusions_and_varied_answers():
    answers = Counter()
    env = SyllogismEnv()
    for seed in range(80):
        env.reset(seed=seed)
        task = env.task
        assert len(task["premises"]) == 3
        assert len(task["conclusions"]) == 5
        assert not [c for c in task["conclusions"] if c in task["premises"]]
        answers[task["answer"]] += 1
    assert answers.most_common(1)[0][1] <= 24


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"terms": ["cats"]}, "'terms' must be a list of 2 to 6"),
        ({"premises": [["all", 0, 0]]}, "'premises' must hold"),
        ({"conclusions": [["most", 0, 1]]}, "'conclusions' must hold"),
        ({"conclusions": [["all", 0, 3]]}, "'conclusions' must hold"),
        ({"premises": [["no", 0, 1], ["some", 0, 1]]}, "contradict"),
        ({"answer": "1"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_terms must be an integer from 3 to 6, got 2"):
        SyllogismEnv(num_terms=2)
