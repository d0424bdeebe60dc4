"""docs/learning.md says what the rows of the matrix say."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def learning_page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks" / "learning_curves"))
    return importlib.import_module("learning_page")


def row(seed: int, *scores: float) -> dict:
    curve = [
        {"step": 4 * i, "score": score, "tokens": 1000 * i, "cpu_seconds": 10.0 * i, "seconds": 9.0}
        for i, score in enumerate(scores)
    ]
    return {
        "algorithm": "grpo",
        "task": "calculator",
        "control": "",
        "seed": seed,
        "pass_at_1_before": scores[0],
        "pass_at_1_after": scores[-1],
        "cpu_seconds": 50.0,
        "curve": curve,
        "date": "2026-11-21",
        "machine": "x86_64",
        "versions": {"torch": "2"},
    }


def test_the_page_is_up_to_date_with_the_rows(learning_page):
    rows = learning_page.read_rows()
    assert rows
    page = (REPOSITORY / "docs" / "learning.md").read_text(encoding="utf-8")
    assert page == learning_page.page(rows), (
        "write it again: python benchmarks/learning_curves/matrix.py table"
    )


def test_a_line_of_the_table_by_hand(learning_page):
    # Rises 0.5, 0.6 and 0.7: mean 0.6, deviation 0.1; t(2) is 4.303, so 0.6 +- 0.248. The score of
    # 0.6 is reached at the third, third and second evaluation: 20, 20, 10 CPU s, 2000, 2000, 1000.
    rows = [row(0, 0.2, 0.5, 0.7), row(1, 0.2, 0.5, 0.8), row(2, 0.2, 0.65, 0.9)]
    line = next(x for x in learning_page.page(rows).splitlines() if x.startswith("| calc"))
    assert line == (
        "| calculator | GRPO | 3 | 0.200 | 0.800 | +0.600 | +0.352 to +0.848 | 50 | 0.6 | 17 | "
        "1,667 |"
    )


def test_a_score_that_is_not_reached_and_a_single_seed_are_said_so(learning_page):
    line = learning_page.page([row(0, 0.2, 0.5, 0.5)]).splitlines()
    found = next(x for x in line if x.startswith("| calc"))
    assert found == "| calculator | GRPO | 1 | 0.200 | 0.500 | +0.300 | - | 50 | 0.6 | - | - |"
