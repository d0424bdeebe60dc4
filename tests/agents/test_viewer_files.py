"""What the viewer reads: growing files, heads of lines, run directories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllm_agents.errors import UserError
from rllm_agents.viewer import growing_file
from rllm_agents.viewer.episode_view import episode_view, preview
from rllm_agents.viewer.growing_file import FileReplacedError, GrowingFile
from rllm_agents.viewer.json_lines import finite, parse_head, parse_object
from rllm_agents.viewer.metrics_file import MetricsFile
from rllm_agents.viewer.run_files import RunFiles

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_lines_are_read_once_and_only_when_they_are_complete(tmp_path: Path) -> None:
    path = tmp_path / "f"
    growing = GrowingFile(path)
    assert list(growing.lines()) == []
    path.write_bytes(b"one\ntw")
    assert list(growing.lines()) == [(0, b"one\n")]
    assert list(growing.lines()) == []
    with path.open("ab") as file:
        file.write(b"o\n\nthree\n")
    assert list(growing.lines()) == [(4, b"two\n"), (8, b"\n"), (9, b"three\n")]


def test_a_file_that_was_exchanged_or_cut_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one\ntwo\n")
    cut, exchanged = GrowingFile(path), GrowingFile(path)
    assert len(list(cut.lines())) == len(list(exchanged.lines())) == 2
    (tmp_path / "other").write_bytes(b"one\ntwo\nthree\n")
    (tmp_path / "other").replace(path)
    with pytest.raises(FileReplacedError):
        list(exchanged.lines())
    path.write_bytes(b"one\n")
    with pytest.raises(FileReplacedError):
        list(cut.lines())


def test_a_line_over_the_bound_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing_file, "MAX_LINE_BYTES", 10)
    path = tmp_path / "f"
    path.write_bytes(b"short\n" + b"x" * 35 + b"\nafter\n" + b"y" * 30)
    growing = GrowingFile(path)
    assert list(growing.lines()) == [(0, b"short\n"), (42, b"after\n")]
    assert growing.num_too_long == 1
    with path.open("ab") as file:
        file.write(b"\nlast\n")
    assert list(growing.lines()) == [(79, b"last\n")]
    assert growing.num_too_long == 2


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(), JSON), st.text(), JSON, st.sampled_from([None, 2]))
def test_the_head_of_a_line_is_what_a_full_parse_finds_before_the_stop(
    members: dict, stop: str, bulk: object, indent: int | None
) -> None:
    members.pop(stop, None)
    line = json.dumps({**members, stop: bulk}, indent=indent).encode()
    assert parse_head(line, {stop}) == json.loads(json.dumps(members))


def test_a_head_longer_than_what_is_looked_at_is_found_all_the_same() -> None:
    head = {"id": "0", "task": "é" * 20_000, "reward": 1.5}
    for more in ({}, {"messages": []}):
        line = json.dumps({**head, **more}, ensure_ascii=False).encode()
        assert parse_head(line, {"messages"}) == head


@pytest.mark.parametrize(
    "line", [b"", b"{", b"[1]", b"3", b"\xff", b"[" * 100_000, b'{"a": ' * 100_000, b'{"a" 1}']
)
def test_what_is_no_object_is_none(line: bytes) -> None:
    assert parse_object(line) is None
    assert parse_head(line, ()) is None


def test_numbers_that_json_does_not_know_become_none() -> None:
    assert parse_object(b'{"a": NaN, "b": -Infinity}') == {"a": None, "b": None}
    assert finite({"a": [1e999, 0.5, {"b": -1e999}]}) == {"a": [None, 0.5, {"b": None}]}


def test_the_files_of_a_run_say_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "episodes").mkdir()
    for name in ("train", "eval-000010", "eval-greedy-000000"):
        (tmp_path / "episodes" / f"{name}.jsonl").touch()
    (tmp_path / "config.yaml").write_text("seed: 3\n")
    run = RunFiles(tmp_path)
    found = [(file.kind, file.step) for file in run.episode_files()]
    assert found == [("eval", 10), ("eval-greedy", 0), ("train", None)]
    assert run.settings_text() == "seed: 3\n"
    assert run.summary() == {}
    (tmp_path / "summary.json").write_text('{"pass_at_1": NaN, "settings": {"seed": 4}}')
    assert run.summary() == {"pass_at_1": None, "settings": {"seed": 4}}


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        RunFiles(tmp_path / "none")
    with pytest.raises(UserError, match="holds no run"):
        RunFiles(tmp_path)


def test_metrics_are_followed_and_begin_anew_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = MetricsFile(path)
    metrics.read_on()
    assert metrics.rows == []
    path.write_text('{"step": 1, "a": 0.5, "b": NaN, "c": "text"}\nnonsense\n{"step": "2"}\n{"st')
    metrics.read_on()
    assert metrics.rows == [{"step": 1, "a": 0.5, "b": None}]
    (tmp_path / "other").write_text('{"step": 0}\n')
    (tmp_path / "other").replace(path)
    metrics.read_on()
    assert (metrics.rows, metrics.generation) == ([{"step": 0}], 1)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["messages", "steps", "token_records", "error"]), JSON))
def test_any_record_can_be_shown(record: dict) -> None:
    view = episode_view({**record, "trajectories": [record, 3]})
    json.dumps(view, allow_nan=False)
    assert len(view["trajectories"]) == 1


def test_an_episode_is_shown_as_it_was_written() -> None:
    tokens = {
        "token_ids": [5, 6],
        "logprobs": [0.0, -1.0],
        "turns": [{"start": 1, "stop": 2, "step_index": 0, "weights_version": 3}],
    }
    credit = {"texts": ["a", "b"], "advantages": [0.5, 0.5]}
    record = {
        "task": {"seed": 1},
        "messages": [
            {"role": "user", "content": "Q"},
            {"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]},
        ],
        "steps": [{"action": {"x": 1}, "reward": 0.25, "info": {}}],
        "token_records": [
            {**tokens, **credit},
            tokens,
            {**tokens, **credit, "texts": ["a"]},
            {**tokens, "logprobs": [0.0]},
            {**tokens, "turns": [{"start": 1, "stop": 3}]},
        ],
    }
    (part,) = episode_view(record)["trajectories"]
    assert part["messages"][0] == {"role": "user", "content": "Q", "more": ""}
    assert json.loads(part["messages"][1]["more"]) == {"tool_calls": [{"name": "f"}]}
    assert part["steps"] == [{"action": '{\n "x": 1\n}', "reward": 0.25, "info": ""}]
    whole, plain, wrong_texts, wrong_turn = part["token_records"]  # one had too few logprobs
    assert (whole["texts"], whole["advantages"]) == (["a", "b"], [0.5, 0.5])
    assert (plain["texts"], plain["advantages"]) == (None, None)
    assert wrong_texts["texts"] is None
    assert wrong_turn["turns"] == []
    assert preview(record) == {"asked": "Q", "said": ""}
