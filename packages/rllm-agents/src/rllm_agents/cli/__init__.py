"""The command line: `rllm`, with commands of this package and of those that add to it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from typing import Any

import click

from rllm_agents.errors import AgentsError, UserError
from rllm_envs import RllmEnvsError

PLUGIN_GROUP = "rllm.commands"
"""Entry points of this group are commands: click commands, loaded when they are called."""

_OWN_COMMANDS = {
    "bench": ("rllm_agents.cli.bench", "command", "Leaderboards of policies on suites."),
    "eval": ("rllm_agents.cli.eval", "command", "Play tasks with a policy and report pass@k."),
    "report": ("rllm_agents.cli.report", "command", "Write a run as one file for a colleague."),
    "serve": ("rllm_agents.cli.serve", "command", "Serve a model to agents, and record them."),
    "view": ("rllm_agents.cli.view", "command", "Show a run in the browser."),
}
"""Name -> module, attribute, one line of help."""

_EXIT_USER_ERROR = 2
_EXIT_INTERRUPTED = 130

HELP = """Run, judge and train language agents on text environments.

\b
  rllm eval                                    the tiny model on the calculator task
  rllm eval env=rllm/Math-v0 env.dataset=test.jsonl policy=oracle
  rllm bench run --suite quick --policy tiny   a row of a leaderboard
  rllm serve                                   the tiny model behind an OpenAI-compatible address
  rllm view runs/mine                          curves, episodes and tokens in the browser
  rllm eval --help                             all settings, with their defaults

Settings are KEY=VALUE. Nothing is downloaded unless a model is named that is not on this machine.
"""


class CommandGroup(click.Group):
    """Loads a command only when it is called, and says errors in one line.

    Neither a slow nor a broken plugin is noticed before its own command is called.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return sorted({*_OWN_COMMANDS, *_plugins()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command; None where there is none of this name.

        Raises:
            UserError: It is another package's and cannot be loaded.
        """
        if cmd_name in _OWN_COMMANDS:
            module, attribute, _ = _OWN_COMMANDS[cmd_name]
            return getattr(import_module(module), attribute)
        plugin = _plugins().get(cmd_name)
        if plugin is None:
            return None
        try:
            command = plugin.load()
        except Exception as error:
            raise UserError(
                f"the command {cmd_name!r} of {_origin(plugin)} cannot be loaded: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not isinstance(command, click.Command):
            raise UserError(f"the command {cmd_name!r} of {_origin(plugin)} is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading them."""
        rows = [(name, text) for name, (_, _, text) in _OWN_COMMANDS.items()]
        rows += [
            (name, f"From {_origin(plugin)}; see `rllm {name} --help`.")
            for name, plugin in _plugins().items()
            if name not in _OWN_COMMANDS
        ]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and leave: 0 done, 2 the user's mistake, 1 a failure, 130 ctrl-C."""
        run: Any = super().main  # click declares it as overloads of its modes
        arguments = (args, prog_name, complete_var, False, windows_expand_args)
        if not standalone_mode:
            return run(*arguments, **extra)
        try:
            code = run(*arguments, **extra)
        except (UserError, RllmEnvsError) as error:
            code = _say(error, _EXIT_USER_ERROR)
        except click.ClickException as error:
            code = _say(error.format_message(), error.exit_code)
        except AgentsError as error:
            code = _say(error, 1)
        except (KeyboardInterrupt, click.Abort):
            code = _EXIT_INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


def _say(error: Exception | str, code: int) -> int:
    """Print an error in one line; return the exit code."""
    click.echo("error: " + " ".join(str(error).split()), err=True)
    return code


def _plugins() -> dict[str, EntryPoint]:
    """Commands of other installed packages; of two with one name, the first package's."""
    found: dict[str, EntryPoint] = {}
    for plugin in sorted(entry_points(group=PLUGIN_GROUP), key=_origin):
        found.setdefault(plugin.name, plugin)
    return found


def _origin(plugin: EntryPoint) -> str:
    """Return the name of the package that a plugin comes from."""
    return plugin.dist.name if plugin.dist is not None else plugin.module


@click.command(cls=CommandGroup, name="rllm", help=HELP, no_args_is_help=False)
@click.version_option(version("rllm-agents"), prog_name="rllm")
def main() -> None:
    """Run `rllm`."""
