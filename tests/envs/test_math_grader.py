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


# Other spellings of the same value, by the reference.
SPELLINGS = {
    "42": [
        r"\text{Area} = 42",
        "area = 42",
        r"m\angle ABC = 42^\circ",
        r"\overline{AB} = 42",
        "f(2) = 42",
        r"f^{-1}(2) = 42",
        "a_{10} = 42",
        "P(A)=42",
        r"\{42\}",
        "42_{10}",
        "42 cm^2",
        "42 km/h",
        r"42\,\mathrm{cm^2}",
        r"42\,\text{cm}^3",
        r"42 \text{ m/s}",
        r"42 \text{ square feet}",
        "€42",
        r"\$42.00",
        " 42 .",
        "42 mph",
    ],
    "0.42": ["42 percent", r"42\text{ percent}", r"\frac{21}{50}"],
    "1234": [r"1\,234", "1,234", r"1234 \text{ feet}", "1,234 + 0"],
    r"864 \mbox{ inches}^2": [r"864 \mbox{ inches}^2.", "864", "864 inches^2"],
    r"6.72 \times 10^{-7}": [r"6.72 \cdot 10^{-7}", "0.000000672"],
    "1,2": ["x=1,x=2", r"x = 2 \text{ or } x = 1", "x_1 = 1, x_2 = 2", "2; 1", r"\{1, 2\}"],
    r"1, \sqrt{2}": [r"x=1 \text{ or } x=\sqrt{2}", r"\{\sqrt{2}, 1\}", r"\frac{2}{\sqrt{2}}, 1"],
    r"\text{yes}": ["Yes", "yes.", r"\text{Yes}"],
    "x=5": ["5", "x = 5.0", "X=5"],
    "y=2x+3": ["f(x)=3+2x", "2x+3"],
    "x^6": ["(x^2)^3", "(x^3)^2"],
    r"\frac{x^4}{y^6}": [r"\left(\frac{x^2}{y^3}\right)^2"],
    "k": [r"\frac{2k}{2}"],
    r"\frac{n(n+1)}{2}": [r"\sum_{k=1}^{n} k"],
    r"\sqrt{2}": [r"\sqrt{2} \text{ cm}", r"\sqrt{2} cm", "2^{1/2}"],
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}": [r"\begin{bmatrix}1&2\\3&4\end{bmatrix}"],
    "(1,2),(3,4)": ["(3,4),(1,2)"],
    r"x < 1 \text{ or } x > 5": [r"x > 5 \text{ or } x < 1"],
}
# What is close to the reference, or holds it, and is not it.
NEAR_MISSES = {
    "42": [
        "42xyz",
        "42 millions",
        r"42\text{ thousands}",
        "42 tenths",
        r"42 \text{ squared}",
        r"42 \text{ hundredths}",
        r"42 \text{ at least}",
        r"\text{not } = 42",
        "|x| = 42",
        "2x = 42",
        "1 = 42",
        "A = B = 42",
        "42 = x",
        r"41 \fbox{42}",
        "42}{43",
        "42 43",
        "4 2",
        r"42 \rightarrow 43",
        "42 & 43",
        r"x \approx 42",
        r"\frac{0}{0}",
        "42_8",
    ],
    r"1, \sqrt{2}": [
        r"1, 1, \sqrt{2}",
        r"1, \sqrt{2}, \sqrt{2}",
        r"(1, \sqrt{2})",
        r"[1, \sqrt{2}]",
        "1",
        r"\sqrt{2}",
    ],
    r"(1, \sqrt{2})": [r"\{1, \sqrt{2}\}", r"(\sqrt{2}, 1)", r"(7, \sqrt{2})", r"[1, \sqrt{2})"],
    r"(0, \pi)": [r"0, \pi", r"[0, \pi]", r"(0, \pi]"],
    r"\text{no}": ["on", "not"],
    "yes": ["eys", "no"],
    "odd": ["ddo"],
    r"\text{AB}": ["BA"],
    "x=5": ["y=5"],
    "2m": ["2", "2g"],
    "x^2 t": ["x^2"],
    r"\sqrt{2}": [
        r"\sqrt{2}c",
        r"\sqrt{2} m",
        r"\sqrt{3} \equiv \sqrt{2}",
        r"\sqrt{2} < 5",
        r"\pm\sqrt{2}",
        r"1 = \sqrt{2}",
        r"41 \boxed{\sqrt{2}}",
        "1.4143",
    ],
    r"6.72 \times 10^{-7}": [r"6.6 \times 10^{-7}", "0.0"],
    "10^{-7}": ["0.0"],
    "x^2+1=0": ["x^2+2=0"],
    "x^2+y^2=-1": ["x^2+y^2=-2"],
    "(1,2),(3,4)": ["(1,3),(2,4)", "(2,1),(3,4)", "(1,2)"],
    "101010_2": ["42"],
    "k": ["n", "2k"],
    r"x < 1 \text{ or } x > 5": [r"x < 1 \text{ or } x > 6"],
}


def pairs(cases):
    return [(reference, answer) for reference, answers in cases.items() for answer in answers]


@pytest.mark.parametrize(("reference", "answer"), pairs(SPELLINGS))
def test_other_spellings_are_right(reference, answer):
    pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")
    assert grade_answer(answer, [reference]).outcome == "correct"


@pytest.mark.parametrize(("reference", "answer"), pairs(NEAR_MISSES))
def test_near_misses_are_wrong(reference, answer):
    pytest.importorskip("math_verify", reason="symbolic grading needs math-verify")
    assert grade_answer(answer, [reference]).outcome == "wrong"


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
