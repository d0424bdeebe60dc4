"""Reports: what they say of a run, and that a model's text stays text in them."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from test_viewer_selection import episode, write

from rllm_agents.cli import main
from rllm_agents.viewer.report import write_report
from rllm_agents.viewer.report_facts import Ending, gather
from rllm_agents.viewer.visible import visible

HOSTILE = "</pre><script>x()</script>\n```\n# head | `a` <img src=x onerror=x()>\x1b[2J\u202e"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Three evaluations' worth of files and six steps of metrics."""
    path = tmp_path / "mine"
    for step in (0, 10):
        old = [episode(n, step=step) for n in range(4)]
        write(path / "episodes" / f"eval-{step:06d}.jsonl", *old)
    failed = episode(5, step=10, reward=None, termination_reason="llm_error", error=HOSTILE)
    said = episode(6, step=10, messages=[{"role": "assistant", "content": HOSTILE}])
    write(path / "episodes" / "eval-000010.jsonl", failed, said)
    rows = [
        {"step": n, "train/reward": n / 5, "learner/entropy": 1.0, "time/sample_seconds": 2.0}
        for n in range(6)
    ]
    (path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (path / "summary.json").write_text('{"seed": 3, "pass_at_1_after": 0.75}')
    (path / "config.yaml").write_text("seed: 3\n")
    return path


class Tags(HTMLParser):
    """Collects the elements of a page and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_facts_are_those_of_the_newest_step(run_dir: Path) -> None:
    facts = gather(run_dir)
    assert facts.figures == [("seed", 3), ("pass_at_1_after", 0.75)]
    # Rewards 0, 1, 2, 0 of the four old ones, and 0 of the hostile one.
    assert facts.endings == [
        Ending("eval", 10, "env_done", 5, pytest.approx(0.6)),
        Ending("eval", 10, "llm_error", 1, None),
    ]
    assert sorted(facts.rewards.tolist()) == [0.0, 0.0, 0.0, 1.0, 2.0]
    assert facts.rewards_of == "eval at step 10"
    ids = [(e.outcome, e.row["id"]) for e in facts.examples]
    assert ids == [("solved", "1-0"), ("unsolved", "0-0"), ("failed", "5-0")]


def test_the_page_needs_nothing_else_and_holds_no_markup_of_a_model(run_dir: Path) -> None:
    write(run_dir / "episodes" / "eval-000020.jsonl", episode(0, id=HOSTILE, error=HOSTILE))
    page, *others = write_report(run_dir)
    assert page == run_dir / "report" / "report.html"
    names = {path.name for path in others}
    assert names == {"report.md", "curve.png", "learning.png", "rewards.png", "time.png"}
    text = page.read_text("utf-8")
    tags = Tags()
    tags.feed(text)
    kinds = {tag for tag, _ in tags.found}
    assert not kinds & {"script", "link", "iframe", "object", "base", "a"}
    images = [attributes["src"] or "" for tag, attributes in tags.found if tag == "img"]
    assert len(images) == 4
    for image in images:
        head, _, data = image.partition(",")
        assert head == "data:image/png;base64"
        assert base64.b64decode(data).startswith(b"\x89PNG")
    assert not any(name.startswith("on") for _, attributes in tags.found for name in attributes)
    assert "default-src 'none'" in text
    assert "␛[2J⟨U+202E⟩" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_markdown_keeps_texts_in_blocks_that_they_cannot_end(run_dir: Path) -> None:
    write(run_dir / "episodes" / "eval-000020.jsonl", episode(0, id=HOSTILE, error=HOSTILE))
    path = next(p for p in write_report(run_dir, run_dir.parent / "out") if p.suffix == ".md")
    text = path.read_text("utf-8")
    assert f"````text\n{visible(HOSTILE)}\n````" in text
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script" not in outside.replace("\\<", "")
    assert re.findall(r"^#+ head", outside, re.MULTILINE) == []
    for name in re.findall(r"\]\((\w+\.png)\)", text):
        assert (path.parent / name).read_bytes().startswith(b"\x89PNG")


def test_an_evaluation_is_reported_with_its_intervals(tmp_path: Path) -> None:
    write(tmp_path / "episodes.jsonl", episode(1), episode(2))
    estimate = {"value": 1.0, "low": 0.25, "high": 1.0, "num_tasks": 2}
    summary = {"pass_at_k": {"1": estimate}, "settings": {"seed": 5}}
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    result = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert result.exit_code == 0
    assert result.output.splitlines()[0] == str(tmp_path / "report" / "report.html")
    text = (tmp_path / "report" / "report.md").read_text("utf-8")
    assert "| pass@1 | 1.000 \\(95 %: 0.250 to 1.000\\) |" in text
    assert "| episodes |  | env\\_done | 2 | 1.5 |" in text


def test_a_run_without_episodes_is_reported(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "train/reward": 0.5}\n')
    names = {path.name for path in write_report(tmp_path)}
    assert names == {"report.html", "report.md", "curve.png"}


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["report", str(tmp_path)])
    assert result.exit_code == 2
    assert "holds no run" in result.output


def test_signs_of_invisible_characters() -> None:
    assert visible("a\tb\nc") == "a\tb\nc"
    assert visible("\x1b\x00\x7f\r") == "␛␀␡␍"
    assert visible("\u202e\u200b\ufeff\x9b\ud800") == "⟨U+202E⟩⟨U+200B⟩⟨U+FEFF⟩⟨U+009B⟩⟨U+D800⟩"
    assert visible("שלום é 漢 🙂") == "שלום é 漢 🙂"


@given(st.text(st.characters(exclude_categories=())))
def test_no_character_is_lost(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    shown.encode("utf-8")
