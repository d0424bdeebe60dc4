from fractions import Fraction

import pytest

from rllm_envs import CalculatorTool, EnvArgumentError, Tool, ToolError, ToolOutput
from rllm_envs.tools import make_tools
from rllm_envs.tools.calculator import evaluate, format_value


class SearchTool(Tool):
    """Find a page by its words.

    Only this package's pages are known.
    """

    name = "search"

    def forward(self, query: str, limit: int = 3, strict: bool | None = None) -> str:
        """Return the best pages.

        Args:
            query: Words to look for,
                in any order.
            limit: How many pages at most.
        """
        if query == "boom":
            raise RuntimeError("no index")
        return f"{query} {limit} {strict}"


def test_the_schema_comes_from_the_signature_and_the_docstrings():
    assert SearchTool().schema == {
        "type": "function",
        "function": {
            "name": "search",
            "description": "Find a page by its words.",
            "parameters": {
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "Words to look for, in any order.",
                    },
                    "limit": {"type": "integer", "description": "How many pages at most."},
                    "strict": {"type": "boolean", "nullable": True},
                },
                "required": ["query"],
            },
        },
    }


@pytest.mark.parametrize(
    ("arguments", "text", "is_error"),
    [
        ({"query": "x"}, "x 3 None", False),
        ({"query": "x", "limit": 1, "strict": True}, "x 1 True", False),
        ({"query": "x", "strict": None}, "x 3 None", False),
        ({}, "Error: search needs the argument 'query'", True),
        ({"query": 3}, "Error: 'query' must be of type string, got 3", True),
        ({"query": "x", "limit": True}, "Error: 'limit' must be of type integer, got True", True),
        ({"query": "x", "limit": None}, "Error: 'limit' must be of type integer, got None", True),
        (
            {"query": "x", "lim": 1},
            "Error: search has no argument 'lim'; it takes: query, limit, strict",
            True,
        ),
        ({"query": "boom"}, "Error: RuntimeError: no index", True),
        ("x", "Error: arguments must be a JSON object, got 'x'", True),
    ],
)
def test_a_call_never_raises(arguments, text, is_error):
    assert SearchTool().call(arguments) == ToolOutput("search", text, is_error)


def test_a_tool_that_cannot_be_described_is_refused_when_it_is_written():
    with pytest.raises(EnvArgumentError, match="name must be"):
        type("Nameless", (Tool,), {"forward": lambda self, x: x})
    with pytest.raises(EnvArgumentError, match="must be annotated"):
        type("Untyped", (Tool,), {"name": "untyped", "forward": lambda self, x: x})
    with pytest.raises(EnvArgumentError, match="must name its parameters"):
        type("Loose", (Tool,), {"name": "loose", "forward": lambda self, **x: x})


def test_tools_are_made_from_names_classes_and_objects():
    search = SearchTool()
    tools = make_tools(["calculator", search])
    assert isinstance(tools["calculator"], CalculatorTool)
    assert tools["search"] is search
    assert isinstance(make_tools(tool_map={"find": SearchTool})["find"], SearchTool)
    assert make_tools() == {}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"tools": ["calc"]}, "no tool is named 'calc'; known tools: calculator"),
        ({"tools": "calculator"}, r"such as \['calculator'\]"),
        ({"tools": [3]}, "must be a name, a Tool class or a Tool, got 3"),
        ({"tools": ["calculator", CalculatorTool]}, "two tools are named 'calculator'"),
        ({"tools": [], "tool_map": {}}, "not both"),
    ],
)
def test_tools_that_cannot_be_made_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        make_tools(**arguments)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("47 * 83", 3901),
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 4 - 3", 3),
        ("2 ^ 3 ^ 2", 512),
        ("2 ** 3", 8),
        ("-2 ^ 2", -4),
        ("(-2) ^ 2", 4),
        ("2 ^ -2", Fraction(1, 4)),
        ("7 // 2", 3),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("7.5 % 2", Fraction(3, 2)),
        ("0.1 + 0.2", Fraction(3, 10)),
        ("1,000 + 1", 1001),
        ("6 \u00d7 7", 42),
        ("84 \u00f7 2", 42),
        ("44 \u2212 2", 42),
        (".5", Fraction(1, 2)),
        ("--4", 4),
        ("2 * -3", -6),
    ],
)
def test_arithmetic_is_exact(expression, value):
    assert evaluate(expression) == value


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("", "incomplete"),
        ("1 +", "incomplete"),
        ("(1", "not closed"),
        ("1)", "unexpected '\\)'"),
        ("1 2", "unexpected '2'"),
        ("* 3", "unexpected '\\*'"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ^ -1", "division by zero"),
        ("2 ^ 0.5", "whole number"),
        ("9 ^ 9 ^ 9", "at most 256"),
        ("9999999999 ^ 256", "too large"),
        ("9" * 51, "more than 50 digits"),
        ("1+" * 150 + "1", "longer than 200"),
        ("(" * 60 + "1" + ")" * 60, "nested more than 32"),
        ("-" * 60 + "1", "nested more than 32"),
        ("import os", "cannot read 'import os'"),
        ("x", "cannot read 'x'"),
        ("1e5", "cannot read 'e5'"),
        ("abs(1)", "cannot read"),
    ],
)
def test_what_is_no_bounded_expression_is_refused(expression, reason):
    with pytest.raises(ToolError, match=reason):
        evaluate(expression)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(3901), "3901"),
        (Fraction(-5, 2), "-2.5"),
        (Fraction(1, 3), "0.3333333333"),
        (Fraction(2, 3), "0.6666666667"),
        (Fraction(-1, 10**12), "0"),
        (Fraction(10**12 + 1, 10), "100000000000.1"),
    ],
)
def test_values_are_written_plainly(value, text):
    assert format_value(value) == text
