import time

import pytest

from rllm_envs.grading.instructions.words import all_upper_words, num_sentences, num_words


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("one", 1), ("It's a well-known fact.", 6), ("a_b c\nd", 3), ("été 42", 2)],
)
def test_words_are_runs_of_letters_and_digits(text, count):
    assert num_words(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("...", 0),
        ("One", 1),
        ("One. Two! Three?", 3),
        ("Really?! Yes...", 2),
        ('He said "Stop." Then he left.', 2),
        ("(It rained.) We stayed.", 2),
        ("Dr. Bell met Mr. J. Smith at 3.5 miles. He ran.", 2),
        ("Use e.g. this one.", 1),
        ("It was I. You know.", 2),
        ("1. First thing.\n2. Second thing.", 2),
        ("A title\n\nA sentence.", 2),
        ("Two lines\nof one sentence.", 1),
        ("\u4eca\u65e5\u3002\u660e\u65e5\u3002", 2),
        ("No stop. At the end", 2),
    ],
)
def test_sentences_end_with_a_stop_or_with_their_paragraph(text, count):
    assert num_sentences(text) == count


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("GO go Go", 1), ("I am A-OK", 2), ("NASA's", 0), ("DON'T", 1), ("42 X9", 1)],
)
def test_upper_words_have_no_lower_letter(text, count):
    assert all_upper_words(text) == count


@pytest.mark.parametrize(
    "text", ["." * 200_000 + "a", "a" * 200_000, ".)" * 100_000 + "a", " " * 200_000]
)
def test_hostile_text_costs_no_more_than_other_text(text):
    start = time.process_time()
    num_sentences(text)
    num_words(text)
    all_upper_words(text)
    assert time.process_time() - start < 1.0
