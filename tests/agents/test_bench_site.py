"""What `rllm bench site` writes: numbers of rows, curves, transcripts; and what it refuses."""

from __future__ import annotations

import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rllm_agents.bench_site.curves import read_curves
from rllm_agents.bench_site.pages import script_text
from rllm_agents.bench_site.transcripts import MAX_CHARACTERS
from rllm_agents.cli import main

SUITE = """
name: mine
version: 1
summary: Two sums and a game.
defaults: {num_tasks: 4, max_tokens: 48, max_turns: 20}
entries:
  - {env: rllm/Arithmetic-v0, attempts: 2}
  - {match: rllm/Nim-v0, num_tasks: 1}
"""
SOURCES = "packages/rllm-agents/viewer"
ASSETS = "packages/rllm-agents/src/rllm_agents/bench_site/assets"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of three policies, made once; tests work on copies."""
    place = tmp_path_factory.mktemp("played")
    (place / "mine.yaml").write_text(SUITE)
    made = rllm(
        "run", "--suite", str(place / "mine.yaml"), "--policy", "heuristic", "workers=1",
        f"results={place / 'results'}", f"cache={place / 'cache'}",
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    return place


@pytest.fixture
def place(played: Path, tmp_path: Path) -> Path:
    (tmp_path / "mine.yaml").write_text(SUITE)
    rows = tmp_path / "results" / "mine"
    rows.mkdir(parents=True)
    for path in (played / "results" / "mine").iterdir():
        (rows / path.name).write_bytes(path.read_bytes())
    return tmp_path


def rllm(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


def site(place: Path, *settings: str) -> Result:
    return rllm(
        "site", "--out", str(place / "site"), "--suite", str(place / "mine.yaml"),
        f"results={place / 'results'}", f"curves={place / 'curves'}", *settings,
    )  # fmt: skip


def data(place: Path, key: str) -> Any:
    """What the page gets under a key: the text of a JSON value, in a call."""
    text = (place / "site" / "data" / f"{key}.js").read_text("ascii")
    head = f"rllmSite({json.dumps(key)},"
    assert text.startswith(head)
    assert text.endswith(");\n")
    return json.loads(json.loads(text[len(head) : -3]))


def edit_row(place: Path, name: str, **fields: Any) -> None:
    path = place / "results" / "mine" / f"{name}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def edit_records(place: Path, name: str, entry: str, field: int, value: Any) -> None:
    """Change a field of an entry's first episode, as somebody would who knows of the digest."""
    path = place / "results" / "mine" / f"{name}.actions.xz"
    rows = json.loads(lzma.decompress(path.read_bytes()))
    rows[entry][0][field] = value
    text = json.dumps(rows, separators=(",", ":")).encode()
    path.write_bytes(lzma.compress(text))
    edit_row(place, name, actions_sha256=hashlib.sha256(text).hexdigest())


def test_a_site_has_the_numbers_of_the_rows_and_the_episodes_behind_them(place: Path) -> None:
    result = site(place)
    assert result.exit_code == 0, result.output
    assert "3 rows of 1 suites, 0 curves" in result.output
    index = data(place, "index")
    (suite,) = index["suites"]
    rows = {row["name"]: row for row in suite["rows"]}
    assert [row["name"] for row in suite["rows"]] == ["oracle", "heuristic", "random"]
    assert [entry["name"] for entry in suite["entries"]] == ["Arithmetic-v0", "Nim-v0"]
    assert rows["heuristic"]["entries"][0][0][0] == 1.0
    assert rows["random"]["rating"] == [0.0, 0.0, 0.0]
    scores = data(place, "mine/_scores")
    assert scores["oracle"][0] == [1.0] * 4  # four tasks of two attempts
    assert scores["random"][0] == [0.0] * 4
    assert len(scores["random"][1]) == 4  # a game from two seats against two opponents
    envs = {(env["id"], env["is_match"]): env for env in index["environments"]}
    assert envs["rllm/Arithmetic-v0", False]["threshold"] == "1"
    assert envs["rllm/Nim-v0", True]["category"] == "multi_agent"
    assert envs["rllm/Nim-v0", True]["entries"] == [[0, 1]]


def test_transcripts_are_what_the_environment_says_to_the_recorded_actions(place: Path) -> None:
    assert site(place, "tasks=1").exit_code == 0
    found = data(place, "mine/Arithmetic-v0")
    (task,) = found["tasks"]
    assert (task["id"], task["task"], task["seed"]) == ("0-0", 0, 0)
    episodes = {played["policy"]: played for played in task["played"]}
    (asked, said) = episodes["heuristic"]["messages"]
    assert asked[0] == "user" and "What is" in asked[1]
    assert said[0] == "assistant" and said[1].startswith("\\boxed{")
    assert episodes["oracle"]["messages"][0] == asked  # the same task
    assert episodes["oracle"]["reward"] == 1.0 and episodes["oracle"]["problem"] == ""
    games = data(place, "mine/Nim-v0")["tasks"]
    assert [game["id"].split("-")[0] for game in games] == ["random", "expert"]
    assert all("Pile" in game["played"][0]["messages"][0][1] for game in games)
    assert site(place, "tasks=0").exit_code == 0
    assert not (place / "site" / "data" / "mine" / "Arithmetic-v0.js").exists()
    assert data(place, "index")["has_transcripts"] is False


def test_a_row_that_does_not_hold_is_shown_with_what_is_wrong(place: Path) -> None:
    edit_records(place, "random", "Arithmetic-v0", 1, 1.0)  # reward
    result = site(place)
    assert result.exit_code == 0
    assert "Arithmetic-v0: random, episode 0-0: its actions earn 0 in the" in result.output
    (task, _) = data(place, "mine/Arithmetic-v0")["tasks"]
    assert [bool(played["problem"]) for played in task["played"]] == [False, False, True]


def test_long_and_hostile_texts_leave_whole_and_harmless(place: Path) -> None:
    hostile = '</script><script>alert(1)</script>"\u2028\u202e\x1b[2J\ud800'
    edit_records(place, "random", "Arithmetic-v0", 0, [hostile + "x" * 10_000])
    edit_row(place, "random", policy={"__proto__": {"x": hostile}}, date=hostile)
    assert site(place).exit_code == 0
    messages = data(place, "mine/Arithmetic-v0")["tasks"][0]["played"][2]["messages"]
    left = 10_000 + len(hostile) - MAX_CHARACTERS
    assert messages[1][1].startswith(hostile)
    assert messages[1][1].endswith(f"\n[{left:,} more characters]")
    row = next(r for r in data(place, "index")["suites"][0]["rows"] if r["name"] == "random")
    assert row["policy"] == {"__proto__": {"x": hostile}}
    assert script_text("a", {"b": "</script>\u2028"}) == (
        'rllmSite("a","{\\"b\\":\\"</script>\\\\u2028\\"}");\n'
    )


def test_rows_without_their_episodes_have_scores_and_no_transcripts(place: Path) -> None:
    (place / "results" / "mine" / "random.actions.xz").unlink()
    assert site(place).exit_code == 0
    assert set(data(place, "mine/_scores")) == {"oracle", "heuristic"}
    assert len(data(place, "index")["suites"][0]["rows"]) == 3


def test_broken_rows_and_missing_ones_are_named(place: Path) -> None:
    rows = place / "results" / "mine"
    (rows / "random.json").write_text("{")
    (rows / "oracle.actions.xz").write_bytes(lzma.compress(b"{}"))
    result = site(place)
    assert result.exit_code == 2
    assert "2 files hold no row" in result.output
    assert "random.json cannot be read" in result.output
    assert "oracle.actions.xz is not what" in result.output
    for name in ("random", "oracle"):  # each would be mended; two of one name cannot be
        (rows / f"{name}.json").unlink()
    (rows / "copy.json").write_bytes((rows / "heuristic.json").read_bytes())
    (rows / "copy.actions.xz").write_bytes((rows / "heuristic.actions.xz").read_bytes())
    assert "another row is called 'heuristic' too" in site(place).output
    empty = site(place, f"results={place / 'nowhere'}")
    assert empty.exit_code == 2
    assert "there are no rows of mine under" in empty.output
    assert not (place / "site").exists()


def test_rows_of_another_version_are_left_out_and_said(place: Path) -> None:
    edit_row(place, "random", suite_digest="0" * 64)
    result = site(place)
    assert "the row 'random' is of another version of the suite" in result.output
    assert [r["name"] for r in data(place, "index")["suites"][0]["rows"]] == ["oracle", "heuristic"]


def test_a_directory_that_holds_something_else_is_left_as_it_is(place: Path) -> None:
    (place / "site").mkdir()
    (place / "site" / "thesis.tex").write_text("all of it")
    result = site(place)
    assert result.exit_code == 2
    assert "is not empty and holds no site" in result.output
    assert [path.name for path in (place / "site").iterdir()] == ["thesis.tex"]
    assert "tasks must be in [0, 20], got 21" in site(place, "tasks=21").output
    assert "benchmarks/results/learning_curves" in rllm("site", "--help").output


def test_curves_of_both_kinds_are_read_by_seed(tmp_path: Path) -> None:
    assert read_curves(tmp_path / "nowhere") == ([], [])
    curve = [{"step": 0, "eval/pass_at_1": 0.25}, {"step": 10, "eval/pass_at_1": 0.5, "note": "x"}]
    several = {
        "name": "sums",
        "command": "rllm train",
        "date": "today",
        "machine": "mine",
        "runs": [{"seed": 1, "curve": curve}, {"seed": 0, "curve": curve[:1]}],
    }
    (tmp_path / "sums.json").write_text(json.dumps(several))
    (tmp_path / "rows").mkdir()
    for seed in (0, 1):
        row = {"algorithm": "grpo", "task": "calculator", "seed": seed, "curve": curve}
        (tmp_path / "rows" / f"{seed}.json").write_text(json.dumps(row))
    wrong = row | {"control": "wrong_sign", "curve": [{"step": 0, "score": 0.5, "cost": 1}]}
    (tmp_path / "rows" / "2.json").write_text(json.dumps(wrong))
    (grpo, control, sums), broken = read_curves(tmp_path)
    assert broken == []
    assert (control["name"], control["metrics"]) == (
        "calculator grpo wrong_sign",
        ["score", "cost"],
    )
    assert (grpo["name"], [run["seed"] for run in grpo["runs"]]) == ("calculator grpo", [0, 1])
    assert sums["runs"][0] == {"seed": 0, "steps": [0], "values": {"eval/pass_at_1": [0.25]}}
    assert sums["runs"][1]["values"] == {"eval/pass_at_1": [0.25, 0.5]}
    assert sums["metrics"] == ["eval/pass_at_1"]
    (tmp_path / "rows" / "2.json").write_text('{"task": "calculator"}')
    curves, broken = read_curves(tmp_path)
    assert [curve["name"] for curve in curves] == ["calculator grpo", "sums"]
    assert [line.partition(":")[0] for line in broken] == [
        f"{tmp_path / 'rows' / '2.json'} holds no learning curve"
    ]


def test_the_assets_are_small_and_made_of_the_sources_beside_them(repository: Path) -> None:
    sources = repository / SOURCES
    paths = [sources / "package.json", *(sources / "src").rglob("*")]
    names = sorted(p.relative_to(sources).as_posix() for p in paths if p.is_file())
    digest = hashlib.sha256(b"".join((sources / name).read_bytes() for name in names)).hexdigest()
    assert digest in (repository / ASSETS / "site.js").read_text("utf-8")[:200], (
        "run scripts/build_viewer.sh"
    )
    assert sum(path.stat().st_size for path in (repository / ASSETS).iterdir()) < 150_000
    page = (repository / ASSETS / "index.html").read_text("utf-8")
    assert page.count("<script") == 1
    assert "http:" not in page and "https:" not in page
