"""`rllm serve` as a process: what it says, serves, writes and leaves behind."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rllm_agents.cli import main


def run(*settings: str) -> Any:
    return CliRunner().invoke(main, ["serve", *settings])


@contextmanager
def served(*settings: str) -> Iterator[str]:
    """Address of a server that runs as a command until the block ends."""
    code = "import sys; from rllm_agents.cli import main; sys.argv[0] = 'rllm'; main()"
    command = [sys.executable, "-c", code, "serve", "port=0", *settings]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " at http://" in line, process.communicate()[1]
        if "token_file" in " ".join(settings):
            assert "as api_key" in process.stdout.readline()
        yield line.split(" at ")[1].strip()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def ask(url: str, body: Any, **headers: str) -> Any:
    data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **headers}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as response:
        return json.load(response)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (["host=0.0.0.0"], "token_file=PATH"),
        (["host=example.org"], "token_file=PATH"),
        (["hots=127.0.0.1"], "did you mean"),
        (["tool_parser=none"], "parser_name must be one of"),
        (["engine=scripted"], "does not exist here"),
        (["model=/nowhere"], "does not exist"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(settings: list[str], problem: str) -> None:
    result = run(*settings)
    assert result.exit_code == 2
    assert problem in result.output
    assert result.output.count("\n") == 1


def test_the_tiny_model_is_served_and_a_session_recorded(tmp_path: Path) -> None:
    token_file, episodes = tmp_path / "token", tmp_path / "runs" / "episodes.jsonl"
    with served(
        f"token_file={token_file}", f"episodes={episodes}", "sampling.temperature=0"
    ) as url:
        assert stat.S_IMODE(os.stat(token_file).st_mode) == 0o600
        key = {"Authorization": f"Bearer {token_file.read_text().strip()}"}
        with pytest.raises(urllib.error.HTTPError) as caught:
            ask(f"{url}/completions", {"model": "tiny", "prompt": "1"})
        caught.value.close()
        assert caught.value.code == 401
        question = {"role": "user", "content": "What is 2 + 3?"}
        body = {"model": "tiny", "messages": [question], "user": "anna", "max_tokens": 20}
        said = ask(f"{url}/chat/completions", body, **key)["choices"][0]["message"]["content"]
        root = url.removesuffix("/v1")
        summary = ask(f"{root}/sessions/anna/finish", {"reward": 0.5}, **key)
        ask(f"{url}/chat/completions", {**body, "user": "bert"}, **key)
    assert (summary["num_calls"], summary["reward"]) == (1, 0.5)
    assert not token_file.exists()
    first, second = (json.loads(line) for line in episodes.read_text("utf-8").splitlines())
    assert (first["id"], first["reward"]) == ("anna", 0.5)
    assert first["messages"] == [question, {"role": "assistant", "content": said}]
    (record,) = first["token_records"]
    (turn,) = record["turns"]
    assert len(record["token_ids"]) == len(record["logprobs"]) == turn["stop"]
    assert turn["stop"] - turn["start"] == summary["response_tokens"] > 0
    assert (second["id"], second["reward"]) == ("bert", None)  # nobody finished it
