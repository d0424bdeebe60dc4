import pytest

from rllm_envs.reasoning.answers import (
    plain_text,
    read_integer,
    read_integers,
    read_items,
    read_pairs,
    read_word,
)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (r"\text{A} \to \text{B} \rightarrow C", "A -> B -> C"),
        (r"$\left\{1, 2\right\}$", "{1, 2 }"),
        ("a\nb", "a;b"),
        ("A → B", "A -> B"),
        (r"**red**,\ `blue`", "red , blue"),
        ("x" * 4001, ""),
    ],
)
def test_marks_that_say_nothing_go(answer, text):
    assert plain_text(answer) == text


@pytest.mark.parametrize(
    ("answer", "items"),
    [
        ("a, b; c", ["a", "b", "c"]),
        ("[a, 'b', \"c d\"]", ["a", "b", "c d"]),
        (r"\{a, b, and c\}", ["a", "b", "c"]),
        ("", []),
        ("[]", []),
        ("((", ["(("]),
    ],
)
def test_lists_are_read_with_and_without_brackets(answer, items):
    assert read_items(answer) == items


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("1, -2, +3", [1, -2, 3]),
        ("1 2 3", [1, 2, 3]),
        ("[4]", [4]),
        ("", []),
        ("1, x", None),
        ("1, 2.5", None),
        ("9" * 41, None),
    ],
)
def test_integers_are_read(answer, numbers):
    assert read_integers(answer) == numbers


@pytest.mark.parametrize(
    ("answer", "pairs"),
    [
        ("Ana: Knight, Ben = knave", {"ana": "knight", "ben": "knave"}),
        (r"\text{Ana is a knight}, \text{Ben is a knave}", {"ana": "knight", "ben": "knave"}),
        ("A -> red; B -> blue", {"a": "red", "b": "blue"}),
        ("x = 1, x = 1", {"x": "1"}),
        ("x = 1, x = 2", None),
        ("Ana", None),
        ("", {}),
        ("a" * 70 + ": b", None),
    ],
)
def test_pairs_are_read(answer, pairs):
    assert read_pairs(answer) == pairs


def test_words_and_integers_are_read_liberally():
    assert read_word(r"\text{ Monday. }") == "monday"
    assert read_word('"Monday"') == "monday"
    assert read_integer("1,200") == 1200
    assert read_integer("7.0") == 7
    assert read_integer("7.5") is None
    assert read_integer("seven") is None
