import enum
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, Optional, TypedDict, Union

import pytest

from rllm_envs import EnvArgumentError
from rllm_envs.tools import Tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Place(TypedDict):
    city: str
    zone: NotRequired[int]


@dataclass
class Filter:
    column: str
    values: list[float] = field(default_factory=list)
    colour: Colour = Colour.RED


class Loop(TypedDict):
    next: "Loop"


SCALAR = {"type": "string"}
NUMBER = {"type": "integer"}
PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "zone": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}


def tool_of(annotation, **default):
    def take(value):
        take.seen = value
        return "ok"

    take.__annotations__ = {"value": annotation}
    if default:
        take.__defaults__ = (default["default"],)
    made = Tool.from_function(take)
    return made, take


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, SCALAR),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Colour, {"type": "string", "enum": ["red", "blue"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (list, {"type": "array"}),
        (list[str], {"type": "array", "items": SCALAR}),
        (list[list[int]], {"type": "array", "items": {"type": "array", "items": NUMBER}}),
        (dict[str, Any], {"type": "object"}),
        (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
        (Optional[str], {"type": "string", "nullable": True}),  # noqa: UP045
        (str | None, {"type": "string", "nullable": True}),
        (Union[int, str], {"anyOf": [{"type": "integer"}, SCALAR]}),  # noqa: UP007
        (int | list[str] | None,
         {"anyOf": [{"type": "integer"}, {"type": "array", "items": SCALAR}], "nullable": True}),
        (Place, PLACE),
        (list[Place], {"type": "array", "items": PLACE}),
        (Filter, {
            "type": "object",
            "properties": {
                "column": SCALAR,
                "values": {"type": "array", "items": {"type": "number"}},
                "colour": {"type": "string", "enum": ["red", "blue"]},
            },
            "required": ["column"],
            "additionalProperties": False,
        }),
    ],
)  # fmt: skip
def test_annotations_become_schemas(annotation, schema):
    made, _ = tool_of(annotation)
    assert made.parameters["properties"]["value"] == schema
    assert made.parameters["required"] == ["value"]


@pytest.mark.parametrize(
    ("annotation", "given", "seen"),
    [
        (Colour, "blue", Colour.BLUE),
        (Level, 2, Level.HIGH),
        (list[Colour], ["red", "red"], [Colour.RED, Colour.RED]),
        (dict[str, Colour], {"a": "red"}, {"a": Colour.RED}),
        (Colour | None, None, None),
        (Colour | int, 3, 3),
        (int | Colour, "red", Colour.RED),
        (Place, {"city": "Kiel"}, {"city": "Kiel"}),
        (Filter, {"column": "a"}, Filter("a")),
        (Filter, {"column": "a", "values": [1], "colour": "blue"}, Filter("a", [1], Colour.BLUE)),
        (list[Filter], [{"column": "a"}], [Filter("a")]),
    ],
)
def test_json_becomes_what_the_annotation_says(annotation, given, seen):
    made, take = tool_of(annotation)
    assert made.call({"value": given}).text == "ok"
    assert take.seen == seen and type(take.seen) is type(seen)


@pytest.mark.parametrize(
    ("annotation", "given", "reason"),
    [
        (Literal["a", "b"], "c", "'value' must be one of \"a\", \"b\"; got 'c'"),
        (Literal["a", "b"], ["a"], "'value' must be of type string"),
        (Literal[1, 2], True, "'value' must be of type integer"),
        (Colour, "RED", "must be one of"),
        (list[str], ["a", 3], "'value'[1] must be of type string, got 3"),
        (list[str], "a", "'value' must be of type array"),
        (dict[str, int], {"a": "b"}, "'value'.a must be of type integer"),
        (str | None, 3, "must be of type string"),
        (int | str, [1], "must be of type integer, got [1]; or 'value' must be of type string"),
        (Place, {"zone": 1}, "'value' needs 'city'"),
        (Place, {"city": "a", "land": "b"}, "'value' has no 'land'; it takes: city, zone"),
        (Filter, {"column": "a", "values": [None]}, "'value'.values[0] must be of type number"),
        (list[Filter], [{"column": 3}], "'value'[0].column must be of type string"),
    ],
)
def test_what_does_not_fit_is_answered_with_its_place(annotation, given, reason):
    made, take = tool_of(annotation)
    output = made.call({"value": given})
    assert output.is_error and reason in output.text
    assert not hasattr(take, "seen")


@pytest.mark.parametrize(
    ("default", "shown"),
    [(3, 3), ("a", "a"), (False, False), (Colour.BLUE, "blue"), (None, None), ((), None)],
)
def test_defaults_are_shown_where_json_can_hold_them(default, shown):
    made, _ = tool_of(str, default=default)
    assert made.parameters["properties"]["value"].get("default") == shown
    assert made.parameters["required"] == []


@pytest.mark.parametrize(
    ("annotation", "reason"),
    [
        (bytes, "must be annotated with one of"),
        (None, "must be annotated with one of"),
        (set[str], "must be annotated with one of"),
        (list[bytes], "must be annotated with one of"),
        (dict[int, str], "keys of a dict must be str"),
        (Literal["a", 1], "the choices must be texts, or numbers"),
        (Loop, "Loop must not hold itself"),
        ("Missing", "cannot be read"),
    ],
)
def test_what_json_cannot_hold_is_refused_when_the_tool_is_made(annotation, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        tool_of(annotation)


def test_parameters_need_names():
    def by_position(a: str, /) -> str:
        return a

    def loose(**a: str) -> str:
        return str(a)

    with pytest.raises(EnvArgumentError, match="usable by name"):
        Tool.from_function(by_position)
    with pytest.raises(EnvArgumentError, match="must name its parameters"):
        Tool.from_function(loose)
