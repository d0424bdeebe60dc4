"""The committed rows of leaderboards: they hold, and the page shows them."""

from __future__ import annotations

import os
from pathlib import Path

import gymnasium
import pytest
from click.testing import CliRunner

from rllm_agents.cli import main
from rllm_agents.leaderboard import leaderboard, load_suite, read_row, read_rows, verify_row
from rllm_agents.leaderboard.table import replaced_between_marks

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "leaderboard"
ROWS = sorted(RESULTS.glob("*/*.json"))
SUITES = sorted({path.parent.name for path in ROWS})
AGAIN = "play it again by `rllm bench run`, then `rllm bench table --suite SUITE page=PAGE`"


FIRST = [path for path in ROWS if path.parent.name == "quick" and "-seed-" not in path.stem]
"""Rows that are played again at every run of the tests."""
SEEDED = ("oracle", "heuristic", "random", "tiny")
"""Policies of `quick` with a second row, of another seed."""


def named(path: Path) -> str:
    return path.relative_to(RESULTS).as_posix()


def test_there_are_rows_of_random_play_and_of_the_oracle() -> None:
    assert {"quick", "core", "multi-agent"} <= set(SUITES)
    for suite in SUITES:
        rows = read_rows(RESULTS, load_suite(suite))
        assert {"random", "oracle"} <= {row["name"] for row in rows}


@pytest.mark.parametrize("path", FIRST, ids=named)
def test_a_row_of_quick_holds(path: Path) -> None:
    assert verify_row(path) == [], AGAIN


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in ROWS if p not in FIRST], ids=named)
def test_another_row_holds(path: Path) -> None:
    suite = load_suite(path.parent.name)
    if any(entry.dataset for entry in suite.entries) and "RLLM_DATA_DIR" not in os.environ:
        pytest.skip("RLLM_DATA_DIR is not set")
    assert verify_row(path) == [], AGAIN


@pytest.mark.parametrize("suite", [name for name in SUITES if name != "multi-agent"])
def test_the_oracle_reaches_every_threshold(suite: str) -> None:
    row = read_row(RESULTS / suite / "oracle.json")
    below = {
        entry["id"]: (entry["score"][0], gymnasium.spec(entry["id"]).reward_threshold)
        for entry in row["entries"]
        if entry["score"][0] < (gymnasium.spec(entry["id"]).reward_threshold or 0.0)
    }
    assert below == {}


def are_inside_each_other(one: list[float], other: list[float]) -> bool:
    """Whether each value lies in the other's interval; both are value, low, high."""
    return one[1] <= other[0] <= one[2] and other[1] <= one[0] <= other[2]


@pytest.mark.parametrize("name", SEEDED)
def test_another_seed_gives_a_score_inside_the_interval_and_the_other_way_round(name: str) -> None:
    rows = [read_row(RESULTS / "quick" / f"{file}.json") for file in (name, f"{name}-seed-1")]
    assert [row["seed"] for row in rows] == [0, 1]
    for figure in ("score", "normalised"):
        one, other = (row["total"][figure] for row in rows)
        assert are_inside_each_other(one, other), figure
    assert not are_inside_each_other([0.5, 0.4, 0.6], [0.55, 0.51, 0.59])


@pytest.mark.slow
def test_two_seeds_played_here_agree_within_their_intervals(tmp_path: Path) -> None:
    found = []
    for seed in (2, 3):
        result = CliRunner().invoke(
            main,
            [
                "bench", "run", "--suite", "quick", "--policy", "heuristic", f"seed={seed}",
                f"results={tmp_path}", f"cache={tmp_path / 'cache'}", "workers=1",
            ],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        row = read_row(tmp_path / "quick" / f"heuristic-seed-{seed}.json")
        found.append(row["total"]["normalised"])
    assert are_inside_each_other(*found)


@pytest.mark.parametrize("suite", SUITES)
def test_the_page_shows_the_rows(suite: str) -> None:
    page = (ROOT / "docs" / "leaderboard.md").read_text("utf-8")
    loaded = load_suite(suite)
    text = leaderboard(loaded, read_rows(RESULTS, loaded))
    assert replaced_between_marks(page, suite, text) == page, AGAIN
    assert (RESULTS / suite / "README.md").read_text("utf-8") == f"# {suite}\n\n{text}"


def test_what_is_committed_is_small() -> None:
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert max(path.stat().st_size for path in files) < 500_000
    assert sum(path.stat().st_size for path in files if path.suffix == ".json") < 400_000
    assert sum(path.stat().st_size for path in files) < 2_000_000
