"""``python -m rllm_envs``: list, show and play environments; check and begin one's own.

A user's mistake is one line on the error stream and exit code 2.
"""

import sys
from collections.abc import Sequence

from rllm_envs.cli import check, listing, play, scaffold, show
from rllm_envs.cli.arguments import Parser
from rllm_envs.errors import RllmEnvsError

COMMANDS = (listing, show, play, check, scaffold)
"""Modules with ``add_command``, in the order of the help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, ``list`` without one, and return its exit code.

    Args:
        arguments: The words after the program's name; those of the process by default.

    Returns:
        0; 1 where ``check`` finds a broken rule; 2 after a user's mistake.
    """
    parser = Parser(
        prog="python -m rllm_envs",
        description="List, show and play text environments; check and begin your own.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in COMMANDS:
        module.add_command(commands)
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parser.parse_args(words or ["list"])
        return options.run(options)
    except RllmEnvsError as error:
        sys.stderr.write(f"error: {' '.join(str(error).split())}\n")
        return 2
