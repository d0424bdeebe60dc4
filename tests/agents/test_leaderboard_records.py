"""Records of episodes: on disk as they come in, and packed."""

from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rllm_agents.errors import UserError
from rllm_agents.leaderboard.records import (
    EpisodeRecord,
    RecordFile,
    pack_records,
    parse_record,
    unpack_records,
)

ONE = EpisodeRecord(("\\boxed{1}", "\ud800é\n"), 0.5, False, "env_done", 7, 2, 0.25)
FIELDS = {
    "actions": ["a"],
    "reward": 1.0,
    "success": True,
    "end": "env_done",
    "tokens": 1,
    "turns": 1,
    "seconds": 0.1,
}


def test_what_was_added_is_there_again_even_after_a_cut_in_the_middle_of_a_line(
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep" / "e.jsonl"
    file = RecordFile(path)
    file.add("0-0", ONE)
    file.add_seconds(1.5)
    with open(path, "a") as half:
        half.write('{"id": "1-0", "rec')
    again = RecordFile(path)
    assert again.records == {"0-0": ONE}
    assert again.seconds == 1.5
    again.add("1-0", replace(ONE, reward=1.0))
    again.add("0-0", replace(ONE, reward=9.0))
    assert RecordFile(path).records == {"0-0": ONE, "1-0": replace(ONE, reward=1.0)}


def test_packed_records_come_back_with_their_digest(tmp_path: Path) -> None:
    path = tmp_path / "row.actions.xz"
    digest = pack_records(path, {"e": [ONE, ONE], "f": []})
    assert unpack_records(path) == ({"e": [ONE, ONE], "f": []}, digest)
    assert digest == hashlib.sha256(lzma.decompress(path.read_bytes())).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"actions": "a"},
        {"actions": [1]},
        {"reward": None},
        {"reward": float("nan")},
        {"reward": True},
        {"success": 1},
        {"end": "won"},
        {"end": "env_exception"},
        {"tokens": -1},
        {"tokens": 1.5},
        {"turns": "1"},
        {"seconds": -0.1},
        {"extra": 1},
    ],
)
def test_a_record_of_a_wrong_type_is_refused(change: dict[str, Any]) -> None:
    assert parse_record(FIELDS).reward == 1.0
    with pytest.raises(UserError, match="record"):
        parse_record(FIELDS | change)


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "row.actions.xz"
    with pytest.raises(UserError, match="cannot be read"):
        unpack_records(path)
    for data in (b"", b"no xz", lzma.compress(b"[1, 2]"), lzma.compress(b"{"),
                 lzma.compress(json.dumps({"e": [[1]]}).encode()),
                 lzma.compress(b"{}" * 1000)[:-20]):  # fmt: skip
        path.write_bytes(data)
        with pytest.raises(UserError, match=r"row\.actions\.xz"):
            unpack_records(path)


def test_what_would_unpack_to_too_much_is_refused_before_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rllm_agents.leaderboard.records.MAX_UNPACKED_BYTES", 1_000_000)
    path = tmp_path / "row.actions.xz"
    path.write_bytes(lzma.compress(b" " * 50_000_000))
    assert path.stat().st_size < 20_000
    with pytest.raises(UserError, match="unpacks to over 1000000 bytes"):
        unpack_records(path)
