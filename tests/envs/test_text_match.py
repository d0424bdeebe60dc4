import pytest

from rllm_envs.grading.text_match import is_exact_match, normalize, token_f1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Eiffel-Tower!", "eiffeltower"),
        ("An apple, a day", "apple day"),
        ("  \u201cAnimorphs\u201d ", "animorphs"),
        ("Theatre", "theatre"),
        ("", ""),
        # Of articles or punctuation alone something stays, or all of them would be equal.
        ("The The", "the the"),
        ("A", "a"),
        ("A!", "a"),
        ("?!", "?!"),
    ],
)
def test_normalisation_drops_case_punctuation_articles_and_spaces(text, expected):
    assert normalize(text) == expected


def test_exact_match_is_equality_of_normalised_texts():
    assert is_exact_match("the Chief of Protocol.", "Chief of Protocol")
    assert not is_exact_match("The", "A") and not is_exact_match("...", "The The")
    assert not is_exact_match("Chief Protocol", "Chief of Protocol")


@pytest.mark.parametrize(
    ("answer", "reference", "f1"),
    [
        # 2 words in common of 2 and 3: p = 1, r = 2/3, F1 = 0.8.
        ("chief protocol", "Chief of Protocol", 0.8),
        # 1 in common of 4 and 1: p = 1/4, r = 1, F1 = 0.4.
        ("it was in Paris", "Paris", 0.4),
        # Repetitions count once for each in the reference: c = 1 of 3 and 1, F1 = 0.5.
        ("Paris Paris Paris", "Paris", 0.5),
        ("Rome", "Paris", 0.0),
        # "yes" is not a part of a longer answer.
        ("yes it was", "yes", 0.0),
        ("Yes.", "yes", 1.0),
        ("", "Paris", 0.0),
    ],
)
def test_f1_is_that_worked_out_by_hand(answer, reference, f1):
    assert token_f1(answer, reference) == pytest.approx(f1)
