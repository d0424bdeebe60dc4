import random
from itertools import product

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.mastermind import MastermindEnv, count_agreements

TASK = {"letters": "ABCDEF", "code": "AABC"}


def start(**arguments):
    env = MastermindEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


@pytest.mark.parametrize(
    ("guess", "code", "exact", "elsewhere"),
    [
        ("AABC", "AABC", 4, 0),
        ("CBAA", "AABC", 0, 4),
        ("AAAA", "AABC", 2, 0),
        ("BAAA", "AABC", 1, 2),
        ("DDDD", "AABC", 0, 0),
        ("ABAB", "BABA", 0, 4),
        ("AABB", "ABBB", 3, 0),
        ("BBAA", "ABCD", 1, 1),
    ],
)
def test_agreements_are_those_counted_by_hand(guess, code, exact, elsewhere):
    assert count_agreements(guess, code) == (exact, elsewhere)


def test_agreements_equal_those_of_crossing_out_letters():
    rng = random.Random(0)
    for _ in range(300):
        guess, code = (rng.choices("ABC", k=4) for _ in range(2))
        rest_guess = [a for a, b in zip(guess, code, strict=True) if a != b]
        rest_code = [b for a, b in zip(guess, code, strict=True) if a != b]
        elsewhere = 0
        for letter in rest_guess:
            if letter in rest_code:
                rest_code.remove(letter)
                elsewhere += 1
        expected = (4 - len(rest_guess), elsewhere)
        assert count_agreements("".join(guess), "".join(code)) == expected


def test_a_guess_is_answered_and_the_code_ends_the_episode():
    env, observation = start()
    assert "4 letters out of A, B, C, D, E, F" in observation
    shown, reward, terminated, _, _ = env.step(r"\boxed{b, a a A}")
    assert shown == "BAAA: 1 in the right place, 2 in a wrong place. Guesses left: 9."
    assert (reward, terminated) == (0.0, False)
    assert env.step(r"\boxed{aabc}")[1:3] == (1.0, True)


@pytest.mark.parametrize("action", ["", "AABC", r"\boxed{AAB}", r"\boxed{AABG}", r"\boxed{1234}"])
def test_other_text_gets_a_hint_and_costs_a_guess(action):
    env, _ = start()
    observation, _, terminated, _, info = env.step(action)
    assert "Allowed letters: A, B, C, D, E, F." in observation
    assert (terminated, info["invalid"], info["turns_left"]) == (False, True, 9)


def test_the_last_guess_terminates():
    env, _ = start(max_turns=1)
    _, reward, terminated, truncated, _ = env.step(r"\boxed{AAAA}")
    assert (reward, terminated, truncated) == (0.0, True, False)


def test_the_oracle_finds_codes_within_seven_guesses_even_after_bad_ones():
    env = MastermindEnv(max_turns=9)
    for code in list(product("ABCDEF", repeat=4))[::25]:
        env.reset(options={"task": {"letters": "ABCDEF", "code": "".join(code)}})
        env.step("nothing")
        _, reward, is_over, _, _ = env.step(r"\boxed{AAAA}")
        while not is_over:
            _, reward, is_over, _, _ = env.step(env.oracle_action())
        assert reward == 1.0


def test_arguments_and_tasks_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="more than 100000"):
        MastermindEnv(num_pegs=6, num_colors=10)
    with pytest.raises(EnvArgumentError, match="num_pegs"):
        MastermindEnv(num_pegs=1)
    for task in (
        {},
        TASK | {"code": "AABG"},
        TASK | {"letters": "AABC"},
        TASK | {"letters": "abcd"},
        {"letters": "ABCDEFGHIJ", "code": "ABCDEF"},
    ):
        with pytest.raises(TaskError):
            MastermindEnv().reset(options={"task": task})
