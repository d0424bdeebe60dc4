import pytest

from rllm_envs import DatasetError, ReferenceAnswerError
from rllm_envs.grading.math_grader import grade_answer, read_reference

# (reference, answer, whether it is right, stage that must decide)
EXACT = [
    ("42", "42", True, "text"),
    ("42", "42.0", True, "exact"),
    ("42", r"\frac{84}{2}", True, "exact"),
    ("42", "43", False, "exact"),
    ("42", r"\$42", True, "text"),
    ("42", r"42\text{ dollars}", True, "text"),
    ("42", "42 dollars", True, "exact"),
    ("42", "42 million", False, "rule"),
    ("42", "42%", True, "exact"),
    ("0.42", r"42\%", True, "exact"),
    ("0.05", r"5\%", True, "exact"),
    ("5", "5/1", True, "exact"),
    ("10,\\!080", "10080", True, "exact"),
    ("137 \\frac{1}{2}", "137.5", True, "exact"),
    ("\\frac{1}{3}", "0.333333", False, "exact"),
    (r"\{1,2,3\}", r"\{3,2,1\}", True, "exact"),
    ("1,-2", "-2, 1", True, "exact"),
    ("1,-2", r"-2 \text{ or } 1", True, "exact"),
    ("(2,4)", "(4,2)", False, "exact"),
    ("-42", "\u221242", True, "text"),
    ("42", "\uff14\uff12", True, "text"),
    ("25", "5\u00b2", True, "symbolic"),
    ("52", "5\u00b2", False, "symbolic"),
    (r"\text{Evelyn}", "evelyn", True, "text"),
    (r"\text{Evelyn}", "Ann", False, "text"),
    (r"\text{(C)}", "(C)", True, "text"),
    (r"\text{(C)}", "B", False, "text"),
]
HACKS = [
    ("42", "41=42", False, "rule"),
    ("42", "x=41=42", False, "rule"),
    ("42", r"42 \text{ or } 43", False, "rule"),
    ("42", "42 or 43", False, "rule"),
    ("42", "41, 42, 43", False, "rule"),
    ("42", "42, 42", False, "rule"),
    ("42", "[41, 43]", False, "rule"),
    ("42", r"\{42, 43\}", False, "rule"),
    ("42", r"\pm 42", False, "rule"),
    ("42", r"\text{not } 42", False, "rule"),
    ("42", r"42 \neq 43", False, "rule"),
    ("42", "41 < 42", False, "rule"),
    ("42", r"\text{the answer is } 42", False, "rule"),
    ("42", "", False, "none"),
    ("42", "  ", False, "none"),
]
SYMBOLIC = [
    ("42", r"6 \cdot 7", True, "symbolic"),
    ("42", "42x", False, "symbolic"),
    ("42", "42!", False, "symbolic"),
    ("2", r"\sqrt{4}", True, "symbolic"),
    (r"\frac{\sqrt{3}}{3}", r"\frac{1}{\sqrt{3}}", True, "symbolic"),
    ("p - q", "-q + p", True, "symbolic"),
    ("p - q", "q - p", False, "symbolic"),
    ("x^2+2x+1", "(x+1)^2", True, "symbolic"),
    ("1 \\pm \\sqrt{19}", r"1-\sqrt{19} \text{ and } 1+\sqrt{19}", True, "exact"),
    (r"\left( 3, \frac{\pi}{2} \right)", r"(3, \pi/2)", True, "symbolic"),
    (r"\left( 3, \frac{\pi}{2} \right)", r"(\pi/2, 3)", False, "symbolic"),
    ("y = 2x + 3", "y=3+2x", True, "symbolic"),
    ("5x - 7y + 11z + 4 = 0", "4 + 5x - 7y + 11z = 0", True, "symbolic"),
    (".0000672", r"6.72 \times 10^{-5}", True, "exact"),
    (r"\begin{pmatrix} -1/3 \\ 2/3 \end{pmatrix}",
     r"\begin{pmatrix} -\frac{1}{3} \\ \frac{2}{3} \end{pmatrix}", True, "exact"),
    (r"\begin{pmatrix} -7 \\ 16 \end{pmatrix}",
     r"\begin{pmatrix} 16 \\ -7 \end{pmatrix}", False, "exact"),
    ("(0,9) \\cup (9,36)", r"(9,36) \cup (0,9)", True, "symbolic"),
    ("\\pi", "3.14", False, "symbolic"),
]  # fmt: skip


@pytest.mark.parametrize(("reference", "answer", "is_right", "method"), EXACT + HACKS + SYMBOLIC)
def test_each_answer_gets_its_fixed_verdict(reference, answer, is_right, method):
    if method == "symbolic":
        pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")
    verdict = grade_answer(answer, [reference])
    assert (verdict.is_correct, verdict.method) == (is_right, method), verdict


def test_no_box_is_no_answer():
    verdict = grade_answer(None, ["42"])
    assert (verdict.outcome, verdict.is_correct) == ("no_answer", False)


def test_any_of_several_references_counts():
    assert grade_answer("2", ["1", "2"]).is_correct
    assert not grade_answer("3", ["1", "2"]).is_correct


def test_an_answer_too_large_to_compare_is_labelled_unverifiable():
    verdict = grade_answer("9^{9^{9}}", ["42"])
    assert (verdict.outcome, verdict.method) == ("unverifiable", "guard")
    assert verdict.detail == "a power of a power of numbers"


def test_an_enormous_answer_is_not_even_normalised():
    verdict = grade_answer("9" * 10**6, ["42"])
    assert verdict.outcome == "unverifiable"


def test_references_are_read_once_and_sorted_by_kind():
    assert read_reference("1,234") is read_reference("1,234")
    assert read_reference("1,234").number is not None
    assert read_reference("1, 2").has_values
    assert read_reference(r"\text{east}").is_words


@pytest.mark.parametrize("reference", ["", "  ", "$$", "x" * 10_001])
def test_a_reference_that_cannot_be_read_is_a_data_set_error(reference):
    assert issubclass(ReferenceAnswerError, DatasetError)
    with pytest.raises(ReferenceAnswerError):
        grade_answer("42", [reference])


def test_a_reference_that_no_grammar_reads_is_a_data_set_error():
    pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")
    with pytest.raises(ReferenceAnswerError, match=r"frac.*cannot be read"):
        grade_answer("42", [r"\frac{1}{ ++ ** }"])


def test_no_reference_at_all_is_an_error():
    with pytest.raises(ReferenceAnswerError, match="no reference"):
        grade_answer("42", [])
