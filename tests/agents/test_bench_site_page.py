"""The site of leaderboards in a real browser, opened as files.

Needs the dependency group `browser` and a Chromium: Debian's, or the one that CHROMIUM names.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, HOSTILE, MARKS, sync_api
from click.testing import CliRunner

from rllm_agents.cli import main

pytestmark = MARKS

SUITE = """
name: mine
version: 1
summary: Sums, questions with choices, and a game.
defaults: {num_tasks: 6, max_tokens: 48, max_turns: 20}
entries:
  - rllm/Arithmetic-v0
  - rllm/MCQ-v0
  - {match: rllm/Nim-v0, num_tasks: 1}
"""
SHOWN = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>␛[2J⟨U+202E⟩gnp"


def rllm(*arguments: str) -> None:
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Address of a site of three policies and a hostile one, and of a learning curve."""
    place = tmp_path_factory.mktemp("site")
    suite, results = place / "mine.yaml", place / "results"
    suite.write_text(SUITE)
    rllm(
        "run", "--suite", str(suite), "--policy", "heuristic", "workers=1",
        f"results={results}", f"cache={place / 'cache'}",
    )  # fmt: skip
    write_hostile_row(results / "mine")
    write_curve(place / "curves")
    rllm(
        "site", "--out", str(place / "site"), "--suite", str(suite),
        f"results={results}", f"curves={place / 'curves'}",
    )  # fmt: skip
    return (place / "site" / "index.html").as_uri()


def write_hostile_row(rows: Path) -> None:
    """Add the row of a policy whose name, policy and actions are markup."""
    actions = json.loads(lzma.decompress((rows / "random.actions.xz").read_bytes()))
    actions["Arithmetic-v0"][0][0] = [HOSTILE + "x" * 2**20]
    text = json.dumps(actions).encode()
    (rows / "zz.actions.xz").write_bytes(lzma.compress(text, preset=0))
    row = json.loads((rows / "random.json").read_text())
    row |= {"name": HOSTILE, "policy": {HOSTILE: HOSTILE}, "date": HOSTILE, "commit": HOSTILE}
    row |= {"actions_sha256": hashlib.sha256(text).hexdigest()}
    (rows / "zz.json").write_text(json.dumps(row))


def write_curve(place: Path) -> None:
    place.mkdir()
    runs = [
        {"seed": seed, "curve": [{"step": s, "eval/pass_at_1": (s + seed) / 40} for s in (0, 20)]}
        for seed in (0, 4)
    ]
    curve = {"name": f"sums {HOSTILE}", "command": HOSTILE, "runs": runs}
    (place / "sums.json").write_text(json.dumps(curve))


@pytest.fixture(scope="module")
def browser(site: str) -> Iterator[Any]:  # Playwright runs a loop, rows want their own: they first
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page on which no script may fail, and that asks for nothing but files."""
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    opened.on("request", lambda r: None if r.url.startswith("file:") else problems.append(r.url))
    yield opened
    opened.close()
    assert problems == []


def column(page: Any, table: str, number: int) -> list[str]:
    cells = page.get_by_role("region", name=table).locator(f"tbody tr > :nth-child({number})")
    return cells.all_inner_texts()


def test_leaderboards_are_sorted_and_filtered(page: Any, site: str) -> None:
    page.goto(site)
    page.wait_for_selector("table.board")
    policies = column(page, "Policies", 1)
    assert policies[:2] == ["oracle", "heuristic"]  # the best first
    page.get_by_role("button", name="policy").click()
    assert column(page, "Policies", 1)[1:] == ["heuristic", "oracle", "random"]
    page.get_by_role("button", name="policy").click()
    assert column(page, "Policies", 1)[:3] == ["random", "oracle", "heuristic"]
    page.get_by_role("button", name="oracle").first.press("Enter")
    assert '"script": "oracle"' in page.locator(".details").inner_text()
    page.keyboard.press("/")
    page.keyboard.type("heur")
    page.get_by_text("1 rows, 3 entries", exact=True).wait_for()
    page.fill("input[name=policy]", "")
    page.fill("input[name=env]", "mcq")
    page.get_by_text("4 rows, 1 entries", exact=True).wait_for()
    assert column(page, "Raw scores by environment", 1) == ["MCQ-v0"]
    # Sorted by a policy's score, highest first; the address keeps all of it.
    page.fill("input[name=env]", "")
    page.get_by_role("button", name="heuristic").last.click()
    assert column(page, "Raw scores by environment", 1)[0] == "Arithmetic-v0"
    page.select_option("select[name=suite]", "mine")
    page.reload()
    page.wait_for_selector("table.board")
    assert page.locator("[aria-sort=descending]").count() == 2  # one in each table
    assert page.input_value("select[name=suite]") == "mine"


def test_a_curve_says_its_values_where_it_is_hovered(page: Any, site: str) -> None:
    page.goto(site)
    page.wait_for_selector("header")
    page.keyboard.press("2")
    chart = page.get_by_role("img")
    chart.wait_for()
    assert "seed 0 0.5000, seed 4 0.6000" in chart.get_attribute("aria-label")
    over = page.locator(".u-over").bounding_box()
    page.mouse.move(over["x"] + over["width"] - 2, over["y"] + over["height"] / 2)
    page.get_by_text("0.6000", exact=True).wait_for()
    assert page.locator(".u-legend .u-value").all_inner_texts() == ["20", "0.5000", "0.6000"]


def test_an_environment_is_found_by_keyboard_and_its_transcripts_read(page: Any, site: str) -> None:
    page.goto(site)
    page.wait_for_selector("header")
    page.keyboard.press("3")
    page.get_by_text("3 of 3", exact=True).wait_for()
    page.get_by_role("listbox").focus()
    page.keyboard.press("ArrowDown")  # rllm/Arithmetic-v0
    page.get_by_role("heading", name="rllm/Arithmetic-v0").wait_for()
    page.get_by_label("oracle, task 0", exact=True).wait_for()
    page.select_option("select[name=first]", "heuristic")
    pane = page.get_by_label("heuristic, task 0", exact=True)
    said = pane.locator(".message.assistant").inner_text()
    assert re.search(r"\\boxed\{-?\d+\}", said)
    assert "reward 1" in pane.inner_text()
    page.get_by_role("button", name="task 1-0").click()
    page.get_by_label("heuristic, task 1", exact=True).wait_for()
    page.fill("input[name=env]", "nim")
    page.get_by_text("1 of 3", exact=True).wait_for()
    page.get_by_role("listbox").focus()
    page.keyboard.press("End")
    page.get_by_text("match from each seat").wait_for()


def test_two_policies_are_compared_task_by_task(page: Any, site: str) -> None:
    page.goto(f"{site}#compare?suite=mine&first=oracle&second=random")
    page.wait_for_selector("table.board")
    words = page.locator("main p[role=status]").inner_text()
    found = re.fullmatch(
        r"On 16 tasks oracle is better than random on (\d+), equal on (\d+) and worse on (\d+)\.",
        words,
    )
    assert found is not None
    assert sum(map(int, found.groups())) == 16  # six, six, and four games
    row = page.get_by_role("row", name="Arithmetic-v0").inner_text().split()
    # Each sum earns 1 and 0: a difference without spread.
    assert row[1:] == ["1.000", "0.000", "+1.000", "±", "0.000", "6", "0", "0"]
    page.get_by_role("button", name="Arithmetic-v0").click()
    cells = page.locator(".cell")
    cells.first.wait_for()
    assert cells.all_inner_texts() == ["1\n0"] * 6
    assert [cell.is_enabled() for cell in cells.all()] == [True, True, *[False] * 4]
    cells.nth(1).click()
    panes = [page.get_by_label(f"{name}, task 1", exact=True) for name in ("oracle", "random")]
    boxes = [pane.bounding_box() for pane in panes]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] + 1


def test_hostile_text_is_shown_and_does_nothing(page: Any, site: str) -> None:
    page.goto(f"{site}#leaderboards?suite=mine")
    page.wait_for_selector("table.board")
    # Names are cut to what a cell holds; the details are not.
    page.get_by_role("button", name="<script>").first.click()
    assert SHOWN.replace("␛", "\\u001b") in page.locator(".details").inner_text()  # JSON's sign
    seen = page.locator("body").inner_text()
    page.keyboard.press("2")
    page.get_by_role("img").wait_for()
    assert SHOWN[:60] in page.locator("figcaption").inner_text()
    seen += page.locator("body").inner_text()
    page.keyboard.press("3")
    page.get_by_role("listbox").focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("select[name=first]")
    page.select_option("select[name=first]", index=2)  # equal to random, and before it
    pane = page.locator(".pane").first
    pane.get_by_text("more characters]").wait_for()
    assert SHOWN in pane.inner_text()
    assert "it is over" not in pane.inner_text()
    assert pane.evaluate("e => e.scrollWidth <= e.clientWidth")
    seen += page.locator("body").inner_text()
    assert "\u202e" not in seen
    assert "\x1b" not in seen
    page.wait_for_timeout(200)  # what an onerror would have needed
    assert page.evaluate("window.hacked === undefined")
    assert page.evaluate("document.querySelectorAll('#app script, #app img').length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_both_schemes(
    browser: Any, site: str, scheme: str
) -> None:
    opened = browser.new_page(color_scheme=scheme)
    opened.goto(f"{site}#compare?suite=mine")
    opened.wait_for_selector("table.board")
    ink, ground = (
        opened.evaluate(f"getComputedStyle(document.body).{name}")
        for name in ("color", "backgroundColor")
    )
    opened.keyboard.press("d")
    turned = opened.evaluate("getComputedStyle(document.body).backgroundColor")
    opened.close()
    light, dark = "rgb(251, 251, 250)", "rgb(21, 24, 28)"
    assert (ground, turned) == ((light, dark) if scheme == "light" else (dark, light))
    assert ink != ground
