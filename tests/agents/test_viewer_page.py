"""The viewer's page in a real browser, over the command that serves it.

Needs the dependency group `browser` and a Chromium: Debian's, or the one that CHROMIUM names.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chromium import CHROMIUM, HOSTILE, MARKS, sync_api

pytestmark = MARKS

NUM_MANY = 100_000
SHOWN = "<script>window.hacked=1</script><img src=x onerror='window.hacked=1'>␛[2J⟨U+202E⟩gnp"


def episode(number: int, **more: Any) -> dict[str, Any]:
    texts = ["<|im_start|>", "What", " is", " it?", "\n", "It is ", str(number), "."]
    return {
        "step": number // 10,
        "id": f"{number // 2}-{number % 2}",
        "task": {"seed": number // 2},
        "reward": float(number % 2),
        "is_correct": number % 2 == 1,
        "termination_reason": "env_done",
        "error": None,
        "messages": [
            {"role": "user", "content": f"What is {number // 2}?"},
            {"role": "assistant", "content": f"It is {number}."},
        ],
        "steps": [{"action": f"It is {number}.", "reward": float(number % 2), "info": {}}],
        "token_records": [
            {
                "token_ids": list(range(8)),
                "logprobs": [0.0] * 5 + [-0.1, -4.9, 0.0],
                "turns": [{"start": 5, "stop": 8, "step_index": 0, "weights_version": 3}],
                "texts": texts,
                "advantages": [1.5 if number % 2 else -1.5] * 8,
                "weight": 1.0,
            }
        ],
        **more,
    }


def hostile_episode() -> dict[str, Any]:
    tokens = episode(0)["token_records"][0] | {"texts": [HOSTILE] * 8}
    return episode(
        0,
        id=HOSTILE,
        task={"question": HOSTILE},
        termination_reason=HOSTILE,
        error=HOSTILE,
        messages=[
            {"role": HOSTILE, "content": HOSTILE, HOSTILE: HOSTILE},
            {"role": "assistant", "content": "x" * 2**20},
        ],
        token_records=[tokens],
    )


def write(path: Path, episodes: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    with (path / "episodes.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(e) + "\n" for e in episodes)
    return path


@contextmanager
def served(run: Path) -> Iterator[str]:
    """Address of `rllm view RUN`, which runs as a command until the block ends."""
    code = "import sys; from rllm_agents.cli import main; sys.argv[0] = 'rllm'; main()"
    command = [sys.executable, "-c", code, "view", str(run), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stdout.readline())
        assert found is not None
        yield found[0]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page on which no script of ours may fail and no policy may be broken."""
    opened = browser.new_page(viewport={"width": 1280, "height": 800})
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    yield opened
    opened.close()
    # The page goes on asking for a moment when its server has ended.
    assert [p for p in problems if "ERR_CONNECTION_REFUSED" not in p] == []


def test_curves_and_timeline_grow_with_the_run(page: Any, tmp_path: Path) -> None:
    def row(step: int) -> str:
        seconds = {"sample": 2.0, "learn": 1.0, "sync": 0.5}
        times = {f"time/{name}_seconds": s for name, s in seconds.items()}
        began = 1000.0 + 4 * step
        return json.dumps({"step": step, "train/reward": step / 4, "time/began": began, **times})

    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(row(0) + "\n" + row(1) + "\n")
    with served(tmp_path) as url:
        page.goto(url)
        page.wait_for_selector("[aria-label='train/reward: train/reward 0.2500']")
        with metrics.open("a") as file:
            file.write(row(2) + "\n")
        page.wait_for_selector("[aria-label='train/reward: train/reward 0.5000']")
        page.keyboard.press("3")
        rows = page.wait_for_selector("table").inner_text().split("\n")
    # Three steps of 3.5 s, half a second between them.
    cells = [line.split() for line in rows[1:]]
    assert cells[0] == ["sample", "6", "52.2", "%"]
    assert cells[1] == ["learn", "3", "26.1", "%"]
    assert cells[2] == ["sync", "weights", "1.500", "13.0", "%"]
    assert cells[4] == ["other", "1", "8.7", "%"]


def test_an_episode_is_found_read_and_compared_by_keyboard(page: Any, tmp_path: Path) -> None:
    with served(write(tmp_path, [episode(n) for n in range(40)])) as url:
        page.goto(url)
        page.wait_for_selector("header")
        page.keyboard.press("/")
        page.wait_for_selector("#search:focus")
        page.keyboard.type("it is 1")
        page.get_by_text("11 of 40", exact=True).wait_for()
        page.select_option("select[name=outcome]", "solved")
        page.get_by_text("6 of 40", exact=True).wait_for()
        page.locator(".list").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")  # 1, then 11
        first = page.get_by_label("Episode 11", exact=True)
        first.wait_for()
        page.keyboard.press("a")
        tokens = first.locator(".tokens .token")
        assert tokens.nth(6).inner_text() == "11"
        assert "plus-4" in tokens.nth(6).get_attribute("class")
        assert "given" in tokens.nth(3).get_attribute("class")
        page.keyboard.press("l")
        assert "surprise-4" in tokens.nth(6).get_attribute("class")
        assert "surprise-0" in tokens.nth(7).get_attribute("class")
        tokens.nth(6).click()
        words = first.locator(".inspected").inner_text()
        assert words == ("id 6 · logprob -4.900 (p 0.007) · advantage 1.500 · turn 1 · weights 3")
        page.keyboard.press("p")
        page.locator(".list").focus()
        page.keyboard.press("ArrowDown")
        page.get_by_label("Episode 13", exact=True).wait_for()
        boxes = [pane.bounding_box() for pane in page.locator(".pane").all()]
        assert len(boxes) == 2
        assert boxes[0]["y"] == boxes[1]["y"]
        assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"] + 1
        page.reload()  # where the reader is stands in the address
        page.get_by_label("Episode 11", exact=True).wait_for()


def test_hostile_text_is_shown_and_does_nothing(page: Any, tmp_path: Path) -> None:
    with served(write(tmp_path, [hostile_episode(), episode(1)])) as url:
        page.goto(f"{url}#episodes?open=0&colour=text")
        pane = page.get_by_label("Episode 0", exact=True)
        pane.wait_for()
        text = pane.inner_text()
        assert text.count(SHOWN) == 2  # error and message; shorter ones are cut
        assert SHOWN in page.locator(".row").first.inner_text()
        assert pane.bounding_box()["width"] <= 1280
        assert pane.evaluate("e => e.scrollWidth <= e.clientWidth")
        assert "1,028,576 more characters" in text
        pane.get_by_text("1,028,576 more characters").click()
        pane.get_by_text("928,576 more characters").wait_for()
        page.keyboard.press("l")
        tokens = pane.locator(".tokens .token")
        tokens.first.wait_for()
        assert tokens.first.inner_text() == SHOWN
        whole = page.locator("body").inner_text()
        assert "\u202e" not in whole
        assert "\x1b" not in whole
        page.wait_for_timeout(200)  # what an onerror would have needed
        assert page.evaluate("window.hacked === undefined")
        assert page.evaluate("document.querySelectorAll('#app script, #app img').length") == 0
        page.locator(".row").nth(1).click()
        page.get_by_label("Episode 1", exact=True).wait_for()


def test_many_episodes_are_in_the_document_only_where_they_are_seen(
    page: Any, tmp_path: Path
) -> None:
    with served(write(tmp_path, (episode(n) for n in range(NUM_MANY)))) as url:
        page.goto(f"{url}#episodes")
        page.wait_for_selector(".row .reward")  # before all of them are read
        page.get_by_text("100,000 of 100,000", exact=True).wait_for(timeout=120_000)
        page.locator(".list").focus()
        for _ in range(20):
            page.mouse.move(200, 600)
            page.mouse.wheel(0, 100_000)
        assert page.locator(".row").count() < 100
        page.keyboard.press("End")
        page.get_by_text(f"It is {NUM_MANY - 1}.").wait_for()
        assert page.locator(".row").count() < 100
        page.select_option("select[name=kind]", "episodes")
        page.fill("input[name=step_min]", "9999")
        page.select_option("select[name=descending]", "1")  # before the number is taken over
        page.get_by_text("10 of 100,000", exact=True).wait_for()
        assert "descending=1" in page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_both_schemes(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    opened = browser.new_page(color_scheme=scheme)
    with served(write(tmp_path, [episode(n) for n in range(4)])) as url:
        opened.goto(f"{url}#episodes?open=1&colour=advantage")
        opened.wait_for_selector(".tokens")
        ink, ground = (
            opened.evaluate(f"getComputedStyle(document.body).{name}")
            for name in ("color", "backgroundColor")
        )
    opened.close()
    assert contrast(ink, ground) > 7  # WCAG 2 level AAA
    assert (luminance(ink) > luminance(ground)) == (scheme == "dark")


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
