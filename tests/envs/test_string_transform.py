import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.string_transform import (
    OPERATIONS,
    StringTransformEnv,
    apply_step,
    describe_step,
)


@pytest.mark.parametrize(
    ("text", "step", "result"),
    [
        ("magnet", ["reverse"], "tengam"),
        ("magnet", ["sort"], "aegmnt"),
        ("magnet", ["swap_ends"], "tagnem"),
        ("ab", ["swap_ends"], "ba"),
        ("a", ["swap_ends"], "a"),
        ("magnet", ["swap_halves"], "netmag"),
        ("horse", ["swap_halves"], "rseho"),
        ("horse", ["every_second"], "hre"),
        ("horse", ["double_first"], "hhorse"),
        ("horse", ["no_vowels"], "hrs"),
        ("aeiou", ["no_vowels"], "aeiou"),
        ("banana", ["no_repeats"], "ban"),
        ("abc", ["mirror"], "abccba"),
        ("horse", ["rotate", 2], "rseho"),
        ("abc", ["rotate", 5], "cab"),
        ("xyz", ["shift", 3], "abc"),
        ("abc", ["shift", 25], "zab"),
        ("banana", ["replace", "a", "o"], "bonono"),
        ("abc", ["append", "z"], "abcz"),
    ],
)
def test_each_operation_does_what_it_says(text, step, result):
    assert apply_step(text, step) == result
    assert step[0] in OPERATIONS


def test_the_chain_is_listed_and_carried_out():
    task = {"word": "banana", "steps": [["replace", "b", "c"], ["rotate", 1], ["shift", 1],
                                        ["append", "q"]]}  # fmt: skip
    env = StringTransformEnv()
    # canana -> ananac -> bobobd -> bobobdq
    assert env.reset(options={"task": task})[0] == (
        'Start with the text "banana" and do the following in order.\n'
        '1. Replace every "b" by "c".\n'
        "2. Move the first letter to the end.\n"
        "3. Replace each letter by the next one in the alphabet; after z comes a.\n"
        '4. Append the letter "q".\n'
        r"Give the final text in \boxed{}."
    )
    assert env.oracle_action() == r"\boxed{bobobdq}"
    assert env.step(r"\boxed{ \text{BOBOBDQ} }")[1] == 1.0


def test_only_the_final_text_earns_the_reward():
    task = {"word": "horse", "steps": [["reverse"]]}
    env = StringTransformEnv()
    for answer, expected in [("esroh", 1.0), ('"esroh"', 1.0), ("horse", 0.0), ("", 0.0)]:
        env.reset(options={"task": task})
        assert env.step(f"\\boxed{{{answer}}}")[1] == expected


@pytest.mark.parametrize("num_steps", [1, 3, 10])
def test_every_drawn_operation_changes_the_text(num_steps):
    env = StringTransformEnv(num_steps=num_steps, split="all")
    for seed in range(60):
        env.reset(seed=seed)
        task, text = env.task, env.task["word"]
        assert len(task["steps"]) == num_steps
        for step in task["steps"]:
            changed = apply_step(text, step)
            assert changed != text
            assert describe_step(step).endswith(".")
            assert 2 <= len(changed) <= 40
            text = changed
        assert text == task["answer"]


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "'word' must hold words"),
        ({"word": "Ab", "steps": [["reverse"]]}, "lower case"),
        ({"word": "ab", "steps": []}, "'steps' must be a list of 1 to 10"),
        ({"word": "ab", "steps": [["explode"]]}, "the operations are reverse"),
        ({"word": "ab", "steps": [["shift", 26]]}, "'steps' holds"),
        ({"word": "ab", "steps": [["shift", 1.0]]}, "'steps' holds"),
        ({"word": "ab", "steps": [["append", "xy"]]}, "'steps' holds"),
        ({"word": "ab", "steps": ["reverse"]}, "'steps' holds"),
        ({"word": "abcdefgh", "steps": [["mirror"]] * 4}, "beyond 60"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        StringTransformEnv().reset(options={"task": task})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_steps must be an integer from 1 to 10, got 0"):
        StringTransformEnv(num_steps=0)
