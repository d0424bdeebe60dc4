"""Suites as data files: those that ship, and what a file must not say."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

from rllm_agents.errors import UserError
from rllm_agents.leaderboard import load_suite, suite_names
from rllm_envs.catalog import CATALOG
from rllm_envs.multi_agent import GAMES


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_the_suites_that_ship_name_what_is_registered() -> None:
    assert set(suite_names()) == {
        *("code", "core", "games", "math", "multi-agent", "quick", "tools")
    }
    games = {game.id for game in GAMES}
    for name in suite_names():
        suite = load_suite(name)
        assert suite.name == name
        for entry in suite.entries:
            assert entry.id in (games if entry.match else gymnasium.registry), entry


def test_core_has_every_environment_that_needs_neither_network_nor_extra() -> None:
    offline = {entry.id for entry in CATALOG if entry.offline and not entry.extra}
    assert {entry.env for entry in load_suite("core").entries} == offline, (
        "core has every offline environment: change its file and raise its version"
    )


def test_entries_take_defaults_and_names_from_their_ids(tmp_path: Path) -> None:
    suite = load_suite(
        write(
            tmp_path,
            "{name: mine, version: 3, defaults: {num_tasks: 5, max_turns: 7}, entries: ["
            "rllm/MCQ-v0, {name: gsm, env: rllm/Math-v0, dataset: gsm8k, num_tasks: 9},"
            "{match: rllm/Nim-v0, opponents: [expert], kwargs: {max_retries: 1}}]}",
        )
    )
    mcq, gsm, nim = suite.entries
    assert (mcq.name, mcq.env, mcq.num_tasks, mcq.max_turns) == ("MCQ-v0", "rllm/MCQ-v0", 5, 7)
    assert (gsm.name, gsm.dataset, gsm.num_tasks, gsm.max_turns) == ("gsm", "gsm8k", 9, 7)
    assert (nim.match, nim.opponents, nim.kwargs) == (
        "rllm/Nim-v0",
        ("expert",),
        {"max_retries": 1},
    )
    assert suite.entry("gsm") is gsm
    with pytest.raises(UserError, match="no entry 'other'"):
        suite.entry("other")


def test_the_digest_changes_with_whatever_is_played(tmp_path: Path) -> None:
    base = "{name: mine, version: 1, entries: [{env: rllm/MCQ-v0, num_tasks: 5}]}"
    digests = {
        load_suite(write(tmp_path, base.replace(old, new))).digest
        for old, new in (
            ("", ""),
            ("version: 1", "version: 2"),
            ("num_tasks: 5", "num_tasks: 6"),
            ("MCQ", "QA"),
            ("num_tasks: 5", "num_tasks: 5, max_tokens: 9"),
            ("num_tasks: 5", "num_tasks: 5, kwargs: {num_choices: 3}"),
        )
    }
    assert len(digests) == 6


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "cannot be read"),
        ("3", "must be a mapping"),
        ("{name: mine, version: 1, colour: red, entries: [a]}", "no field 'colour'"),
        ("{name: ../mine, version: 1, entries: [a]}", "name must be"),
        ("{name: mine, version: 0, entries: [a]}", "version must be a whole number"),
        ("{name: mine, version: 1, entries: []}", "entries must be a list"),
        ("{name: mine, version: 1, entries: [a, a]}", "twice there is a"),
        ("{name: mine, version: 1, entries: [{env: a, match: b}]}", "either env or match"),
        ("{name: mine, version: 1, entries: [{env: a, tasks: 3}]}", "no field 'tasks'"),
        ("{name: mine, version: 1, entries: [{env: a, num_tasks: 1e9}]}", "num_tasks must be"),
        ("{name: mine, version: 1, entries: [{env: a, attempts: true}]}", "attempts must be"),
        ("{name: mine, version: 1, entries: [{match: a, opponents: [me]}]}", "opponents must be"),
        ("{name: mine, version: 1, entries: [{env: a, kwargs: 3}]}", "kwargs must be a mapping"),
        ("!!python/object/apply:os.system [ls]", "cannot be read"),
    ],
)
def test_a_file_that_is_no_suite_is_refused_in_words(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_suite(write(tmp_path, text))


def test_an_unknown_name_lists_those_that_exist() -> None:
    with pytest.raises(UserError, match=r"no suite 'qick'; there are code, core, games"):
        load_suite("qick")
