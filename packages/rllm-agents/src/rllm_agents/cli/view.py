"""`rllm view`: a run in the browser."""

from __future__ import annotations

import asyncio
import signal
import webbrowser
from pathlib import Path

import click

from rllm_agents.viewer import Viewer

HELP = """Show a training or evaluation run in the browser, until ctrl-C.

Curves as they grow, episodes to filter and search, transcripts with tokens coloured by logprob,
advantage or mask, two episodes side by side, and where the time went. RUN is a run directory, or a
JSONL file of episodes. The page is served on 127.0.0.1 alone; nothing is written.

\b
  rllm view runs/mine
  rllm view runs/mine --port 8080 --no-browser
  rllm view episodes.jsonl
"""


@click.command("view", help=HELP)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="0, the default: a free one."
)
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.")
def command(run: Path, port: int, browser: bool) -> None:
    """Run `rllm view`."""
    asyncio.run(serve(run, port, opens_browser=browser))


async def serve(run: Path, port: int, *, opens_browser: bool) -> None:
    """Serve the page until the process is told to end.

    Raises:
        UserError: There is no run, or the port is taken.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with Viewer(run, port=port) as viewer:
        click.echo(f"{run} is shown at {viewer.url} (ctrl-C ends it)")
        if opens_browser:
            await asyncio.to_thread(webbrowser.open, viewer.url)
        await stop.wait()
