"""Pages that are written from the code say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "script",
    [
        "write_configuration_page.py",
        "write_tree_page.py",
        "write_env_pages.py",
        "write_performance_page.py",
    ],
)
def test_a_generated_page_is_up_to_date(script):
    run = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / script), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_every_setting_has_a_meaning_on_the_page():
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_file_of_the_tree_says_what_it_is():
    tree = (ROOT / "docs" / "source-tree.md").read_text(encoding="utf-8")
    names = [line.split() for line in tree.splitlines() if ".py" in line]
    assert len(names) > 50
    assert [words[0] for words in names if len(words) < 2] == []
