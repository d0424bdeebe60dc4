"""`rllm report`: a run as one file for a colleague."""

from __future__ import annotations

from pathlib import Path

import click

from rllm_agents.viewer.report import write_report

HELP = """Write a report of a training or evaluation run: figures, plots, some episodes, settings.

RUN is a run directory, or a JSONL file of episodes. report.html holds all it shows; report.md says
the same with its plots beside it. Both go to RUN/report and replace those that are there.

\b
  rllm report runs/mine
  rllm report runs/mine --output /tmp/report
"""


@click.command("report", help=HELP)
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Directory; by default RUN/report.")
def command(run: Path, output: Path | None) -> None:
    """Run `rllm report`."""
    for path in write_report(run, output):
        click.echo(str(path))
