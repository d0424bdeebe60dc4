"""`key=value` arguments onto dataclasses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from rllm_agents.cli.overrides import (
    describe,
    expand_shorthands,
    parse_settings,
    settings_table,
)
from rllm_agents.errors import UserError


@dataclass
class Inner:
    """A part."""

    id: str = "some/Env-v0"
    """Which one,
    in two lines."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Open."""
    note: str | None = None


@dataclass
class Outer:
    """A whole."""

    env: Inner = field(default_factory=Inner)
    rate: float = 0.5
    """Units a second."""
    count: int | None = None
    """How many."""
    is_loud: bool = False
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise UserError(f"rate must be at least 0, got {self.rate}")


def test_without_arguments_all_defaults_hold() -> None:
    assert parse_settings(Outer, []) == Outer()


def test_values_take_the_types_of_their_fields() -> None:
    settings = parse_settings(
        Outer, ["rate=1e-3", "count=7", "is_loud=true", "sizes=[1, 2]", "env.kwargs.digits=3"]
    )
    assert settings.rate == 0.001
    assert settings.count == 7
    assert settings.is_loud is True
    assert settings.sizes == [1, 2]
    assert settings.env.kwargs == {"digits": 3}


def test_open_mappings_take_whole_values_and_nested_keys() -> None:
    settings = parse_settings(
        Outer, ["env.kwargs={a: 1, b: [x, 2.5]}", "env.kwargs.c.d=null", "env.kwargs.a=yes!"]
    )
    assert settings.env.kwargs == {"a": "yes!", "b": ["x", 2.5], "c": {"d": None}}


@pytest.mark.parametrize(
    "text", ["yes", "1", "a: b", "{x}", "${oc.env:HOME}", "x=y", " two words ", "'", "[", ""]
)
def test_texts_are_taken_as_they_are(text: str) -> None:
    assert parse_settings(Outer, [f"env.id={text}"]).env.id == text


def test_nothing_is_interpolated_in_open_mappings() -> None:
    settings = parse_settings(
        Outer, ["env.kwargs.path=${oc.env:HOME}", "env.kwargs.more=[{a: '${rate}'}]"]
    )
    assert settings.env.kwargs == {"path": "${oc.env:HOME}", "more": [{"a": "${rate}"}]}


def test_null_is_none_where_that_is_allowed_and_text_elsewhere() -> None:
    settings = parse_settings(Outer, ["count=3", "count=null", "env.note=null", "env.id=null"])
    assert (settings.count, settings.env.note, settings.env.id) == (None, None, "null")


def test_the_last_of_equal_keys_counts() -> None:
    assert parse_settings(Outer, ["count=1", "count=2"]).count == 2


def test_shorthands_are_written_out() -> None:
    given = ["env=a/B-v0", "model=x=y", "engine=vllm", "env.id=c", "other=1", "~env.kwargs"]
    assert expand_shorthands(given) == [
        "env.id=a/B-v0",
        "model.path=x=y",
        "engine.name=vllm",
        "env.id=c",
        "other=1",
        "~env.kwargs",
    ]
    assert parse_settings(Outer, ["env=a/B-v0"]).env.id == "a/B-v0"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("rat=1", "unknown setting 'rat'; did you mean rate?"),
        ("env.ids=1", "unknown setting 'env.ids'; did you mean env.id?"),
        ("kwargs.a=1", "unknown setting 'kwargs.a'; did you mean env.kwargs?"),
        ("zzz=1", "unknown setting 'zzz'; there are env.id, env.kwargs"),
        ("note=x", "unknown setting 'note'; did you mean env.note?"),
        ("env.id.x=1", "unknown setting 'env.id.x'; did you mean env.id"),
        ("rate=fast", "rate must be a number, got 'fast'"),
        ("rate=", "rate must be a number, got ''"),
        ("count=1.5", "count must be a whole number, or null, got '1.5'"),
        ("is_loud=loud", "is_loud must be true or false, got 'loud'"),
        ("sizes=[1, x]", "sizes must be a list such as [1, 2], got '[1, x]'"),
        ("env.kwargs=3", "env.kwargs must be a mapping such as {digits: 3}, got '3'"),
        ("env.kwargs.a={", "env.kwargs.a must be a YAML value, got '{'"),
        ("rate", "settings are written KEY=VALUE, got 'rate'"),
        ("=3", "settings are written KEY=VALUE, got '=3'"),
        ("rate=-1", "rate must be at least 0, got -1.0"),
    ],
)
def test_mistakes_name_the_place_the_value_and_what_is_allowed(argument: str, message: str) -> None:
    with pytest.raises(UserError) as error:
        parse_settings(Outer, [argument])
    assert str(error.value).startswith(message)


def test_a_section_is_no_setting() -> None:
    @dataclass
    class Renamed:
        part: Inner = field(default_factory=Inner)

    with pytest.raises(UserError, match=r"'part' holds several settings; .*: part\.id, part\.kw"):
        parse_settings(Renamed, ["part=3"])


def test_help_rows_have_default_and_meaning_of_each_leaf() -> None:
    assert settings_table(Outer) == [
        ("env.id=some/Env-v0", "Which one, in two lines."),
        ("env.kwargs={}", "Open."),
        ("env.note=null", ""),
        ("rate=0.5", "Units a second."),
        ("count=null", "How many."),
        ("is_loud=false", ""),
        ("sizes=[]", ""),
    ]
    assert [s.key for s in describe(Outer) if s.is_open] == ["env.kwargs"]
