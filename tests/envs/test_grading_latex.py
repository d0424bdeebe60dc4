import pytest

from rllm_envs.grading.latex import (
    canonical,
    clean,
    compact,
    is_text_command,
    name_and_value,
    split_name,
    without_plain_unit,
    words_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\uff14\uff12", "42"),
        ("\u0664\u0662", "42"),
        ("\u221242", "-42"),
        ("4\u200b2\u202e", "42"),
        ("5\u00b2", "5^{2}"),
        ("5\u207b\u00b9", "5^{-1}"),
        ("52\u2088", "52_{8}"),
        ("1\u00bd", r"1\frac{1}{2}"),
        ("  a \n b ", "a b"),
        ("3\u00a04", "3 4"),
    ],
)
def test_clean_unifies_characters_without_changing_the_value(text, expected):
    assert clean(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"$\dfrac{1}{2}$", r"\frac{1}{2}"),
        (r"\left( 3, \tfrac12 \right)", r"( 3, \frac12 )"),
        (r"10,\!080", "10,080"),
        (r"11,\! 111,\! 100", "11,111,100"),
        (r"\$32,\!348", "32,348"),
        (r"90^\circ", "90"),
        (r"90^{\circ}", "90"),
        (r"42\%", "42%"),
        (r"864 \mbox{ inches}^2", "864"),
        (r"5.4 \text{ cents}", "5.4"),
        (r"\frac{270}7\text{ degrees}", r"\frac{270}7"),
        (r"\text{Evelyn}", "Evelyn"),
        (r"\text{(C)}", "C"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        ("x = 5", "5"),
        ("y = 2x + 3", "2x + 3"),
        (r"x \in [-2,7]", "[-2,7]"),
        ("(x, y) = (1, 2)", "(1, 2)"),
        (r"f(x) = x^2", "x^2"),
        ("41 = 42", "41 = 42"),
        ("x = 41 = 42", "x = 41 = 42"),
        ("42.", "42"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
    ],
)
def test_canonical_removes_differences_of_spelling(text, expected):
    assert canonical(text) == expected


@pytest.mark.parametrize(
    "text",
    [r"5 \text{ million}", r"42 \text{ or } 43", r"\text{not } 42", r"42 \text{ is wrong}"],
)
def test_canonical_keeps_words_that_change_the_value(text):
    assert "\\text" in canonical(text)


def test_compact_never_joins_two_digits_or_letters():
    assert compact("3, 5, 7") == "3,5,7"
    assert compact("1 2") == "1 2"
    assert compact("137 1/2") == "137 1/2"
    assert compact(r"\cot x") == r"\cot x"


def test_words_are_prose_not_commands_or_products():
    assert words_of(r"\frac{ab}{2} + \sqrt{x}") == []
    assert words_of(r"\text{the answer is } 42") == ["the", "answer", "is"]
    assert words_of("42 or 43") == ["or"]


def test_plain_units_are_dropped_after_a_number_only():
    assert without_plain_unit("18 dollars") == "18"
    assert without_plain_unit("18 cm") == "18"
    assert without_plain_unit("18 x") == "18 x"
    assert without_plain_unit("18 million") == "18 million"
    assert without_plain_unit("2 pi") == "2 pi"


def test_a_power_or_a_quotient_of_units_is_a_unit():
    assert without_plain_unit("18 cm^2") == "18"
    assert without_plain_unit("18 km/h") == "18"
    assert without_plain_unit("18xyz") == "18xyz"
    assert without_plain_unit("18 tenths") == "18 tenths"
    assert without_plain_unit("18 abc/def ghi jkl") == "18 abc/def ghi jkl"


def test_only_common_units_follow_an_expression():
    assert without_plain_unit(r"\sqrt{2} cm", common_only=True) == r"\sqrt{2}"
    assert without_plain_unit(r"\sqrt{2} abc", common_only=True) == r"\sqrt{2} abc"


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("x = 5", "x", "5"),
        ("Area = 5", "Area", "5"),
        (r"m\angle ABC = 5", r"m\angle ABC", "5"),
        (r"x \in [1, 2]", "x", "[1, 2]"),
        ("2x = 5", "", "2x = 5"),
        ("x = 5 = 6", "", "x = 5 = 6"),
        ("x = ", "", "x = "),
        ("not x = 5", "", "not x = 5"),
        ("a" * 41 + " = 5", "", "a" * 41 + " = 5"),
    ],
)
def test_a_name_and_its_value_are_told_apart(text, name, value):
    assert split_name(text) == (name, value)


def test_a_plain_number_is_its_own_spelling():
    assert name_and_value("-42.5") == ("", "-42.5")
    assert name_and_value("$k = 42.$") == ("k", "42")


def test_text_commands_are_recognised_around_the_whole_only():
    assert is_text_command(r"$\text{yes}$")
    assert not is_text_command(r"2 \text{ cm}")
    assert not is_text_command("yes")
