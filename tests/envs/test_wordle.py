import random

import pytest

from rllm_envs import TaskError
from rllm_envs.puzzles.five_letter_words import FIVE_LETTER_WORDS
from rllm_envs.puzzles.wordle import WordleEnv, _marks_of_all, forbidden_by_hints, mark_letters

TASK = {"word": "crane"}


def start(**arguments):
    env = WordleEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


@pytest.mark.parametrize(
    ("guess", "word", "marks"),
    [
        ("crane", "crane", "GGGGG"),
        ("slate", "crane", "--G-G"),
        # One e of the word, in place at the end of the guess, leaves none for the others.
        ("eerie", "crane", "--Y-G"),
        # Two l in the guess, one in the word: the first is marked.
        ("llama", "alone", "-GY--"),
        ("allow", "lemon", "-Y-G-"),
        # Two in the word, three in the guess.
        ("geese", "eerie", "-GY-G"),
        ("speed", "erase", "Y-YY-"),
        ("abbey", "babes", "YYGG-"),
        ("queen", "eaten", "--YGG"),
    ],
)
def test_marks_are_those_worked_by_hand(guess, word, marks):
    assert mark_letters(guess, word) == marks


def test_the_table_of_the_oracle_holds_the_marks_of_the_game():
    rng = random.Random(1)
    table = _marks_of_all()
    for _ in range(2000):
        guess, word = (rng.randrange(len(FIVE_LETTER_WORDS)) for _ in range(2))
        marks = mark_letters(FIVE_LETTER_WORDS[guess], FIVE_LETTER_WORDS[word])
        value = sum("-YG".index(mark) * 3**place for place, mark in enumerate(marks))
        assert table[guess, word] == value


def test_the_words_are_at_least_600_different_ones_of_five_letters():
    assert len(set(FIVE_LETTER_WORDS)) == len(FIVE_LETTER_WORDS) >= 600
    assert all(len(word) == 5 and word.isascii() and word.islower() for word in FIVE_LETTER_WORDS)
    assert list(FIVE_LETTER_WORDS) == sorted(FIVE_LETTER_WORDS)


def test_guesses_are_marked_and_the_word_ends_the_episode():
    env, _ = start()
    shown, reward, terminated, _, _ = env.step(r"\boxed{Slate}")
    assert shown == "S L A T E\n- - G - G\nGuesses left: 5."
    assert (reward, terminated) == (0.0, False)
    assert env.step(r"\boxed{ CRANE }")[1:3] == (1.0, True)


@pytest.mark.parametrize("action", ["", "crane", r"\boxed{cran}", r"\boxed{cr4ne}"])
def test_other_text_gets_a_hint_and_costs_a_guess(action):
    env, _ = start()
    observation, _, _, _, info = env.step(action)
    assert observation.startswith("Write a word of five letters")
    assert (info["invalid"], info["turns_left"]) == (True, 5)


def test_the_sixth_wrong_guess_terminates():
    env, _ = start()
    for _ in range(5):
        assert env.step(r"\boxed{zzzzz}")[2] is False
    assert env.step(r"\boxed{zzzzz}")[1:4] == (0.0, True, False)


def test_hard_mode_demands_that_hints_are_used():
    history = [("slate", "--G-G"), ("eerie", "--Y-G")]
    assert forbidden_by_hints("crown", history) == "Letter 3 must be A."
    assert forbidden_by_hints("abate", history) == "The guess must contain R."
    assert forbidden_by_hints("brake", history) == ""
    env, _ = start(hard=True)
    env.step(r"\boxed{slate}")
    observation, _, _, _, info = env.step(r"\boxed{crown}")
    assert observation == "Letter 3 must be A. Guesses left: 4."
    assert info["invalid"] is True
    assert env.step(r"\boxed{crane}")[1] == 1.0


@pytest.mark.parametrize("hard", [False, True])
def test_the_oracle_solves_words_that_differ_in_one_letter_only(hard):
    for word in ("light", "might", "right", "sight", "tight", "fight", "eight"):
        env = WordleEnv(hard=hard)
        env.reset(options={"task": {"word": word}})
        is_over, reward = False, 0.0
        while not is_over:
            _, reward, is_over, _, _ = env.step(env.oracle_action())
        assert reward == 1.0


@pytest.mark.parametrize("word", [None, "cran", "CRANE", "zzzzz"])
def test_words_that_are_not_built_in_are_refused(word):
    with pytest.raises(TaskError, match="built-in"):
        WordleEnv().reset(options={"task": {"word": word}})
