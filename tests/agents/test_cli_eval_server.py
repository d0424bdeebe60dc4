"""`rllm eval engine=openai`, against a server over real HTTP."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from openai_server import FakeServer

from rllm_agents.cli import main
from rllm_agents.models import TINY

KEY = "sk-verysecret-1234567890"


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def run(server: FakeServer, out: Path, *settings: str) -> Result:
    given = ["engine=openai", f"engine.base_url={server.base_url}", "num_tasks=3"]
    return CliRunner().invoke(main, ["eval", *given, f"run_dir={out}", *settings])


def summary_of(result: Result, out: Path) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return json.loads((out / "summary.json").read_text())


def test_the_only_model_of_a_server_plays_in_text(tmp_path: Path) -> None:
    with FakeServer(r"\boxed{7}", models=("org/model",)) as server:
        result = run(server, tmp_path, "sampling.temperature=0.5")
        summary = summary_of(result, tmp_path)
        assert {path for path, _ in server.posts} == {"/v1/chat/completions"}
        assert {body["model"] for _, body in server.posts} == {"org/model"}
        assert {body["max_tokens"] for _, body in server.posts} == {8192}
    assert (summary["num_episodes"], summary["num_failed"]) == (3, 0)
    assert "no tokenizer here" in result.output


def test_a_model_directory_gives_the_tokenizer_and_the_server_its_length(tmp_path: Path) -> None:
    with FakeServer("no", models=("tiny", "other"), max_model_len=400) as server:
        result = run(server, tmp_path, "model=tiny")
        summary = summary_of(result, tmp_path)
        assert {path for path, _ in server.posts} == {"/v1/completions"}
        assert {body["model"] for _, body in server.posts} == {"tiny"}
        assert max(body["max_tokens"] for body in server.completions) == 100  # a quarter
    assert summary["num_failed"] == 0
    assert summary["mean_response_tokens"] == 9  # three turns of n, o and the stop token
    assert "no tokenizer here" not in result.output


def test_two_processes_with_the_models_tokenizer_ask_the_server(tmp_path: Path) -> None:
    with FakeServer("no", models=("tiny",), max_model_len=400) as server:
        result = run(server, tmp_path, "model=tiny", "n_processes=2")
        # Each looks once whether the server returns token ids.
        assert (len(server.completions), len(server.posts)) == (9, 11)
    summary = summary_of(result, tmp_path)
    assert (summary["num_episodes"], summary["num_failed"]) == (3, 0)
    assert summary["mean_response_tokens"] == 9  # three turns of n, o and the stop token


def test_the_servers_name_of_the_model_may_differ_from_the_directory(tmp_path: Path) -> None:
    with FakeServer("no", models=("served", "other"), max_model_len=400) as server:
        result = run(server, tmp_path, "model=tiny", "engine.model=served")
        assert summary_of(result, tmp_path)["num_failed"] == 0
        assert {body["model"] for _, body in server.posts} == {"served"}


def test_a_name_that_is_only_the_servers_plays_in_text(tmp_path: Path) -> None:
    with FakeServer("no", models=("org/a", "org/b")) as server:
        assert run(server, tmp_path, "model=org/b").exit_code == 0
        assert {body["model"] for _, body in server.posts} == {"org/b"}


def test_the_key_comes_from_the_environment_and_is_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    with FakeServer("no", key=KEY) as server:
        result = run(server, tmp_path / "a", "engine.api_key_env=MY_KEY")
        assert summary_of(result, tmp_path / "a")["num_failed"] == 0
        refused = run(server, tmp_path / "b")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: http://127.0.0.1")
    assert "HTTP 401" in refused.stderr
    written = [path.read_text() for path in tmp_path.rglob("*.json*")]
    assert len(written) == 3  # settings, episodes and summary of the one that played
    assert [
        text for text in [*written, result.output, refused.output] if "verysecret" in text
    ] == []


def test_a_mistake_about_the_server_is_one_line_before_anything_is_played(tmp_path: Path) -> None:
    with FakeServer(models=("tiny", "a"), max_model_len=400) as server:
        several = run(server, tmp_path)
        assert several.exit_code == 1
        assert "name one of them as model: tiny, a" in several.stderr
        too_long = run(server, tmp_path, "model=tiny", "max_response_length=400")
        assert too_long.exit_code == 2
        assert "max_response_length must be in [1, 399]" in too_long.stderr
        no_tokens = run(server, tmp_path, "model=a", "max_prompt_length=30")
        assert no_tokens.exit_code == 2
        assert "max_prompt_length counts tokens" in no_tokens.stderr
        broken = tmp_path / "broken"
        shutil.copytree(TINY, broken)
        (broken / "tokenizer.json").write_text("{")
        unreadable = run(server, tmp_path / "out", f"model={broken}")
        assert unreadable.exit_code == 2
        assert server.posts == []
    for result in (several, too_long, no_tokens, unreadable):
        assert result.stderr.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken"]
