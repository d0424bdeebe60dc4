"""What the commands share: options, ``--arg`` values, and which environment an id means."""

import argparse
import difflib
import json
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import gymnasium

from rllm_envs.cli.listing import KINDS, Kind, all_rows
from rllm_envs.errors import RllmEnvsError, UnknownEnvError, excerpt
from rllm_envs.multi_agent.catalog import find_game


class UsageError(RllmEnvsError):
    """The words of a command cannot be understood."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Raise the error instead of printing usage and ending the process.

        Raises:
            UsageError: Always.
        """
        raise UsageError(f"{message}; see {self.prog} --help")


def add_env_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose an environment and its arguments."""
    parser.add_argument(
        "--kind", choices=KINDS, help="which one, where an id has several: gymnasium by default"
    )
    add_arg_option(parser)


def add_arg_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--arg``."""
    parser.add_argument(
        *("--arg", "-a"),
        dest="arguments",
        metavar="NAME=JSON",
        action="append",
        default=[],
        help="an argument of the environment, such as size=5; may be repeated",
    )


def seed_number(text: str) -> int:
    """Return a seed as argparse reads it: an integer of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer of at least 0, got {excerpt(text)}")
    return int(text)


def parse_arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the arguments that ``NAME=JSON`` texts give; a value that is a bare word is a text.

    Raises:
        UsageError: A pair has no name, is given twice, or begins like JSON and is none.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--arg takes NAME=JSON, such as size=5; got {excerpt(pair)}")
        if name in arguments:
            raise UsageError(f"--arg gives {name!r} twice")
        arguments[name] = _value(name, value)
    return arguments


def _value(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        if text[:1] in ("[", "{", '"'):
            raise UsageError(
                f"--arg {name}: {excerpt(text)} is not JSON ({error}); write lists as [1, 2] and "
                'texts as "a" or a'
            ) from error
        return text


def choose_kind(env_id: str, kind: str | None) -> Kind:
    """Return which environment an id means: Gymnasium's where it is not told otherwise.

    Raises:
        UnknownEnvError: No environment has this id and kind; the message names the nearest.
    """
    is_gymnasium = ":" in env_id or env_id in gymnasium.registry
    games = [name for name in ("aec", "parallel") if find_game(env_id, name)]
    available = ["gymnasium"] * is_gymnasium + games
    if kind in available or (kind is None and available):
        return cast(Kind, kind or available[0])
    if available:
        raise UnknownEnvError(f"{env_id} is of the kind {' and '.join(available)}, not {kind}")
    known = [*gymnasium.registry, *(row.id for row in all_rows())]
    near = difflib.get_close_matches(env_id, known, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise UnknownEnvError(
        f"no environment is registered as {excerpt(env_id)}; {hint}`python -m rllm_envs list` "
        "shows those of this package"
    )
