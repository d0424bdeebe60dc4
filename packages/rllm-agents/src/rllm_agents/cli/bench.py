"""`rllm bench`: leaderboards of policies on suites of environments."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from rllm_agents.cli.bench_entrants import Policy, find_policy, suite_sampling
from rllm_agents.cli.bench_settings import BenchRunSettings, BenchTableSettings
from rllm_agents.cli.bench_site import site_command
from rllm_agents.cli.overrides import parse_settings
from rllm_agents.cli.settings_command import SettingsCommand
from rllm_agents.errors import UserError
from rllm_agents.leaderboard import (
    EntryPlayed,
    Suite,
    SuiteEntry,
    SuiteRun,
    leaderboard,
    load_suite,
    make_row,
    play_suite,
    read_rows,
    reference_scores,
    row_path,
    suite_names,
    verify_row,
    write_between_marks,
)
from rllm_agents.leaderboard.figures import entry_figures
from rllm_agents.leaderboard.provenance import num_cores
from rllm_agents.leaderboard.rows import MAX_SEED, REFERENCES, actions_path

_LARGE_BYTES = 1_000_000
_EXIT_REFUSED = 1

HELP = """Leaderboards: play a suite of environments, check rows, print tables.

\b
  rllm bench suites
  rllm bench run --suite quick --policy tiny
  rllm bench run --suite core --policy runs/mine
  rllm bench verify benchmarks/results/leaderboard/quick/tiny.json
  rllm bench table --suite quick
  rllm bench site --out site
"""

RUN_HELP = """Play a suite with a policy and write its row, RESULTS/<suite>/<name>.json.

Scores stand beside those of random play (0) and of the oracle (1), which are played first where
their rows are missing. Episodes are kept as they come in: the same command goes on where it was
stopped, and plays nothing twice.

\b
  rllm bench run --suite quick --policy random
  rllm bench run --suite quick --policy tiny
  rllm bench run --suite quick --policy runs/mine name=tiny-grpo
  rllm bench run --suite math --policy Qwen/Qwen3-0.6B adapter=path/to/adapter engine=vllm
  rllm bench run --suite tools --policy http://localhost:8000/v1 model=Qwen/Qwen3-4B

--suite and --policy are the settings suite= and policy=; others are KEY=VALUE. model= and engine=
are short for model.path= and engine.name=.
"""

VERIFY_HELP = """Play the recorded actions of rows again, from suite and seed, and compare.

Refuses a row (exit code 1) whose actions earn another reward than it says, whose figures are not
those of its episodes, or that was played on other tasks. No model is needed.
"""

TABLE_HELP = """Print a suite's leaderboard as Markdown, and write it to RESULTS/<suite>/README.md.

\b
  rllm bench table --suite quick
  rllm bench table --suite quick page=docs/leaderboard.md
"""


class _RunCommand(SettingsCommand):
    schema = BenchRunSettings


class _TableCommand(SettingsCommand):
    schema = BenchTableSettings


@click.group("bench", help=HELP)
def command() -> None:
    """Run `rllm bench`."""


command.add_command(site_command)


@command.command("run", cls=_RunCommand, help=RUN_HELP)
@click.option("--suite", metavar="SUITE", help="What is played.")
@click.option("--policy", metavar="POLICY", help="Who plays.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
def run_command(suite: str | None, policy: str | None, settings: tuple[str, ...]) -> None:
    """Run `rllm bench run`."""
    checked = parse_settings(BenchRunSettings, _with_options(settings, suite=suite, policy=policy))
    if checked.workers is not None and checked.workers < 1:
        raise UserError(f"workers must be at least 1, or null, got {checked.workers}")
    if not 0 <= checked.seed <= MAX_SEED:
        raise UserError(f"seed must be in [0, {MAX_SEED}], got {checked.seed}")
    loaded, chosen = load_suite(checked.suite), find_policy(checked)
    results = Path(checked.results).expanduser()
    if chosen.name in REFERENCES and not chosen.script == chosen.name:
        raise UserError(f"the row {chosen.name!r} is that of policy={chosen.name}; choose a name")
    chosen.identity()  # a model that is not there is said before anything is played
    play_references(loaded, checked, results)
    run = _suite_run(loaded, chosen, checked, seed=checked.seed)
    row = make_row(run, _play(run), results)
    path = row_path(results, loaded.name, chosen.name)
    total = row["total"]
    for name in ("normalised", "score", "solved"):
        value, low, high = total[name]
        click.echo(f"{name:<11}{value:.3f}  (95 %: {low:.3f} to {high:.3f})")
    click.echo(str(path))
    actions = actions_path(path)
    if actions.stat().st_size > _LARGE_BYTES:
        click.echo(
            f"{actions} has {actions.stat().st_size:,} bytes: too large for a repository; publish "
            "it elsewhere, and put it there again to verify the row",
            err=True,
        )


@command.command("verify", help=VERIFY_HELP)
@click.argument("rows", nargs=-1, required=True, metavar="ROW...")
@click.option("--suite", metavar="SUITE", help="A .yaml file, for rows of a suite of your own.")
def verify_command(rows: tuple[str, ...], suite: str | None) -> int:
    """Run `rllm bench verify`."""
    loaded = None if suite is None else load_suite(suite)
    num_refused = 0
    for name in rows:
        wrong = verify_row(Path(name).expanduser(), loaded)
        click.echo(f"{name}: {'refused' if wrong else 'holds'}")
        for one in wrong[:20]:
            click.echo(f"  {' '.join(one.split())[:300]}")
        if len(wrong) > 20:
            click.echo(f"  ... and {len(wrong) - 20} more")
        num_refused += bool(wrong)
    return _EXIT_REFUSED if num_refused else 0


@command.command("table", cls=_TableCommand, help=TABLE_HELP)
@click.option("--suite", metavar="SUITE", help="Which leaderboard.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
def table_command(suite: str | None, settings: tuple[str, ...]) -> None:
    """Run `rllm bench table`."""
    checked = parse_settings(BenchTableSettings, _with_options(settings, suite=suite))
    loaded, results = load_suite(checked.suite), Path(checked.results).expanduser()
    rows = read_rows(results, loaded)
    if not rows:
        raise UserError(
            f"there are no rows of {loaded.name}, version {loaded.version}, under {results}; "
            f"make one: rllm bench run --suite {checked.suite} --policy random"
        )
    text = leaderboard(loaded, rows)
    click.echo(text)
    page = results / loaded.name / "README.md"
    page.write_text(f"# {loaded.name}\n\n{text}", "utf-8", newline="\n")
    if checked.page is not None:
        write_between_marks(Path(checked.page).expanduser(), loaded.name, text)


@command.command("suites", help="List the suites.")
def suites_command() -> None:
    """Run `rllm bench suites`."""
    for name in suite_names():
        suite = load_suite(name)
        click.echo(f"{name:<12}{len(suite.entries):>4} entries  {suite.summary}")


def play_references(suite: Suite, settings: BenchRunSettings, results: Path) -> None:
    """Write the rows of random play and of the oracle, where this version's are not there.

    Raises:
        UserError: An environment or its data is not there.
    """
    if set(reference_scores(results, suite)) == set(REFERENCES):
        return
    runs = [_suite_run(suite, Policy(name, script=name), settings, seed=0) for name in REFERENCES]
    played = [_play(run) for run in runs]
    # Twice: the first row could not be normalised by the second.
    for run, entries in zip([*runs, *runs], [*played, *played], strict=True):
        make_row(run, entries, results)


def _suite_run(suite: Suite, policy: Policy, settings: BenchRunSettings, *, seed: int) -> SuiteRun:
    """Return what is played, by whom, and how."""
    workers = settings.workers or (num_cores() if policy.script else 1)
    return SuiteRun(
        suite=suite,
        name=policy.name,
        policy=policy.identity(),
        make_entrant=policy.entrant,
        sampling=suite_sampling(settings),
        seed=seed,
        workers=workers,
        cache=Path(settings.cache).expanduser() / suite.name,
    )


def _play(run: SuiteRun) -> dict[str, EntryPlayed]:
    """Play what is missing, and say how far it has got."""
    suite = run.suite
    console = Console(stderr=True)
    with console.status(f"{run.name} plays {suite.name}") as status:
        num_done = 0

        def note(entry: SuiteEntry, played: EntryPlayed) -> None:
            nonlocal num_done
            num_done += 1
            score = entry_figures(entry, played.records)["score"][0] if played.records else None
            shown = "failed" if score is None else f"{score:.3f}"
            status.update(
                f"{run.name} plays {suite.name}: {num_done} of {len(suite.entries)}, "
                f"{entry.name} {shown}"
            )

        return play_suite(run, note)


def _with_options(settings: Sequence[str], **options: str | None) -> list[str]:
    """Return settings with options as settings before them."""
    return [*(f"{k}={v}" for k, v in options.items() if v is not None), *settings]
