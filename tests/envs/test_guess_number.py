import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.guess_number import GuessNumberEnv

TASK = {"low": 1, "high": 100, "number": 42}


def start(**arguments):
    env = GuessNumberEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


def test_the_first_observation_states_the_range_the_budget_and_the_form_of_a_guess():
    _, observation = start(max_turns=7)
    assert "from 1 to 100" in observation
    assert "at most 7 guesses" in observation
    assert r"\boxed{}" in observation


def test_guesses_are_answered_with_higher_and_lower_and_the_number_ends_the_episode():
    env, _ = start()
    assert env.step(r"\boxed{41}")[0] == "The number is higher than 41. Guesses left: 9."
    assert env.step(r"\boxed{ 43 }")[0] == "The number is lower than 43. Guesses left: 8."
    observation, reward, terminated, truncated, info = env.step(r"\boxed{42}")
    assert (observation, reward, terminated, truncated) == ("42 is right.", 1.0, True, False)
    assert info["success"] is True


@pytest.mark.parametrize(
    "action",
    ["", "42", r"\boxed{0}", r"\boxed{101}", r"\boxed{٤٢}", r"\boxed{-42}"],
)
def test_what_is_no_number_of_the_range_costs_a_guess_and_gets_a_hint(action):
    env, _ = start()
    observation, reward, terminated, _, info = env.step(action)
    assert observation.startswith("Write a whole number from 1 to 100")
    assert (reward, terminated, info["invalid"], info["turns_left"]) == (0.0, False, True, 9)


def test_the_last_wrong_guess_terminates():
    env, _ = start(max_turns=2)
    env.step(r"\boxed{1}")
    _, reward, terminated, truncated, info = env.step(r"\boxed{2}")
    assert (reward, terminated, truncated, info["success"]) == (0.0, True, False, False)


@pytest.mark.parametrize(("width", "guesses"), [(100, 7), (1000, 10)])
def test_halving_finds_every_number_in_the_least_sufficient_number_of_guesses(width, guesses):
    # 2^7 - 1 = 127 >= 100 > 63, and 2^10 - 1 = 1023 >= 1000 > 511.
    env = GuessNumberEnv(max_turns=guesses)
    for number in range(1, width + 1):
        env.reset(options={"task": {"low": 1, "high": width, "number": number}})
        is_over, reward = False, 0.0
        while not is_over:
            _, reward, is_over, _, _ = env.step(env.oracle_action())
        assert reward == 1.0


def test_arguments_and_tasks_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="width"):
        GuessNumberEnv(width=1)
    with pytest.raises(EnvArgumentError, match="max_low"):
        GuessNumberEnv(max_low=True)
    for task in ({}, TASK | {"number": 101}, TASK | {"high": 0}, TASK | {"low": "1"}):
        with pytest.raises(TaskError):
            GuessNumberEnv().reset(options={"task": task})
