"""`rllm bench site`: leaderboards, curves and transcripts as pages that need no server."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from rllm_agents.bench_site import read_boards, read_curves, write_site
from rllm_agents.cli.bench_settings import BenchSiteSettings
from rllm_agents.cli.overrides import parse_settings
from rllm_agents.cli.settings_command import SettingsCommand
from rllm_agents.errors import UserError
from rllm_agents.leaderboard import load_suite, suite_names

_MAX_TASKS = 20
_MAX_SHOWN_PROBLEMS = 10

HELP = """Write a site: leaderboards to sort and filter, curves, transcripts, two policies compared.

DIR/index.html is opened in a browser as it is; no server is needed, and nothing is loaded from
elsewhere. Transcripts are made by playing recorded actions again. What an earlier site left in
DIR/data is removed.

\b
  rllm bench site --out site
  rllm bench site --out site tasks=0
  rllm bench site --out site --suite mine.yaml results=runs/rows
"""


class _SiteCommand(SettingsCommand):
    schema = BenchSiteSettings


@click.command("site", cls=_SiteCommand, help=HELP)
@click.option(
    "--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="A directory."
)
@click.option(
    "--suite", "suites", metavar="SUITE", multiple=True,
    help="Shown, several times for several; by default all that ship with rllm and have rows.",
)  # fmt: skip
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
def site_command(out: Path, suites: tuple[str, ...], settings: tuple[str, ...]) -> None:
    """Run `rllm bench site`."""
    checked = parse_settings(BenchSiteSettings, settings)
    if not 0 <= checked.tasks <= _MAX_TASKS:
        raise UserError(f"tasks must be in [0, {_MAX_TASKS}], got {checked.tasks}")
    loaded = [load_suite(name) for name in suites or suite_names()]
    names = [suite.name for suite in loaded]
    if len(set(names)) < len(names):
        raise UserError(f"--suite names a suite twice: {', '.join(names)}")
    boards = read_boards(Path(checked.results).expanduser(), loaded)
    curves, broken = read_curves(Path(checked.curves).expanduser())
    with Console(stderr=True).status("reading rows") as status:
        written = write_site(
            out.expanduser(),
            boards,
            curves,
            tasks=checked.tasks,
            on_entry=lambda name: status.update(f"transcripts of {name}"),
        )
    problems = [*broken, *written.problems]
    for problem in problems[:_MAX_SHOWN_PROBLEMS]:
        click.echo(f"not shown as it is: {' '.join(problem.split())[:300]}", err=True)
    rest = len(problems) - _MAX_SHOWN_PROBLEMS
    if rest > 0:
        click.echo(f"... and {rest} more", err=True)
    rows = sum(len(board.played) for board in boards)
    click.echo(
        f"{written.page}: {rows} rows of {len(boards)} suites, {len(curves)} curves, "
        f"{written.num_bytes / 1e6:.1f} MB"
    )
