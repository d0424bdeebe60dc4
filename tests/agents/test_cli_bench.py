"""`rllm bench`, from arguments to rows, tables and verdicts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from openai_server import FakeServer

from rllm_agents.cli import main
from rllm_agents.cli.bench_entrants import find_policy
from rllm_agents.cli.bench_settings import BenchRunSettings
from rllm_agents.cli.overrides import parse_settings
from rllm_agents.errors import UserError
from rllm_agents.models import TINY

SUITE = """
name: mine
version: 1
summary: Two sums and a game.
defaults: {num_tasks: 4, max_tokens: 48, max_turns: 20}
entries:
  - rllm/Arithmetic-v0
  - {match: rllm/Nim-v0, num_tasks: 1}
"""


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory with a suite; rows and records go below it."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text(SUITE)
    return tmp_path


def rllm(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


def play(policy: str, *settings: str) -> Result:
    return rllm("run", "--suite", "mine.yaml", "--policy", policy, "workers=1", *settings)


def row_of(name: str) -> dict[str, Any]:
    path = Path("benchmarks/results/leaderboard/mine") / f"{name}.json"
    return json.loads(path.read_text())


def adapter(directory: Path) -> Path:
    """Write an adapter of the tiny model that changes nothing, as peft does."""
    import peft
    from transformers import AutoModelForCausalLM

    config = peft.LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM")
    peft.get_peft_model(AutoModelForCausalLM.from_pretrained(TINY), config).save_pretrained(
        str(directory)
    )
    return directory


def test_a_row_a_table_and_a_verdict_from_three_commands() -> None:
    result = play("heuristic")
    assert result.exit_code == 0, result.output
    assert "normalised" in result.output
    assert row_of("heuristic")["entries"][0]["score"][0] == 1.0
    assert row_of("random")["entries"][0]["references"] == [0.0, 1.0]
    assert row_of("oracle")["total"]["normalised"][0] == 1.0

    table = rllm("table", "--suite", "mine.yaml")
    assert table.exit_code == 0, table.output
    lines = [line for line in table.output.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in lines] == ["oracle", "heuristic", "random"]
    written = Path("benchmarks/results/leaderboard/mine/README.md").read_text()
    assert written == f"# mine\n\n{table.output.rstrip()}\n"

    rows = [f"benchmarks/results/leaderboard/mine/{n}.json" for n in ("random", "heuristic")]
    verdict = rllm("verify", "--suite", "mine.yaml", *rows)
    assert (verdict.exit_code, verdict.output) == (0, f"{rows[0]}: holds\n{rows[1]}: holds\n")

    row = row_of("heuristic")
    row["entries"][0]["score"] = [0.5, 0.4, 0.6]
    Path(rows[1]).write_text(json.dumps(row))
    verdict = rllm("verify", "--suite", "mine.yaml", *rows)
    assert verdict.exit_code == 1
    assert f"{rows[1]}: refused\n  Arithmetic-v0: score is [1.0" in verdict.output


def test_options_and_settings_say_the_same_and_nothing_is_played_twice() -> None:
    assert play("random").exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.jsonl")}
    assert len(before) == 4  # two entries of random play and of the oracle
    result = rllm("run", "suite=mine.yaml", "policy=random", "workers=1")
    assert result.exit_code == 0, result.output
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*.jsonl")} == before


def test_another_seed_is_another_row_beside_the_first() -> None:
    assert play("random").exit_code == 0
    assert play("random", "seed=1").exit_code == 0
    assert row_of("random-seed-1")["seed"] == 1
    assert row_of("random")["seed"] == 0
    assert row_of("random-seed-1")["actions_sha256"] != row_of("random")["actions_sha256"]


def test_the_tiny_model_plays_environments_and_matches() -> None:
    result = play("tiny")
    assert result.exit_code == 0, result.output
    row = row_of("tiny")
    assert row["policy"]["model"] == "tiny"
    assert len(row["policy"]["weights"]) == 64
    assert row["total"]["tokens"] > 0
    assert all(entry["tokens"] > 0 for entry in row["entries"])
    assert sum(row["entries"][1]["results"]["expert"]) == 2
    verdict = rllm(
        "verify", "--suite", "mine.yaml", "benchmarks/results/leaderboard/mine/tiny.json"
    )
    assert verdict.exit_code == 0, verdict.output


def test_an_adapter_and_the_directory_of_a_training_run_play(tmp_path: Path) -> None:
    run_dir = tmp_path / "trained"
    adapter(run_dir / "adapter")
    (run_dir / "config.yaml").write_text("model: {path: tiny}\n")
    assert play(str(run_dir)).exit_code == 0
    by_run = row_of("trained")
    assert play("tiny", f"adapter={run_dir / 'adapter'}", "name=by-adapter").exit_code == 0
    by_adapter = row_of("by-adapter")
    assert by_run["policy"] == by_adapter["policy"]
    assert len(by_run["policy"]["adapter_weights"]) == 64
    assert str(tmp_path) not in json.dumps(by_run)
    # It changes nothing, so the model alone does the same.
    assert play("tiny").exit_code == 0
    assert row_of("tiny")["actions_sha256"] != ""
    assert row_of("tiny")["total"]["turns"] == by_run["total"]["turns"]
    assert row_of("tiny")["policy"] != by_run["policy"]


def test_a_server_plays_by_its_address(tmp_path: Path) -> None:
    with FakeServer(r"\boxed{7}", models=("org/model",)) as server:
        result = play(server.base_url)
        assert result.exit_code == 0, result.output
        row = row_of("server")
        assert row["policy"]["engine"] == "openai"
        assert server.base_url not in json.dumps(row)
        assert {body["max_tokens"] for _, body in server.posts} == {48}
        named = play(server.base_url, "engine.model=org/model")
        assert named.exit_code == 0, named.output
        assert row_of("model")["policy"]["model"] == "model"


def test_the_table_goes_between_the_marks_of_a_page(tmp_path: Path) -> None:
    assert play("random").exit_code == 0
    page = tmp_path / "page.md"
    page.write_text(
        "# Mine\n<!-- leaderboard: mine -->\nbefore\n<!-- end of leaderboard: mine -->\nafter\n"
    )
    assert rllm("table", "--suite", "mine.yaml", f"page={page}").exit_code == 0
    text = page.read_text()
    assert text.startswith("# Mine\n<!-- leaderboard: mine -->\nTwo sums and a game.")
    assert text.endswith("|\n<!-- end of leaderboard: mine -->\nafter\n")
    assert "before" not in text
    page.write_text("no marks")
    refused = rllm("table", "--suite", "mine.yaml", f"page={page}")
    assert refused.exit_code == 2
    assert "<!-- leaderboard: mine -->" in refused.output


def test_names_of_rows_cannot_leave_their_cell(tmp_path: Path) -> None:
    assert play("random").exit_code == 0
    source = Path("benchmarks/results/leaderboard/mine/random.json")
    row = json.loads(source.read_text()) | {"name": "a | b <script>`x`", "date": "[x](http://y)"}
    source.with_name("hostile.json").write_text(json.dumps(row))
    table = rllm("table", "--suite", "mine.yaml")
    assert table.exit_code == 0, table.output
    hostile = next(line for line in table.output.splitlines() if "script" in line)
    assert "| `a ? b ?script??x?` |" in hostile
    assert "?x??http://y?" in hostile


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--suite", "quack", "--policy", "random"], "there is no suite 'quack'"),
        (["run", "suite=mine.yaml"], "policy= says who plays"),
        (["run", "suite=mine.yaml", "policy=tiny", "name=../up"], "name must be"),
        (["run", "suite=mine.yaml", "policy=tiny", "name=oracle"], "is that of policy=oracle"),
        (["run", "suite=mine.yaml", "policy=oracle", "adapter=x"], "plays without a model"),
        (["run", "suite=mine.yaml", "policy=random", "seed=-1"], "seed must be in"),
        (["run", "suite=mine.yaml", "policy=random", "workers=0"], "workers must be"),
        (["run", "suite=mine.yaml", "policy=random", "sead=1"], "did you mean seed"),
        (["run", "suite=mine.yaml", "policy=nowhere/at/all"], "policy='nowhere/at/all' does not"),
        (["run", "suite=mine.yaml", "policy=tiny", "model=tiny", "engine=none"], "does not exist"),
        (["table", "--suite", "mine.yaml"], "there are no rows of mine, version 1"),
        (["verify", "none.json"], "cannot be read"),
    ],
)
def test_a_users_mistake_is_one_line(arguments: list[str], said: str) -> None:
    result = rllm(*arguments)
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert result.output.count("\n") == 1


def find(*settings: str) -> Any:
    return find_policy(parse_settings(BenchRunSettings, settings))


def test_a_policys_name_says_what_plays(tmp_path: Path) -> None:
    assert find("policy=random").script == "random"
    assert find("policy=tiny", "seed=4").name == "tiny-seed-4"
    assert find("model=tiny").name == "tiny"
    model = shutil.copytree(TINY, tmp_path / "My model")
    assert find(f"policy={model}").name == "My-model"
    full = tmp_path / "full"
    shutil.copytree(TINY, full / "model")
    (full / "config.yaml").write_text("model: {path: tiny}\n")
    policy = find(f"policy={full}")
    assert (policy.name, policy.adapter) == ("full", None)
    assert policy.settings.model.path == str(full / "model")
    with pytest.raises(UserError, match="a server's model takes no adapter"):
        find("policy=http://localhost:9/v1", "adapter=x")
    with pytest.raises(UserError, match="name one of them"):
        find(f"policy={model}", "model=tiny")


def test_suites_are_listed() -> None:
    result = rllm("suites")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.output.splitlines()] == [
        *("code", "core", "games", "math", "multi-agent", "quick", "tools")
    ]
