import pytest

from rllm_envs.grading.latex import canonical
from rllm_envs.grading.structure import (
    Value,
    Values,
    as_json,
    listed,
    read_structure,
    same_exactly,
    split_values,
)


def same(reference, answer):
    return same_exactly(read_structure(canonical(reference)), read_structure(canonical(answer)))


@pytest.mark.parametrize(
    ("reference", "answer", "expected"),
    [
        ("1, -2", "-2, 1", True),
        (r"\{1, 2\}", "2, 1", True),
        ("(1, 2)", "(2, 1)", False),
        ("(1, 2)", "(1, 2.0)", True),
        ("(1, 2)", "1, 2", False),
        ("[1, 2]", "(1, 2)", False),
        ("[1, 2]", "[1, 2]", True),
        ("(1, 2]", "(1, 2]", True),
        ("3, 5, 7", "3, 5", False),
        ("1, 1, 2", "1, 2, 2", False),
        ("42%, 1", "1, 0.42", True),
        ("(1, 2), (3, 4)", "(3, 4), (1, 2)", True),
        ("(1, 2), (3, 4)", "(1, 3), (2, 4)", False),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
         r"\begin{bmatrix} 1&\frac{4}{2}\\3&4 \\ \end{bmatrix}", True),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
         r"\begin{pmatrix} 1 & 3 \\ 2 & 4 \end{pmatrix}", False),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", r"\begin{pmatrix} 1 & 2 \end{pmatrix}", False),
        (r"1, \sqrt{2}", r"\sqrt{2}, 1", True),
        (r"1, \sqrt{2}", r"\sqrt{3}, 2", None),
        (r"1, \sqrt{2}", r"1, \sqrt{4}", None),
        (r"1, \sqrt{2}", r"\sqrt{1}, 2", None),
        (r"(1, \sqrt{2})", r"(2, \sqrt{4})", False),
        (r"\sqrt{2}", "1.5", None),
        ("x", r"\{1, 2\}", None),
        (r"(1, \sqrt{2})", "17", False),
        (r"1, \sqrt{2}", r"\sqrt{2}", None),
    ],
)  # fmt: skip
def test_structures_compare_by_kind_order_and_count(reference, answer, expected):
    assert same(reference, answer) is expected


def test_commas_split_values_but_not_thousands_or_brackets():
    assert split_values("1,234, 5") == ["1,234", "5"]
    assert split_values("1,23") == ["1", "23"]
    assert split_values("(1,2), [3,4]") == ["(1,2)", "[3,4]"]
    assert split_values("1234,567") == ["1234", "567"]


def test_brackets_that_do_not_enclose_the_whole_are_no_list():
    assert isinstance(read_structure(r"(0,9) \cup (9,36)"), Value)
    assert isinstance(read_structure("(1)(2)"), Value)
    assert isinstance(read_structure("1,234"), Value)
    assert read_structure("(3, 4]").kind == "interval"


@pytest.mark.parametrize(
    ("text", "members"),
    [
        (r"1 \pm \sqrt{19}", ["1 + \\sqrt{19}", "1 - \\sqrt{19}"]),
        (r"\pm 2", ["2", "- 2"]),
        (r"\{1\pm\sqrt{5},-2\}", ["1 + \\sqrt{5}", "1 - \\sqrt{5}", "-2"]),
        (r"\frac{1\pm\sqrt{5}}{2}", [r"\frac{1 + \sqrt{5}}{2}", r"\frac{1 - \sqrt{5}}{2}"]),
        (r"\frac{\pm 3}{2}", [r"\frac{3}{2}", r"\frac{- 3}{2}"]),
    ],
)
def test_plus_minus_is_two_values(text, members):
    structure = read_structure(text)
    assert isinstance(structure, Values)
    assert [member.text for member in structure.members] == members


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"x = 1 \text{ or } x = 2", "1, 2"),
        ("x=1, y=2", "1, 2"),
        ("1; 2 and 3", "1, 2, 3"),
        (r"1, 2, \text{ and } 3", "1, 2, 3"),
        ("1 = 2, 3", "1 = 2, 3"),
        (r"\operatorname{x}", r"\operatorname{x}"),
    ],
)
def test_values_are_listed_without_names_and_conjunctions(text, expected):
    assert listed(text) == expected


def test_structures_travel_as_json():
    assert as_json(read_structure("x+1")) == "x+1"
    assert as_json(read_structure("50%")) == {"text": "50%", "number": ["50", True]}
    assert as_json(read_structure(r"(1, \pi)")) == {
        "text": r"(1, \pi)",
        "kind": "tuple",
        "brackets": "()",
        "members": [{"text": "1", "number": ["1", False]}, r"\pi"],
    }


def test_deep_and_long_lists_are_read_at_once():
    assert isinstance(read_structure("(" * 2000 + "1,2" + ")" * 2000), Value)
    long = ", ".join(map(str, range(3000)))
    assert same(long, ", ".join(map(str, reversed(range(3000))))) is True
    assert same(long, ", ".join(map(str, range(1, 3001)))) is False
