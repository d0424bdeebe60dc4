"""``python -m rllm_envs new NAME``: a working environment and its test, to be changed."""

import argparse
import importlib.util
import keyword
import re
import sys
from pathlib import Path
from typing import Any

from rllm_envs.cli.arguments import UsageError
from rllm_envs.cli.templates import (
    MULTI_TURN,
    MULTI_TURN_TEST,
    SINGLE_TURN,
    SINGLE_TURN_TEST,
)
from rllm_envs.errors import excerpt

NAMESPACE = "my"
MAX_NAME_LENGTH = 40


def add_command(commands: Any) -> None:
    """Add ``new`` to the parser."""
    parser = commands.add_parser(
        "new", help="write a working environment of your own, and its test"
    )
    parser.add_argument("name", metavar="NAME", help="of the module, such as word_count")
    parser.add_argument(
        "--multi-turn", action="store_true", help="a game of several turns; one question otherwise"
    )
    parser.add_argument(
        "--directory", type=Path, default=Path(), help="where to write (default: here)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the two files and say what to do with them.

    Raises:
        UsageError: The name cannot be that of a module, the directory is none, or a file is there.
    """
    name, directory = _checked_name(options.name), options.directory
    if not directory.is_dir():
        raise UsageError(f"{str(directory)!r:.200} is no directory; make it first")
    words = "".join(part.capitalize() for part in name.removesuffix("_env").split("_"))
    fields = {
        "name": name,
        "class_name": f"{words}Env",
        "env_id": f"{NAMESPACE}/{words}-v0",
    }
    templates = (
        (MULTI_TURN, MULTI_TURN_TEST) if options.multi_turn else (SINGLE_TURN, SINGLE_TURN_TEST)
    )
    paths = (directory / f"{name}.py", directory / f"test_{name}.py")
    for path in paths:
        if path.exists():
            raise UsageError(f"{path} exists and is not overwritten; choose another name")
    _check_that_no_module_is_called(name)
    for path, template in zip(paths, templates, strict=True):
        try:
            # "x": a file that has come into being since is not overwritten either.
            with path.open("x", encoding="utf-8") as file:
                file.write(template.substitute(fields))
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
    sys.stdout.write(
        f"wrote {paths[0]} and {paths[1]}\n\n"
        f"python -m rllm_envs check {paths[0]}:{fields['env_id']}\n"
        f"python -m pytest {paths[1]}\n"
    )
    return 0


def _checked_name(name: str) -> str:
    is_word = re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) and len(name) <= MAX_NAME_LENGTH
    if not is_word or keyword.iskeyword(name) or name.startswith("test_"):
        raise UsageError(
            f"NAME must be that of a module, small letters, digits and single _, at most "
            f"{MAX_NAME_LENGTH} characters and no test_, such as word_count; got {excerpt(name)}"
        )
    return name


def _check_that_no_module_is_called(name: str) -> None:
    if name in sys.stdlib_module_names or importlib.util.find_spec(name) is not None:
        raise UsageError(f"{name!r} is the name of another module; choose another one")
