"""`key=value` arguments onto typed dataclasses: what is unknown or of a wrong type is refused."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import itertools
import textwrap
import types
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from rllm_agents.errors import UserError

SHORTHANDS = {"env": "env.id", "model": "model.path", "engine": "engine.name"}
"""What may be written short, in every command."""

Settings = TypeVar("Settings")

_TYPE_NAMES: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    dict: "a mapping such as {digits: 3}",
    list: "a list such as [1, 2]",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One leaf of a settings class. Made by `describe`, read by help texts."""

    key: str
    """Dotted path."""
    type: Any
    """Its annotation, resolved."""
    default: Any
    meaning: str
    """The literal under the field."""

    @property
    def is_open(self) -> bool:
        """Whether users put keys of their own below it."""
        return _plain(self.type) is dict

    @property
    def is_optional(self) -> bool:
        """Whether it may be null."""
        return type(None) in get_args(self.type)

    @property
    def allowed(self) -> str:
        """What its value must be, in words."""
        plain = _plain(self.type)
        words = _TYPE_NAMES.get(plain, getattr(plain, "__name__", str(plain)))
        return f"{words}, or null" if self.is_optional else words


def expand_shorthands(settings: Sequence[str]) -> list[str]:
    """Write shorthands out: `env=ID` becomes `env.id=ID`.

    Raises:
        UserError: An argument is no `key=value` (nor `~key`, which Hydra knows).
    """
    expanded = []
    for setting in settings:
        key, equals, value = setting.partition("=")
        if (not equals and not key.startswith("~")) or not key.strip("+~ "):
            raise UserError(f"settings are written KEY=VALUE, got {setting!r}")
        expanded.append(f"{SHORTHANDS.get(key, key)}{equals}{value}")
    return expanded


def parse_settings(schema: type[Settings], settings: Sequence[str]) -> Settings:
    """Return an instance of a dataclass of dataclasses with some fields replaced.

    Texts are taken as they are, other values in YAML's notation. Nothing is interpolated.

    Args:
        schema: The dataclass; all fields have defaults.
        settings: `key=value` arguments, shorthands included; the last of equal keys counts.

    Raises:
        UserError: A key is unknown (the nearest is named) or a value has the wrong type; or what
            the dataclasses raise themselves for values out of range.
    """
    known = {setting.key: setting for setting in describe(schema)}
    open_keys = {key for key, setting in known.items() if setting.is_open}
    config = OmegaConf.structured(schema)
    for argument in expand_shorthands(settings):
        key, _, text = argument.partition("=")
        setting = known[resolve_key(key, list(known), open_keys)]
        try:
            OmegaConf.update(config, key, _value(setting, key, text))
        except (OmegaConfBaseException, YAMLError) as error:
            wanted = setting.allowed if key == setting.key else "a YAML value"
            raise UserError(f"{key} must be {wanted}, got {text!r}") from error
    result = OmegaConf.to_object(config)
    assert isinstance(result, schema)
    return result


def describe(schema: type[Any], prefix: str = "") -> Iterator[Setting]:
    """Yield the leaves of a dataclass of dataclasses in the order they are written."""
    types_by_name = get_type_hints(schema)
    meanings = _field_meanings(schema)
    for field in dataclasses.fields(schema):
        annotation = types_by_name[field.name]
        key = f"{prefix}{field.name}"
        if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
            yield from describe(annotation, f"{key}.")
            continue
        factory = field.default_factory
        default = field.default if factory is dataclasses.MISSING else factory()
        yield Setting(key, annotation, default, meanings.get(field.name, ""))


def settings_table(schema: type[Any]) -> list[tuple[str, str]]:
    """Return rows of `key=default` and meaning, for help texts."""
    return [
        (f"{setting.key}={_notation(setting.default)}", setting.meaning)
        for setting in describe(schema)
    ]


def resolve_key(key: str, known: Sequence[str], open_keys: Collection[str]) -> str:
    """Return the known key that a key is, or that it lies below.

    Args:
        key: As a user wrote it.
        known: All settings, dotted.
        open_keys: Those of them that hold keys of the user's own.

    Raises:
        UserError: There is none; the nearest are named.
    """
    if key in known:
        return key
    for parent in open_keys:
        if key.startswith(f"{parent}."):
            return parent
    inside = [k for k in known if k.startswith(f"{key}.")]
    if inside:
        raise UserError(f"{key!r} holds several settings; name one of them: {', '.join(inside)}")
    section, _, leaf = key.rpartition(".")
    siblings = [k for k in known if section and k.startswith(f"{section}.")]
    near = (
        [k for k in known if k.rpartition(".")[2] == leaf]
        or difflib.get_close_matches(key, siblings, n=2, cutoff=0.75)
        or siblings
        or difflib.get_close_matches(key, known, n=2, cutoff=0.6)
        or [
            k for k in known if difflib.get_close_matches(leaf, [k.rpartition(".")[2]], cutoff=0.75)
        ]
    )
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    raise UserError(f"unknown setting {key!r}; {hint}")


def _value(setting: Setting, key: str, text: str) -> Any:
    """Read a value as its setting wants it."""
    literal = text.replace("${", "\\${")  # OmegaConf would look up what stands in the braces
    if _plain(setting.type) is str:
        return None if setting.is_optional and text == "null" else literal
    parsed = OmegaConf.from_dotlist([f"value={literal}"])
    container = OmegaConf.to_container(parsed, resolve=False)  # keeps what is escaped so
    assert isinstance(container, dict)
    return container["value"]


def _plain(annotation: Any) -> Any:
    """Return a type without its optional None and its parameters."""
    if get_origin(annotation) in (Union, types.UnionType):
        annotation = next(a for a in get_args(annotation) if a is not type(None))
    return get_origin(annotation) or annotation


def _notation(value: Any) -> str:
    """Write a default as a user would."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list) and not value:
        return "{}" if isinstance(value, dict) else "[]"
    return str(value)


def _field_meanings(schema: type[Any]) -> dict[str, str]:
    """Read the literals under the fields of a dataclass and its bases from their sources."""
    meanings: dict[str, str] = {}
    for base in reversed(schema.__mro__):
        if dataclasses.is_dataclass(base):
            meanings |= _own_field_meanings(base)
    return meanings


def _own_field_meanings(schema: type[Any]) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(schema)))
    body = next(node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)).body
    meanings = {}
    for field, literal in itertools.pairwise(body):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(literal, ast.Expr)
            and isinstance(literal.value, ast.Constant)
            and isinstance(literal.value.value, str)
        ):
            meanings[field.target.id] = " ".join(literal.value.value.split())
    return meanings
