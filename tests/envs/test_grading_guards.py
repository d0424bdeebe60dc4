import pytest

from rllm_envs.grading.guards import hazard


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9^{9^{9^9}}", "power of a power"),
        ("9^9^9", "power of a power"),
        ("9**9**9", "power of a power"),
        ("(9^{999})^{99}", "power of a power"),
        ("((x^{99})^{99})^{99}", "power of a power"),
        ("2^3^4", "power of a power"),
        ("}" * 200 + "(" * 200, "nested more than 64"),
        ("2^{10001}", "exponent greater"),
        ("x^{10001}", "exponent greater"),
        ("1001!", "factorial of a number"),
        ("((9!)!)!", "factorial of an expression"),
        ("3!!", "factorial of an expression"),
        (r"\sum_{k=1}^{9999} 10001", "sum, product"),
        (r"\binom{20000}{3}", "sum, product"),
        ("x" * 513, "longer than 512"),
        ("(" * 65 + ")" * 65, "nested more than 64"),
        ("1," * 65, "more than 64 commas"),
    ],
)
def test_what_is_too_large_to_compare_is_refused_unevaluated(text, reason):
    assert reason in hazard(text)


@pytest.mark.parametrize(
    "text",
    ["x^2 + 2^{10000}", r"e^{x^2}", r"\frac{1}{2}", "1000!", r"\binom{100}{50}", r"x^{y^{z}}",
     "2^3 \\cdot 3^2", r"\sum_{k=1}^{100} k", "(x+1)^2(x-1)^3", "x^8 + x^7 + x^6", "(x^2)^3",
     r"(\frac{x^2}{y^3})^2", "(2^3)^2"],
)  # fmt: skip
def test_ordinary_expressions_pass(text):
    assert hazard(text) is None


def test_a_long_reference_allows_a_long_answer():
    assert hazard("x" * 900, reference_length=450) is None
