from fractions import Fraction

import pytest

from rllm_envs.grading.exact import (
    Number,
    exact_value,
    read_number,
    same_number,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", Fraction(42)),
        ("-7", Fraction(-7)),
        ("+7", Fraction(7)),
        ("- 7", Fraction(-7)),
        ("42.0", Fraction(42)),
        (".35625", Fraction(57, 160)),
        ("1,234,567", Fraction(1234567)),
        ("12{,}500", Fraction(12500)),
        ("1,234.5", Fraction(2469, 2)),
        ("5/1", Fraction(5)),
        ("-3/4", Fraction(-3, 4)),
        ("3/-4", Fraction(-3, 4)),
        ("137 1/2", Fraction(275, 2)),
        (r"\frac{14}{3}", Fraction(14, 3)),
        (r"-\frac{14}{3}", Fraction(-14, 3)),
        (r"\frac{-14}{3}", Fraction(-14, 3)),
        (r"\frac43", Fraction(4, 3)),
        (r"\frac 59", Fraction(5, 9)),
        (r"\frac9{19}", Fraction(9, 19)),
        (r"\frac{270}7", Fraction(270, 7)),
        (r"1\frac{4}{5}", Fraction(9, 5)),
        (r"-1\frac{4}{5}", Fraction(-9, 5)),
        ("(5)", Fraction(5)),
        ("{5}", Fraction(5)),
        ("10^{-3}", Fraction(1, 1000)),
        ("10^5", Fraction(100_000)),
        (r"6.02 \times 10^{23}", Fraction(602 * 10**21)),
        (r"-3\cdot10^{2}", Fraction(-300)),
        ("42_{10}", Fraction(42)),
    ],
)
def test_written_numbers_are_read_exactly(text, value):
    assert read_number(text) == Number(value)


@pytest.mark.parametrize(
    "text",
    ["", "x", "1 2", "1,23", "12,34,567", "--5", "1/0", r"\frac{1}{0}", "1.2.3", "1e5", "2^3",
     "1/2/3", "5 x", "0x10", "1_000", "\u00b2", "10^12", "10^{1001}", "9" * 1001],
)  # fmt: skip
def test_what_is_no_plain_number_is_left_to_others(text):
    assert read_number(text) is None


def test_a_percent_sign_divides_by_a_hundred_or_is_a_unit():
    def same(first, second):
        return same_number(read_number(first), read_number(second))

    assert same("0.42", "42%")
    assert same("42%", "0.42")
    assert same("42%", "42")
    assert same("42", "42%")
    assert same("42%", "42.0%")
    assert not same("42%", "43%")
    assert not same("0.42%", "42%")


def test_a_base_may_be_left_out_but_not_changed():
    def same(reference, answer):
        return same_number(read_number(reference), read_number(answer))

    assert same("52_8", "52_{8}")
    assert same("52_8", "52")
    assert not same("52_8", "52_9")
    assert not same("52", "52_8")


def test_the_exact_value_of_an_answer_as_written():
    assert exact_value(r" $1{,}234$ ") == 1234
    assert exact_value(r"\frac{84}{2}") == 42
    assert exact_value("42\\%") == Fraction(42, 100)
    assert exact_value("x = 42") == 42
    assert exact_value("41 = 42") is None
    assert exact_value("9" * 10**6) is None
