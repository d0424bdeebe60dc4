"""The index of episodes, and what filters, orders and searches find in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rllm_agents.errors import UserError
from rllm_agents.viewer.episode_index import EpisodeIndex, Names
from rllm_agents.viewer.growing_file import FileReplacedError
from rllm_agents.viewer.run_files import RunFiles
from rllm_agents.viewer.selection import Selection, TextSearch, select

LONG = 60.0
"""Seconds that no test takes."""


def episode(number: int, *, step: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        **({} if step is None else {"step": step}),
        "id": f"{number}-0",
        "task": {"question": f"What is {number // 2}?"},
        "reward": float(number % 3),
        "is_correct": number % 3 > 0,
        "termination_reason": "env_done",
        "error": None,
        "messages": [{"role": "user", "content": f"Say {number}"}],
        **more,
    }


def write(path: Path, *episodes: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(e, ensure_ascii=False) + "\n" for e in episodes)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Six training episodes of two steps, one of them failed, and two of an evaluation."""
    failed = episode(3, step=2, reward=None, is_correct=False, termination_reason="llm_timeout")
    train = [episode(n, step=1 + n // 3) for n in range(6)]
    train[3] = failed
    write(tmp_path / "episodes" / "train.jsonl", *train)
    write(tmp_path / "episodes" / "eval-000007.jsonl", episode(10), episode(11))
    return tmp_path


def index_of(run_dir: Path) -> EpisodeIndex:
    index = EpisodeIndex(RunFiles(run_dir))
    while index.advance(LONG):
        pass
    return index


def found(index: EpisodeIndex, **parameters: str) -> list[str]:
    wanted = Selection.parse(parameters)
    search = None
    if wanted.text:
        search = TextSearch(wanted.text)
        search.advance(index, LONG)
    return [index.row(int(n))["id"] for n in select(index, wanted, search)]


def test_rows_say_what_lists_need(run_dir: Path) -> None:
    index = index_of(run_dir)
    assert len(index) == 8
    assert index.row(0) == {
        "number": 0,
        "id": "10-0",
        "kind": "eval",
        "step": 7,
        "task": "What is 5?",
        "task_number": 0,
        "reward": 1.0,
        "is_correct": True,
        "termination": "env_done",
    }
    assert index.row(1)["task_number"] == 0
    assert index.row(5)["reward"] is None
    assert index.record(5)["termination_reason"] == "llm_timeout"
    assert index.num_bytes_read == index.size


@pytest.mark.parametrize(
    ("parameters", "ids"),
    [
        ({}, [10, 11, 0, 1, 2, 3, 4, 5]),
        ({"kind": "train"}, [0, 1, 2, 3, 4, 5]),
        ({"kind": "none"}, []),
        ({"outcome": "solved"}, [10, 11, 1, 2, 4, 5]),
        ({"outcome": "unsolved"}, [0]),
        ({"outcome": "failed"}, [3]),
        ({"termination": "llm_timeout"}, [3]),
        ({"reward_min": "1.5"}, [11, 2, 5]),
        ({"reward_min": "0", "reward_max": "1", "kind": "train"}, [0, 1, 4]),
        ({"step_min": "2", "step_max": "2"}, [3, 4, 5]),
        ({"task": "IS 2?"}, [4, 5]),
        ({"task_number": "0"}, [10, 11]),
        ({"text": "say 1"}, [10, 11, 1]),
        ({"text": "content"}, []),
        ({"text": "say", "outcome": "failed"}, [3]),
        ({"order": "reward"}, [0, 10, 1, 4, 11, 2, 5, 3]),
        ({"order": "reward", "descending": "1"}, [11, 2, 5, 10, 1, 4, 0, 3]),
        ({"descending": "1", "kind": "train"}, [5, 4, 3, 2, 1, 0]),
        ({"order": "step", "outcome": "solved"}, [1, 2, 4, 5, 10, 11]),
    ],
)
def test_filters_and_orders(run_dir: Path, parameters: dict[str, str], ids: list[int]) -> None:
    assert found(index_of(run_dir), **parameters) == [f"{n}-0" for n in ids]


@pytest.mark.parametrize(
    "parameters",
    [
        {"order": "size"},
        {"outcome": "good"},
        {"reward_min": "nan"},
        {"reward_max": "x"},
        {"step_min": "-1"},
        {"step_max": "٣"},
        {"text": "x" * 1001},
    ],
)
def test_parameters_out_of_range_are_refused(parameters: dict[str, str]) -> None:
    (name,) = parameters
    with pytest.raises(UserError, match=name):
        Selection.parse(parameters)


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_texts_are_found_however_json_writes_them(tmp_path: Path, ensure_ascii: bool) -> None:
    said = 'He said "é\n\x1b[0m" <b>İ'
    line = json.dumps(episode(0, messages=[{"content": said}]), ensure_ascii=ensure_ascii)
    (tmp_path / "episodes.jsonl").write_text(line + "\n", encoding="utf-8")
    index = index_of(tmp_path)
    for part in ('"é\n', "\x1b[0m", "<B>", "İ", "SAID"):
        assert found(index, text=part) == ["0-0"], part
    assert found(index, text="É") == []  # the case of ASCII letters alone is ignored
    assert found(index, text="\\n") == []


def test_a_file_that_grows_is_read_on_and_searched_on(run_dir: Path) -> None:
    index = index_of(run_dir)
    search = TextSearch("say 4")
    search.advance(index, LONG)
    write(run_dir / "episodes" / "train.jsonl", episode(40, step=3))
    write(run_dir / "episodes" / "eval-000008.jsonl", episode(41))
    while index.advance(LONG):
        pass
    matching = select(index, Selection(text="say 4"), search)
    assert [index.row(int(n))["id"] for n in matching] == ["4-0"]
    search.advance(index, LONG)
    matching = select(index, Selection(text="say 4"), search)
    assert sorted(index.row(int(n))["id"] for n in matching) == ["4-0", "40-0", "41-0"]


def test_an_index_stops_when_its_time_is_over_and_goes_on(run_dir: Path) -> None:
    index = EpisodeIndex(RunFiles(run_dir))
    sizes = []
    while index.advance(0.0):
        sizes.append(len(index))
    assert sizes == list(range(1, 9))
    assert len(index.columns()) == 8


def test_a_file_written_anew_ends_the_index(run_dir: Path) -> None:
    index = index_of(run_dir)
    other = run_dir / "other"
    write(other, episode(0))
    other.replace(run_dir / "episodes" / "train.jsonl")
    with pytest.raises(FileReplacedError):
        index.advance(LONG)


def test_hostile_lines_are_counted_or_made_plain(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    write(path, {}, {"id": 3, "task": [1], "reward": "x", "step": -5, "is_correct": 1})
    with path.open("ab") as file:
        file.write(b'not json\n\n[]\n\xff\xfe\n{"reward": 1e999, "step": true, "id": "')
        file.write(b"x" * 500 + b'"}\n' + b'{"reward": ' + b"9" * 400 + b"}\n")
    index = index_of(tmp_path)
    assert (len(index), index.num_bad_lines) == (4, 3)
    rows = [index.row(n) for n in range(4)]
    assert [row["reward"] for row in rows] == [None] * 4
    assert [row["step"] for row in rows] == [None] * 4
    assert not rows[1]["is_correct"]
    assert len(rows[2]["id"]) == 203


def test_the_order_of_members_does_not_matter(tmp_path: Path) -> None:
    backwards = dict(reversed(episode(4, step=9).items()))
    write(tmp_path / "episodes.jsonl", backwards)
    row = index_of(tmp_path).row(0)
    assert (row["id"], row["step"], row["reward"]) == ("4-0", 9, 1.0)


def test_only_so_many_different_names_are_kept() -> None:
    names = Names(limit=3)
    assert [names.number(text) for text in "abcdab"] == [0, 1, 2, 2, 0, 1]
    assert names.texts == ["a", "b", "other"]
