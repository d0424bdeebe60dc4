from fractions import Fraction

import pytest

from rllm_envs import CalculatorTool, EnvArgumentError, Tool, ToolError, ToolOutput
from rllm_envs.errors import MissingDependencyError, SandboxError, ToolServerError
from rllm_envs.tools import ToolSource, close_tools, episode_tools, make_tools
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
                    "limit": {
                        "type": "integer",
                        "description": "How many pages at most.",
                        "default": 3,
                    },
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


class EchoTool(Tool):
    """Return what is given."""

    name = "echo"

    def forward(self, value: dict) -> str:
        """Return it."""
        return str(value)


def nested(depth):
    value = {}
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (nested(100), "nested more than 64 deep"),
        (nested(50_000), "nested more than 64 deep"),
        ({"a": "x" * 2_000_000}, "larger than 1000000"),
        ({"a": list(range(2_000_000))}, "larger than 1000000"),
        ({"a": float("nan")}, "must be finite, got nan"),
        ({"a": [float("-inf")]}, "must be finite, got -inf"),
        ({"a": 10**5000}, "more than 4096 bits"),
        ({"a": "half \ud800"}, "half of a character pair"),
        ({"\udfff": 1}, "half of a character pair"),
        ({1: 1}, "keys of an object must be texts, got 1"),
        ({"a": {1, 2}}, "must be JSON values, got set"),
    ],
)
def test_what_is_no_bounded_json_is_answered(value, reason):
    output = EchoTool().call({"value": value})
    assert output.is_error and output.text.startswith("Error: ") and reason in output.text
    assert len(output.text) < 300
    output.text.encode()


def test_values_at_the_bounds_pass():
    value = {"a": ["x" * 900_000, 2**4095, 1e308, None, True], "b": nested(60)}
    assert EchoTool().call({"value": value}) == ToolOutput("echo", str(value))


def test_what_a_tool_returns_or_raises_can_always_be_encoded_and_is_an_answer():
    def shout(text: str) -> str:
        if text == "exit":
            raise SystemExit(3)
        if text == "deep":
            return shout(text)
        if text == "pair":
            raise ToolError("\ud800")
        return "\ud800!"

    tool = Tool.from_function(shout)
    assert tool.call({"text": "a"}) == ToolOutput("shout", "?!")
    assert tool.call({"text": "pair"}) == ToolOutput("shout", "Error: ?", True)
    assert tool.call({"text": "exit"}) == ToolOutput("shout", "Error: SystemExit: 3", True)
    assert tool.call({"text": "deep"}).text.startswith("Error: RecursionError")


@pytest.mark.parametrize("kind", [SandboxError, ToolServerError, MissingDependencyError])
def test_what_fails_beside_the_agent_is_no_answer(kind):
    @Tool.from_function
    def broken() -> str:
        raise kind("down")

    with pytest.raises(kind, match="down"):
        broken.call({})


def test_a_function_becomes_a_tool():
    @Tool.from_function
    def add(first: float, second: float = 1.5) -> float:
        """Add two numbers.

        Nothing else.

        Args:
            first: One number.
            second: The other.
        """
        return first + second

    assert (add.name, add.description) == ("add", "Add two numbers.")
    assert add.schema["function"]["parameters"]["properties"] == {
        "first": {"type": "number", "description": "One number."},
        "second": {"type": "number", "description": "The other.", "default": 1.5},
    }
    assert add.call({"first": 1}).text == "2.5"
    assert add.call({"first": "1"}).text == "Error: 'first' must be of type number, got '1'"
    assert make_tools([add])["add"] is add


async def wait() -> None:
    """An async function."""


@pytest.mark.parametrize("given", [len, wait, "text", SearchTool, lambda: 1])
def test_what_is_no_named_plain_function_is_refused(given):
    with pytest.raises(EnvArgumentError):
        Tool.from_function(given)


class CountingSource(ToolSource):
    """Two tools that count their calls together."""

    def __init__(self):
        self.count = 0
        self.is_open = True
        self._tools = {name: CountTool(self, name) for name in ("one", "two")}

    @property
    def tools(self):
        return self._tools

    def for_episode(self):
        return CountingSource()

    def end_episode(self):
        self.is_open = False


class CountTool(Tool):
    """Count a call."""

    name = "count"

    def __init__(self, source, name):
        self.source = source
        self.name = name

    def forward(self) -> str:
        """Count."""
        self.source.count += 1
        return f"{self.name} {self.source.count}"


def test_the_tools_of_a_source_share_it_within_an_episode_and_not_beyond():
    source = CountingSource()
    tools = make_tools(["calculator", source])
    assert list(tools) == ["calculator", "one", "two"]
    first, second = episode_tools(tools), episode_tools(tools)
    assert [first[name].call({}).text for name in ("one", "two", "one")] == [
        "one 1", "two 2", "one 3"
    ]  # fmt: skip
    assert second["one"].call({}).text == "one 1"
    close_tools(first.values())
    assert not first["two"].source.is_open and second["two"].source.is_open
    assert source.count == 0 and source.is_open


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
        ({"tools": [nested]}, "Tool.from_function makes one"),
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
