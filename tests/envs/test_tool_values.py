import time

import pytest

from rllm_envs import ToolError
from rllm_envs.tools.values import check_value, read_json

TREE = {
    "$ref": "#/$defs/Node",
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"$ref": "#/$defs/Node"}},
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (1, True),
        (1, {}),
        (None, {"type": ["string", "null"]}),
        (None, {"type": "null"}),
        (1.5, {"type": "number", "minimum": 1.5, "exclusiveMaximum": 2}),
        ("abc", {"minLength": 3, "maxLength": 3}),
        ([1, "a"], {"prefixItems": [{"type": "integer"}, {"type": "string"}], "maxItems": 2}),
        (3, {"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"x": 1}, {"allOf": [{"required": ["x"]}, {"properties": {"x": {"const": 1}}}]}),
        ({"name": "a", "next": {"name": "b"}}, TREE),
        ({"a": 1}, {"type": "object"}),
        ({"a": 1}, {"additionalProperties": False, "patternProperties": {"a": {}}}),
        ("b", {"pattern": "a"}),
        ("a", {"$ref": "http://elsewhere/schema"}),
        (1, {"exclusiveMinimum": True, "minimum": 1}),
    ],
)
def test_what_fits_passes(value, schema):
    check_value(value, schema, "'v'")


@pytest.mark.parametrize(
    ("value", "schema", "reason"),
    [
        (1, False, "'v' is not allowed"),
        (True, {"type": ["integer", "null"]}, "'v' must be of type integer or null, got True"),
        (1, {"enum": [True, "a"]}, "'v' must be one of true, \"a\"; got 1"),
        (2, {"const": 1}, "must be one of 1"),
        (1, {"minimum": 1.5}, "'v' is too small, got 1: minimum 1.5"),
        (2, {"exclusiveMaximum": 2}, "'v' is too large, got 2: exclusiveMaximum 2"),
        ("ab", {"minLength": 3}, "'v' must have 3 to inf parts, got 2"),
        ([1, 2], {"maxItems": 1}, "'v' must have 0 to 1 parts, got 2"),
        ([1, 2], {"prefixItems": [{"type": "integer"}], "items": False}, r"\[1\] is not allowed"),
        ({"name": "a", "next": {}}, TREE, "'v'.next needs 'name'"),
        ({"name": "a", "next": {"name": 1}}, TREE, "'v'.next.name must be of type string"),
        ({"a": 1}, {"additionalProperties": {"type": "string"}}, "'v'.a must be of type string"),
        ({}, {"$ref": "#"}, "too deep"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(value, schema, reason):
    with pytest.raises(ToolError, match=reason):
        check_value(value, schema, "'v'")


def test_options_inside_options_do_not_explode():
    node = {"type": "object", "properties": {"a": {"$ref": "#/$defs/N"}}}
    options = {"anyOf": [node | {"title": str(number)} for number in range(9)]}
    schema = {"$ref": "#/$defs/N", "$defs": {"N": options}}
    value: object = 1
    for _ in range(40):  # 9 ** 40 ways through the options
        value = {"a": value}
    start = time.perf_counter()
    with pytest.raises(ToolError):
        check_value(value, schema, "'v'")
    assert time.perf_counter() - start < 60


def test_nan_is_no_json():
    assert read_json('{"a": [1e3, null]}') == {"a": [1000.0, None]}
    for text in ("NaN", "[Infinity]", "{", "[" * 10**5, "9" * 5000):
        with pytest.raises(ToolError, match="not JSON"):
            read_json(text)
