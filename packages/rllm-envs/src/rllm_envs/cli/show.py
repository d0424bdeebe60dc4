"""``python -m rllm_envs show ID``: what an environment asks, rewards and accepts."""

import argparse
import importlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

from rllm_envs.cli.arguments import add_env_options, choose_kind, parse_arguments, seed_number
from rllm_envs.cli.listing import all_rows
from rllm_envs.cli.transcripts import example
from rllm_envs.errors import (
    MissingDependencyError,
    SandboxUnavailableError,
    UnknownEnvError,
    excerpt,
)
from rllm_envs.gym_env import GymEnv
from rllm_envs.multi_agent.catalog import find_game


def add_command(commands: Any) -> None:
    """Add ``show`` to the parser."""
    parser = commands.add_parser(
        "show", help="show what an environment asks, rewards and accepts, and an example"
    )
    parser.add_argument("env_id", metavar="ID", help="such as rllm/Math-v0")
    parser.add_argument(
        "--seed", type=seed_number, default=0, help="seed of the example (default 0)"
    )
    add_env_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the page of an environment.

    Raises:
        RllmEnvsError: The id is unknown, or the environment refuses an argument.
    """
    kind = choose_kind(options.env_id, options.kind)
    arguments = parse_arguments(options.arguments)
    try:
        # The example first: an argument that is refused leaves no half of a page.
        played = example(options.env_id, kind, arguments, seed=options.seed)
    except (MissingDependencyError, SandboxUnavailableError) as error:
        played = f"None here: {error}"
    lines = [f"{options.env_id} ({kind})", "", documentation(options.env_id, kind)]
    lines += ["", "## Signature", ", ".join(signature(options.env_id, kind)) or "none"]
    if played:
        lines += ["", f"## Example (seed {options.seed})", played]
    others = [r.kind for r in all_rows() if r.id == options.env_id and r.kind != kind]
    lines += [f"\nThe same id with --kind {other} is PettingZoo's." for other in others]
    text = "\n".join(lines) + "\n"
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    return 0


def documentation(env_id: str, kind: str) -> str:
    """Return the docstring of an environment's class, or of a game's."""
    return inspect.getdoc(_creator(env_id, kind)) or ""


def signature(env_id: str, kind: str) -> list[str]:
    """Return the arguments as ``name=default``, with the defaults of the id."""
    creator, registered = _creator(env_id, kind), _registered(env_id, kind)
    described = []
    for name, parameter in inspect.signature(creator).parameters.items():
        default = registered.get(name, parameter.default)
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            described.append(str(parameter))
        else:
            described.append(name if default is parameter.empty else f"{name}={default!r}")
    if kind == "aec":
        described.append("max_retries=2")
    if kind != "gymnasium":
        described += ["split='train'", "render_mode=None"]
    return described


def _creator(env_id: str, kind: str) -> Any:
    if kind != "gymnasium":
        entry = find_game(env_id, kind)
        if entry is None:
            raise UnknownEnvError(f"no {kind} game has the id {excerpt(env_id)}")
        module, _, name = entry.game.partition(":")
        return getattr(importlib.import_module(module), name)
    entry_point = _spec(env_id).entry_point
    if isinstance(entry_point, str):
        return load_env_creator(entry_point)
    return entry_point or type(GymEnv(env_id).env.unwrapped)


def _registered(env_id: str, kind: str) -> Mapping[str, Any]:
    if kind == "gymnasium":
        return _spec(env_id).kwargs
    entry = find_game(env_id, kind)
    return entry.kwargs if entry else {}


def _spec(env_id: str) -> Any:
    module, _, name = env_id.rpartition(":")
    if module:
        importlib.import_module(module)
    return gymnasium.spec(name)
