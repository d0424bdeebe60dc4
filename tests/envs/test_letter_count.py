import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.letter_count import LetterCountEnv
from rllm_envs.reasoning.words import WORDS


def start(task):
    env = LetterCountEnv()
    return env, env.reset(options={"task": task})[0]


def test_the_letters_of_strawberry_are_counted():
    env, observation = start({"words": ["strawberry"], "letters": ["r"]})
    assert observation == (
        'How many times does the letter "r" occur in "strawberry"? '
        r"Give the number in \boxed{}."
    )
    assert env.oracle_action() == r"\boxed{3}"


def test_several_letters_are_counted_together():
    env, observation = start({"words": ["banana", "split"], "letters": ["a", "s", "n"]})
    assert observation.startswith(
        'How many times do the letters "a", "s" and "n" occur together in "banana split"?'
    )
    # Three a, two n, one s.
    assert env.oracle_action() == r"\boxed{6}"


@pytest.mark.parametrize(
    ("answer", "expected"), [("3", 1.0), ("3.0", 1.0), ("2", 0.0), ("three", 0.0), ("", 0.0)]
)
def test_the_answer_is_the_count(answer, expected):
    env, _ = start({"words": ["strawberry"], "letters": ["r"]})
    assert env.step(f"\\boxed{{{answer}}}")[1] == expected


@pytest.mark.parametrize(("num_words", "num_letters"), [(1, 3), (6, 1), (40, 5)])
def test_answers_agree_with_counting_letter_by_letter(num_words, num_letters):
    env = LetterCountEnv(num_words=num_words, num_letters=num_letters)
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        *letters, text = observation.split('"')[1::2]
        assert (len(text.split()), len(set(letters))) == (num_words, num_letters)
        count = 0
        for character in text:
            if character in letters:
                count += 1
        assert env.task["answer"] == str(count)
        assert count >= num_letters


def test_each_word_of_the_list_has_three_different_letters():
    assert all(len({*word}) >= 3 and word.isalpha() and word.islower() for word in WORDS)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"letters": ["a"]}, "'words' must be a list"),
        ({"words": ["a b"], "letters": ["a"]}, "words of 1 to 20"),
        ({"words": ["ab"], "letters": ["ab"]}, "single letters"),
        ({"words": ["Ab"], "letters": ["a"]}, "lower case"),
        ({"words": ["ab"], "letters": ["a"], "answer": "2"}, "'2' is not right"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        start(task)


@pytest.mark.parametrize(
    "arguments",
    [{"num_words": 0}, {"num_words": 41}, {"num_letters": 6}, {"num_letters": 4, "num_words": 1}],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        LetterCountEnv(**arguments)
