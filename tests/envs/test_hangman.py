import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.hangman import HangmanEnv
from rllm_envs.puzzles.hangman_words import HANGMAN_WORDS

TASK = {"word": "balloon"}


def start(**arguments):
    env = HangmanEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


def test_the_first_observation_shows_the_length_only():
    _, observation = start()
    assert observation.endswith("Word: _ _ _ _ _ _ _\nLetters tried: none\nWrong guesses left: 6")
    assert "balloon" not in observation


def test_a_letter_is_shown_wherever_it_stands_and_a_wrong_one_is_a_miss():
    env, _ = start()
    observation, *_, info = env.step(r"\boxed{O}")
    assert "Word: _ _ _ _ o o _" in observation
    assert info["misses_left"] == 6
    observation, *_, info = env.step(r"\boxed{e}")
    assert observation.startswith("The letter e is not in the word.")
    assert "Letters tried: o e\nWrong guesses left: 5" in observation
    assert info["misses_left"] == 5


def test_the_last_letter_or_the_whole_word_wins():
    env, _ = start()
    for letter in "balo":
        assert env.step(f"\\boxed{{{letter}}}")[2] is False
    assert env.step(r"\boxed{n}")[1:3] == (1.0, True)
    env, _ = start()
    assert env.step(r"\boxed{Balloon}")[1:3] == (1.0, True)


def test_wrong_words_are_misses_and_the_last_miss_terminates():
    env, _ = start(max_misses=2)
    observation, _, terminated, _, _ = env.step(r"\boxed{bedroom}")
    assert (observation.splitlines()[0], terminated) == ("The word is not bedroom.", False)
    assert env.step(r"\boxed{z}")[1:4] == (0.0, True, False)


@pytest.mark.parametrize(
    "action", ["", "a", r"\boxed{ab}", r"\boxed{1}", r"\boxed{é}", r"\boxed{b}"]
)
def test_hints_and_repeated_letters_are_invalid_and_no_miss(action):
    env, _ = start()
    env.step(r"\boxed{b}")
    _, reward, _, _, info = env.step(action)
    assert (reward, info["invalid"], info["misses_left"], info["turns_left"]) == (0.0, True, 6, 18)


def test_the_oracle_goes_on_from_any_position():
    for word in HANGMAN_WORDS[::40]:
        env = HangmanEnv(max_misses=12)
        env.reset(options={"task": {"word": word}})
        for action in (r"\boxed{q}", r"\boxed{x}", "?", r"\boxed{zzzzzzz}"):
            env.step(action)
        is_over, reward = False, 0.0
        while not is_over:
            _, reward, is_over, _, _ = env.step(env.oracle_action())
        assert reward == 1.0


def test_the_words_are_different_and_of_six_to_eleven_letters():
    assert len(set(HANGMAN_WORDS)) == len(HANGMAN_WORDS) >= 600
    assert {len(word) for word in HANGMAN_WORDS} == {6, 7, 8, 9, 10, 11}
    assert all(word.isascii() and word.isalpha() and word.islower() for word in HANGMAN_WORDS)


def test_arguments_and_tasks_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="max_misses"):
        HangmanEnv(max_misses=0)
    with pytest.raises(TaskError, match="built-in"):
        HangmanEnv().reset(options={"task": {"word": "zzzzzz"}})
