"""How long the viewer takes to show a run: first paint, all read, a filter, a search, the last row.

A run of 100,000 episodes of about 3 kB each, with tokens, is written to a temporary directory and
opened in a real Chromium, Debian's or the one that CHROMIUM names; `playwright` must be installed.
"First paint" is from the navigation to the first row of the list in the document. Each lap starts a
server of its own; the table has medians and ranges over laps.

Run it with `uv run --with playwright python benchmarks/performance/viewer.py --write`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from results import Table, installed, with_range, write_result

NUM_TOKENS = 60
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")


def episode(number: int) -> dict[str, Any]:
    """Return an episode whose last words nobody else says."""
    turn = {"start": 40, "stop": NUM_TOKENS, "step_index": 0, "weights_version": number // 1000}
    said = f"The answer is number {number}."
    return {
        "step": number // 1000,
        "id": str(number),
        "task": {"seed": number // 4},
        "reward": float(number % 2),
        "is_correct": number % 2 == 1,
        "termination_reason": "env_done",
        "error": None,
        "messages": [
            {"role": "user", "content": f"What is {number // 4} * 17?"},
            {"role": "assistant", "content": said},
        ],
        "steps": [{"action": said, "reward": float(number % 2), "info": {"success": True}}],
        "token_records": [
            {
                "token_ids": list(range(NUM_TOKENS)),
                "logprobs": [-0.12345678901234567] * NUM_TOKENS,
                "turns": [turn],
                "texts": [" word"] * NUM_TOKENS,
                "advantages": [0.5400617122650146] * NUM_TOKENS,
                "weight": 1.0,
            }
        ],
    }


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Address of `rllm view RUN` until the block ends."""
    code = "import sys; from rllm_agents.cli import main; sys.argv[0] = 'rllm'; main()"
    command = [sys.executable, "-c", code, "view", str(run), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split(" at ")[1].split()[0]
    finally:
        process.terminate()
        process.communicate()


def measure(page: Page, url: str, count: int) -> Iterator[tuple[str, float]]:
    """Yield what was waited for, and the seconds that it took.

    Args:
        page: A new one.
        url: Of the server.
        count: Episodes of the run, a multiple of 1,000.
    """

    def timed(act: Callable[[], Any], *waits: Callable[[], Any]) -> float:
        started = time.perf_counter()
        act()
        for wait in waits:
            wait()
        return time.perf_counter() - started

    def text(words: str) -> Callable[[], Any]:
        return lambda: page.get_by_text(words, exact=True).first.wait_for(timeout=300_000)

    total = f"{count:,}"
    row = page.locator(".row .reward").first
    yield "first paint, while it reads", timed(lambda: page.goto(f"{url}#episodes"), row.wait_for)
    yield "all episodes read", timed(text(f"{total} of {total}"))
    yield "first paint, all read", timed(page.reload, row.wait_for)
    page.locator(".list").focus()
    last = text(f"The answer is number {count - 1}.")
    yield "to the last row", timed(lambda: page.keyboard.press("End"), last)
    filtered = text(f"500 of {total}")
    step = str(count // 1000 - 1)
    narrow = [lambda: page.fill("input[name=step_min]", step), lambda: filter_solved(page)]
    yield "two filters", timed(narrow[0], narrow[1], filtered)
    page.get_by_role("button", name="Reset").click()
    text(f"{total} of {total}")()
    found = text(f"1 of {total}")
    yield (
        "a search through all texts",
        timed(lambda: page.fill("#search", f"number {count - 1}."), found),
    )


def filter_solved(page: Page) -> None:
    """Leave solved episodes alone."""
    page.select_option("select[name=outcome]", "solved")


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--thousands", type=int, default=100, help="Of episodes.")
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    count = 1000 * options.thousands
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "episodes.jsonl"
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(episode(n)) + "\n" for n in range(count))
        size = path.stat().st_size / 1e6
        for _ in range(options.laps):
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            with served(Path(folder)) as url:
                for name, seconds in measure(browser.new_page(), url, count):
                    figures.setdefault(name, []).append(seconds)
                    print(f"{name}: {seconds:.2f} s", file=sys.stderr)
            browser.close()
    rows = [(name, with_range(seconds, ".2f")) for name, seconds in figures.items()]
    shown = Table.of((f"{count:,} episodes, {size:.0f} MB", "seconds"), rows)
    print(shown.markdown())
    if options.write:
        settings = {"episodes": count, "megabytes": round(size), "laps": options.laps}
        versions = installed("playwright")
        print(write_result("viewer", settings, figures, {"seconds": shown}, versions))


if __name__ == "__main__":
    main()
