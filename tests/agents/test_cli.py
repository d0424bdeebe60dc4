"""The `rllm` command group: help, plugins, errors in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from rllm_agents.cli import CommandGroup, main
from rllm_agents.errors import EngineError, UserError
from rllm_envs import RllmEnvsError


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def test_help_lists_the_commands_with_examples() -> None:
    result = run("--help")
    assert result.exit_code == 0
    assert "rllm eval env=rllm/Math-v0" in result.output
    assert "Play tasks with a policy" in result.output


def test_version_is_that_of_the_package() -> None:
    assert run("--version").output == "rllm, version 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evil"], "No such command 'evil'"),
        (["eval", "--foo"], "No such option '--foo'"),
        (["eval", "foo"], "settings are written KEY=VALUE, got 'foo'"),
        (["eval", "num_task=3"], "did you mean num_tasks?"),
    ],
)
def test_a_mistake_gives_one_line_and_exit_code_2(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert words in result.output


class DomainError(RllmEnvsError):
    pass


@pytest.mark.parametrize(
    ("error", "code", "output"),
    [
        (UserError("two\n  lines"), 2, "error: two lines\n"),
        (DomainError("of the envs"), 2, "error: of the envs\n"),
        (EngineError("the engine"), 1, "error: the engine\n"),
        (click.BadParameter("bad"), 2, "error: Invalid value: bad\n"),
        (KeyboardInterrupt(), 130, "\n"),
    ],
)
def test_errors_become_exit_codes(error: BaseException, code: int, output: str) -> None:
    group = CommandGroup("rllm")

    @group.command()
    def fail() -> None:
        raise error

    group.get_command = lambda ctx, name: fail  # type: ignore[method-assign]
    result = CliRunner().invoke(group, ["fail"])
    assert (result.exit_code, result.output) == (code, output)


def test_a_bug_is_not_hidden() -> None:
    group = CommandGroup("rllm")

    @group.command()
    def fail() -> None:
        raise ZeroDivisionError

    group.get_command = lambda ctx, name: fail  # type: ignore[method-assign]
    assert isinstance(CliRunner().invoke(group, ["fail"]).exception, ZeroDivisionError)


def write_plugin(site: Path, body: str) -> None:
    """A distribution on the path that adds the command `extra`."""
    (site / "extra_plugin.py").write_text(body)
    info = site / "extra_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra-plugin\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rllm.commands]\nextra = extra_plugin:command\n")


GOOD_PLUGIN = """
import click
@click.command()
@click.argument("name")
def command(name):
    click.echo(f"hello {name}")
"""


@pytest.fixture
def plugin_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "extra_plugin", raising=False)
    return tmp_path


def test_other_packages_add_commands(plugin_path: Path) -> None:
    write_plugin(plugin_path, GOOD_PLUGIN)
    assert "From extra-plugin; see `rllm extra --help`." in run("--help").output
    assert "extra_plugin" not in sys.modules
    assert run("extra", "you").output == "hello you\n"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import no_such_thing", "ModuleNotFoundError: No module named 'no_such_thing'"),
        ("command = 3", "is no click command"),
        ("raise SystemError('boom')", "SystemError: boom"),
    ],
)
def test_a_broken_plugin_harms_only_its_own_command(
    plugin_path: Path, body: str, words: str
) -> None:
    write_plugin(plugin_path, body)
    assert run("--help").exit_code == 0
    assert run("eval", "--help").exit_code == 0
    result = run("extra")
    assert result.exit_code == 2
    assert result.output.startswith("error: the command 'extra' of extra-plugin ")
    assert words in result.output


def test_a_plugin_cannot_take_the_place_of_a_command(plugin_path: Path) -> None:
    write_plugin(plugin_path, GOOD_PLUGIN)
    points = plugin_path / "extra_plugin-1.0.dist-info" / "entry_points.txt"
    points.write_text("[rllm.commands]\neval = extra_plugin:command\n")
    assert "KEY=VALUE" in run("eval", "--help").output


def test_neither_help_nor_an_oracle_loads_torch_transformers_or_plugins(tmp_path: Path) -> None:
    write_plugin(tmp_path, "raise SystemError")
    code = (
        "import sys, json\n"
        "from rllm_agents.cli import main\n"
        "for arguments in (['--help'], ['eval', '--help'],\n"
        "                  ['eval', 'policy=oracle', 'num_tasks=2', 'run_dir=r']):\n"
        "    try: main(arguments)\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "names = ('torch', 'transformers', 'extra_plugin', 'rllm_learn', 'hydra')\n"
        "print(json.dumps([name for name in names if name in sys.modules]))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr
    assert json.loads(finished.stdout.splitlines()[-1]) == []
