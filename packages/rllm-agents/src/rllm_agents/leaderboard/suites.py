"""Suites: which environments a leaderboard is made of, as small data files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from rllm_agents.errors import UserError

SUITES = Path(__file__).parent / "suites"
"""The suites that ship with the package."""
OPPONENTS = ("random", "expert")
"""Who sits opposite in a match."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_MAX_COUNT = 100_000


@dataclass(frozen=True)
class SuiteEntry:
    """One line of a suite: an environment, or a game against opponents. Read by the runner."""

    name: str
    """Its name in rows; the id without ``rllm/`` by default."""
    env: str = ""
    """A Gymnasium id; empty where it is a match."""
    match: str = ""
    """A game for several agents; empty where it is an environment."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment."""
    dataset: str = ""
    """A public data set whose rows are the tasks; empty: the environment draws its own."""
    opponents: tuple[str, ...] = ()
    """Of a match: who sits opposite, one after the other."""
    num_tasks: int = 32
    """Different tasks; of a match, games from each seat against each opponent."""
    attempts: int = 1
    """Episodes of each task."""
    max_tokens: int = 2048
    """Most tokens of an episode after its first prompt."""
    max_turns: int = 256
    """Most actions of an episode."""

    @property
    def id(self) -> str:
        """The id of what is played."""
        return self.env or self.match

    @property
    def digest(self) -> str:
        """SHA-256 of everything that decides what is played, in hexadecimal."""
        return _digest(dataclasses.asdict(self))


@dataclass(frozen=True)
class Suite:
    """Environments with their budgets, under one name. Made by `load_suite`."""

    name: str
    version: int
    """Raised with each change of entries or budgets."""
    summary: str
    entries: tuple[SuiteEntry, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of name, version and all entries, in hexadecimal."""
        return _digest([self.name, self.version, [e.digest for e in self.entries]])

    def entry(self, name: str) -> SuiteEntry:
        """Return the entry of a name.

        Raises:
            UserError: There is none.
        """
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise UserError(f"suite {self.name} has no entry {name!r:.80}")


def suite_names() -> tuple[str, ...]:
    """Return the names of the suites that ship with the package."""
    return tuple(sorted(path.stem for path in SUITES.glob("*.yaml")))


def load_suite(name: str) -> Suite:
    """Read a suite.

    Args:
        name: One that ships with the package, or a YAML file.

    Raises:
        UserError: There is none of this name, or the file says something that is not allowed.
    """
    path = SUITES / f"{name}.yaml" if name in suite_names() else Path(name).expanduser()
    if path.suffix not in (".yaml", ".yml"):
        raise UserError(
            f"there is no suite {name!r:.80}; there are {', '.join(suite_names())}, or give a "
            ".yaml file"
        )
    try:
        data = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"suite {name!r:.80} cannot be read: {error}") from error
    return _parse_suite(data, path.name)


def _parse_suite(data: Any, place: str) -> Suite:
    fields = _mapping(data, place, ("name", "version", "summary", "defaults", "entries"))
    name = str(fields.get("name", ""))
    _check_name(name, place)
    version = _count(fields.get("version"), f"{place}: version")
    rows = fields.get("entries")
    if not isinstance(rows, list) or not rows:
        raise UserError(f"{place}: entries must be a list of at least one, got {rows!r:.80}")
    defaults = fields.get("defaults") or {}
    entries = tuple(
        _parse_entry(row, defaults, f"{place}, entry {number}")
        for number, row in enumerate(rows, start=1)
    )
    names = [entry.name for entry in entries]
    twice = sorted({one for one in names if names.count(one) > 1})
    if twice:
        raise UserError(f"{place}: names of entries must differ, twice there is {', '.join(twice)}")
    return Suite(name, version, str(fields.get("summary", "")), entries)


def _parse_entry(row: Any, defaults: Any, place: str) -> SuiteEntry:
    known = [one.name for one in dataclasses.fields(SuiteEntry)]
    row = {"env": row} if isinstance(row, str) else row
    fields = {
        **_mapping(defaults, f"{place}: defaults", known),
        **_mapping(row, place, known),
    }
    env, match = str(fields.get("env", "")), str(fields.get("match", ""))
    if bool(env) == bool(match):
        raise UserError(f"{place}: needs either env or match, got env={env!r}, match={match!r}")
    name = str(fields.get("name") or (env or match).rpartition("/")[2])
    _check_name(name, place)
    opponents = tuple(fields.get("opponents", OPPONENTS)) if match else ()
    if any(opponent not in OPPONENTS for opponent in opponents) or (match and not opponents):
        raise UserError(f"{place}: opponents must be of {', '.join(OPPONENTS)}, got {opponents!r}")
    counts = {
        key: _count(fields[key], f"{place}: {key}")
        for key in ("num_tasks", "attempts", "max_tokens", "max_turns")
        if key in fields
    }
    return SuiteEntry(
        name=name,
        env=env,
        match=match,
        kwargs=_mapping(fields.get("kwargs") or {}, f"{place}: kwargs"),
        dataset=str(fields.get("dataset") or ""),
        opponents=opponents,
        **counts,
    )


def _check_name(name: str, place: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise UserError(
            f"{place}: name must be letters, digits, '.', '_' and '-', got {name!r:.80}"
        )


def _mapping(value: Any, place: str, known: Sequence[str] | None = None) -> dict[str, Any]:
    """Check that a value is a mapping with no other than the known keys; None allows any text."""
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise UserError(f"{place} must be a mapping, got {value!r:.80}")
    for key in value:
        if known is not None and key not in known:
            raise UserError(f"{place} has no field {key!r:.80}; there are {', '.join(known)}")
    return value


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MAX_COUNT:
        raise UserError(f"{name} must be a whole number in [1, {_MAX_COUNT}], got {value!r:.80}")
    return value


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
