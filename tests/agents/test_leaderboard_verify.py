"""Verification: a row is played again from seed and recorded actions, and forgeries are refused."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rllm_agents.errors import UserError
from rllm_agents.leaderboard import (
    ScriptedEntrant,
    Suite,
    SuiteEntry,
    SuiteRun,
    make_row,
    play_suite,
    row_path,
    verify_row,
)
from rllm_agents.leaderboard.figures import entry_figures, normalise, total_figures
from rllm_agents.leaderboard.records import EpisodeRecord, pack_records, unpack_records
from rllm_agents.leaderboard.rows import actions_path, read_row, write_row
from rllm_agents.types import SamplingParams

SUITE = Suite(
    "small",
    1,
    "",
    (
        SuiteEntry("guess", env="rllm/GuessNumber-v0", num_tasks=6, max_turns=20),
        SuiteEntry("sums", env="rllm/Arithmetic-v0", num_tasks=6),
        SuiteEntry("nim", match="rllm/Nim-v0", opponents=("random", "expert"), num_tasks=2),
    ),
)
Records = dict[str, list[EpisodeRecord]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of random play, the oracle and the heuristics."""
    base = tmp_path_factory.mktemp("made")
    for _ in range(2):  # the second time with both references
        for policy in ("random", "oracle", "heuristic"):
            run = SuiteRun(
                suite=SUITE,
                name=policy,
                policy={"script": policy},
                make_entrant=functools.partial(ScriptedEntrant, policy),
                sampling=SamplingParams(),
                seed=0,
                workers=1,
                cache=base / "cache",
            )
            make_row(run, play_suite(run), base / "results")
    return base / "results"


def forge(
    made: Path,
    tmp_path: Path,
    *,
    policy: str = "random",
    row: Callable[[dict[str, Any]], None] = lambda row: None,
    records: Callable[[Records], None] = lambda records: None,
    with_figures: bool = True,
) -> list[str]:
    """Change recorded episodes and then the row's fields; say what verification finds.

    Digest and figures are made to fit the changed episodes, as a careful forger would.
    """
    source = row_path(made, "small", policy)
    forged = tmp_path / "small" / f"{policy}.json"
    claimed, (played, _) = read_row(source), unpack_records(actions_path(source))
    records(played)
    digest = pack_records(actions_path(forged), played)
    if with_figures:
        claimed["actions_sha256"] = digest
        entries = [
            normalise(entry_figures(entry, played[entry.name]), *old["references"])
            for entry, old in zip(SUITE.entries, claimed["entries"], strict=True)
        ]
        claimed |= {"entries": entries, "total": total_figures(entries)}
    row(claimed)
    write_row(forged, claimed)
    return verify_row(forged, SUITE)


@pytest.mark.parametrize("policy", ["random", "oracle", "heuristic"])
def test_a_row_that_was_played_holds(made: Path, policy: str) -> None:
    assert verify_row(row_path(made, "small", policy), SUITE) == []


def test_forging_nothing_holds(made: Path, tmp_path: Path) -> None:
    assert forge(made, tmp_path) == []


def test_an_edited_action_is_refused(made: Path, tmp_path: Path) -> None:
    def edit(records: Records) -> None:
        records["sums"][2] = replace(records["sums"][2], actions=("\\boxed{0}",))

    found = forge(made, tmp_path, policy="oracle", records=edit)
    assert found == ["sums, episode 2-0: the record says reward 1; its actions earn 0"]


def test_an_edited_action_that_earns_the_same_is_refused_by_the_digest(
    made: Path, tmp_path: Path
) -> None:
    def edit(records: Records) -> None:
        records["sums"][2] = replace(records["sums"][2], actions=("something else",))

    found = forge(made, tmp_path, records=edit, with_figures=False)
    assert found == ["the recorded actions are not those that the row was made of (SHA-256)"]


def test_an_edited_reward_is_refused(made: Path, tmp_path: Path) -> None:
    def edit(records: Records) -> None:
        records["sums"][0] = replace(records["sums"][0], reward=1.0)

    found = forge(made, tmp_path, records=edit)
    assert found == ["sums, episode 0-0: the record says reward 1; its actions earn 0"]


def test_an_edited_success_or_ending_is_refused(made: Path, tmp_path: Path) -> None:
    def solved(records: Records) -> None:
        records["sums"][0] = replace(records["sums"][0], success=True)

    assert "the record says success True" in forge(made, tmp_path, records=solved)[0]

    def ended(records: Records) -> None:
        records["sums"][0] = replace(records["sums"][0], end="max_turns_exceeded")

    assert "the environment says otherwise" in forge(made, tmp_path, records=ended)[0]


def test_actions_after_the_end_and_too_many_are_refused(made: Path, tmp_path: Path) -> None:
    def longer(records: Records) -> None:
        one = records["sums"][0]
        records["sums"][0] = replace(one, actions=(*one.actions, "\\boxed{1}"))

    assert "it is over after 1 actions; 2 are recorded" in forge(made, tmp_path, records=longer)[0]

    def endless(records: Records) -> None:
        records["guess"][0] = replace(records["guess"][0], actions=("x",) * 21)

    assert "at most 20 are allowed" in forge(made, tmp_path, records=endless)[0]


def test_left_out_episodes_and_entries_are_refused(made: Path, tmp_path: Path) -> None:
    def fewer(records: Records) -> None:
        records["guess"] = [r for r in records["guess"] if r.reward > 0] or records["guess"][:1]

    assert re.search(
        r"guess: \d episodes are recorded, of 6", forge(made, tmp_path, records=fewer)[0]
    )

    def none(records: Records) -> None:
        records["extra"] = []

    assert forge(made, tmp_path, records=none) == ["the recorded actions are of other entries"]
    dropped = forge(made, tmp_path, row=lambda row: row["entries"].pop())
    assert dropped == ["its entries are not those of the suite, in this order"]


def test_the_tasks_are_those_of_the_seed(made: Path, tmp_path: Path) -> None:
    found = forge(made, tmp_path, policy="oracle", row=lambda row: row.update(seed=1))
    assert sum(one.startswith("sums") for one in found) == 6


def test_the_opponents_of_matches_play_by_themselves(made: Path, tmp_path: Path) -> None:
    def won(records: Records) -> None:
        lost = next(i for i, r in enumerate(records["nim"]) if r.reward == 0.0)
        records["nim"][lost] = replace(records["nim"][lost], reward=1.0, success=True)

    found = forge(made, tmp_path, records=won)
    assert len(found) == 1
    assert "the record says reward 1; its actions earn 0" in found[0]

    def shorter(records: Records) -> None:
        records["nim"][0] = replace(records["nim"][0], actions=())

    # Without its moves the oracle passes empty texts, and forfeits.
    found = forge(made, tmp_path, policy="oracle", records=shorter)
    assert "nim, episode random-0-player_0-0: the record says reward 1" in found[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row["entries"][1].update(score=[0.9, 0.8, 1.0]), "sums: score is [0"),
        (lambda row: row["entries"][0].update(tokens=1), "guess: tokens is 0; the row says 1"),
        (lambda row: row["entries"][0].update(normalised=None), "guess: normalised is"),
        (lambda row: row["entries"][2].update(results={"random": [9, 0, 0]}), "nim: results is"),
        (lambda row: row["total"].update(score=[1.0, 1.0, 1.0]), "total: score is"),
        (
            lambda row: row.update(suite_digest="0" * 64),
            "played version 1 of small with other entries or budgets",
        ),
        (lambda row: row.update(actions_sha256="0" * 64), "(SHA-256)"),
    ],
)
def test_edited_figures_are_refused(
    made: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], said: str
) -> None:
    found = forge(made, tmp_path, row=change)
    assert any(said in one for one in found)


def test_references_are_compared_with_their_rows(made: Path, tmp_path: Path) -> None:
    """A lower reference for random play would raise the normalised score."""

    def lower(row: dict[str, Any]) -> None:
        figures = normalise(row["entries"][0], -1.0, 1.0)
        row["entries"][0] = figures
        row["total"] = total_figures(row["entries"])

    for name in ("random", "oracle"):
        source, copy = row_path(made, "small", name), row_path(tmp_path, "small", name)
        write_row(copy, read_row(source))
    found = forge(made, tmp_path, policy="heuristic", row=lower)
    assert re.fullmatch(r"guess: random has 0(\.\d+)? in its row, not -1", found[0])


def test_missing_actions_are_said(made: Path, tmp_path: Path) -> None:
    path = row_path(tmp_path, "small", "random")
    write_row(path, read_row(row_path(made, "small", "random")))
    assert "recorded actions cannot be read" in verify_row(path, SUITE)[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.pop("seed"),
        lambda row: row.update(seed=-1),
        lambda row: row.update(seed=True),
        lambda row: row.update(format=2),
        lambda row: row.update(entries="none"),
        lambda row: row["entries"].append(3),
        lambda row: row["entries"][0].update(score=[1.0]),
        lambda row: row["entries"][0].update(score=[1.0, float("nan"), 1.0]),
        lambda row: row["entries"][0].update(references=[1.0]),
        lambda row: row["entries"][2].update(results={"random": "many"}),
        lambda row: row["total"].update(tokens="many"),
    ],
)
def test_a_file_that_is_no_row_is_refused_in_words(
    made: Path, tmp_path: Path, change: Callable[[dict[str, Any]], Any]
) -> None:
    row = read_row(row_path(made, "small", "random"))
    change(row)
    path = tmp_path / "row.json"
    path.write_text(json.dumps(row))
    with pytest.raises(UserError, match=r"row\.json"):
        verify_row(path, SUITE)


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "row.json"
    for text in ("", "[]", "[" * 100_000, "{"):
        path.write_text(text)
        with pytest.raises(UserError, match=r"row\.json"):
            verify_row(path, SUITE)
    with pytest.raises(UserError, match="cannot be read"):
        verify_row(tmp_path / "none.json", SUITE)
