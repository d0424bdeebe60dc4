"""`rllm eval`, from arguments to the files it leaves."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from rllm_agents.agents.game import SYSTEM_PROMPT
from rllm_agents.cli import main
from rllm_agents.cli.eval import fitting_lengths, positions_of
from rllm_agents.cli.eval_settings import EvalSettings
from rllm_agents.cli.overrides import describe
from rllm_agents.errors import UserError

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

SERVER = ["engine=openai", "engine.base_url=http://localhost:9/v1"]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random two-layer model with a tokenizer trained on a few strings."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<|im_start|>", "<|im_end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["user\nassistant\nWhat is 12 * 34?"], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>")
    fast.chat_template = CHATML
    fast.save_pretrained(path)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(fast),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=48,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(config).save_pretrained(path)
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["eval", *arguments])


def read_episodes(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / "episodes.jsonl").read_text().splitlines()]


def test_a_model_plays_and_leaves_episodes_and_a_summary(tmp_path: Path, model_dir: str) -> None:
    out = tmp_path / "new" / "run"
    result = run(
        f"model={model_dir}", f"run_dir={out}", "num_tasks=5", "samples_per_task=2",
        "max_response_length=16", "seed=3",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "pass@2" in result.output
    summary = json.loads((out / "summary.json").read_text())
    assert summary["pass_at_1"] == 0.0
    assert list(summary["pass_at_k"]) == ["1", "2"]
    assert (summary["num_tasks"], summary["num_episodes"], summary["num_failed"]) == (5, 10, 0)
    assert summary["seed"] == 3
    assert summary["settings"]["env"]["id"] == "rllm/Calculator-v0"
    assert 0 < summary["mean_response_tokens"] <= 16
    assert "oracle_misses" not in summary
    episodes = read_episodes(out)
    assert len(episodes) == 10
    assert episodes[0]["messages"][0]["role"] == "user"


def test_equal_seeds_give_equal_episodes_and_other_seeds_others(
    tmp_path: Path, model_dir: str
) -> None:
    texts = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(
            f"model={model_dir}", f"run_dir={tmp_path / name}", "num_tasks=8",
            "max_response_length=24", f"seed={seed}",
        )  # fmt: skip
        texts.append((tmp_path / name / "episodes.jsonl").read_text())
    assert texts[0] == texts[1] != texts[2]


def test_greedy_decoding_and_a_system_prompt_reach_the_model(
    tmp_path: Path, model_dir: str
) -> None:
    result = run(
        f"model={model_dir}", f"run_dir={tmp_path}", "sampling.temperature=0", "num_tasks=2",
        "samples_per_task=3", "max_response_length=12", "agent.system_prompt=Be brief: now",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    episodes = read_episodes(tmp_path)
    assert episodes[0]["messages"][0] == {"role": "system", "content": "Be brief: now"}
    answers = [episode["messages"][-1]["content"] for episode in episodes]
    assert answers[0] == answers[1] == answers[2]


def test_another_agent_plays(tmp_path: Path, model_dir: str) -> None:
    result = run(
        f"model={model_dir}", f"run_dir={tmp_path}", "agent.name=game", "num_tasks=2",
        "env=rllm/GuessNumber-v0", "sampling.max_tokens=2", "max_prompt_length=470",
        "max_response_length=40",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    first, second = read_episodes(tmp_path)[0]["messages"][:2]
    assert first == {"role": "system", "content": SYSTEM_PROMPT}
    assert second["content"].startswith("I have chosen a whole number")


def test_a_prompt_over_the_models_length_ends_its_own_episode(
    tmp_path: Path, model_dir: str
) -> None:
    rows = [{"question": "x" * 900, "answer": "1"}, {"question": "1+1", "answer": "2"}]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run(
        f"model={model_dir}", f"run_dir={tmp_path / 'run'}", "env=rllm/Math-v0",
        f"env.dataset={data}", "sampling.max_tokens=8",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    long, short = read_episodes(tmp_path / "run")
    assert long["termination_reason"] == "max_prompt_length_exceeded"
    assert short["termination_reason"] != "max_prompt_length_exceeded"
    assert long["error"] is short["error"] is None


def test_the_oracle_solves_everything_and_bad_references_are_shown(tmp_path: Path) -> None:
    rows = [{"question": "1+1", "answer": "2"}, {"question": "?", "answer": "\\frac{1"}]
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run(
        "policy=oracle", "env=rllm/Math-v0", f"env.dataset={data}", f"run_dir={tmp_path / 'run'}"
    )
    assert result.exit_code == 0, result.output
    assert "1-0 reference" in result.output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["pass_at_1"] == 1.0
    assert [miss["task"] for miss in summary["oracle_misses"]] == [rows[1]]


def test_without_a_run_dir_one_is_made_under_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("policy=oracle", "num_tasks=2").exit_code == 0
    (made,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"eval-\d{8}-\d{6}", made.name)
    names = ["episodes.jsonl", "settings.json", "summary.json", "tasks.csv"]
    assert sorted(path.name for path in made.iterdir()) == names


def test_a_data_file_with_a_broken_row_names_the_row(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text('{"question": "1+1", "answer": "2"}\n{"question": "1+1", \n')
    result = run("env=rllm/Math-v0", f"env.dataset={data}", "policy=oracle")
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert "row 2" in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["env=rllm/Mth-v0"], "did you mean 'rllm/Math-v0'?"),
        (["env=rllm/Math-v0", "env.dataset=no_such.jsonl"], "no such file"),
        (["samplin.temperature=0"], "did you mean sampling.temperature?"),
        (["sampling.temperature=hot"], "sampling.temperature must be a number, got 'hot'"),
        (["sampling.temperature=-1"], "sampling.temperature must be in [0, 100], got -1.0"),
        (["model=no/such/model"], "model.path='no/such/model' does not exist"),
        (
            ["engine=vlm"],
            "engine.name='vlm' does not exist here; there is openai, transformers, vllm",
        ),
        (["engine.kv_cache_gib=2"], "engine.kv_cache_gib is for engine=vllm; leave it out"),
        (["engine=scripted"], "there is openai, transformers"),
        (["engine=pool"], "engine=vllm say; engine.num_engines=2 makes a pool"),
        (["engine.num_engines=0"], "engine.num_engines must be at least 1, got 0"),
        (["engine.num_gpus_per_engine=1"], "does nothing without engine.num_engines"),
        (["engine.num_engines=2", "engine.num_cpus_per_engine=-1"], "must be 0 or more, or null"),
        ([*SERVER, "engine.num_engines=2"], "engine.num_engines=2 does nothing with"),
        (["engine=openai"], "engine.name='openai' needs engine.base_url=ADDRESS"),
        (["engine.base_url=http://a/v1"], "engine.base_url=http://a/v1 does nothing with"),
        (["engine.model=a"], "engine.model=a does nothing with engine.name='transformers'"),
        (["engine.api_key_env=A"], "it is for engine=openai"),
        ([*SERVER, "engine.max_batch_size=9"], "engine.max_batch_size=9 does nothing with"),
        ([*SERVER, "model.dtype=float32"], "model.dtype=float32 does nothing with"),
        ([*SERVER, "model.device=cpu"], "the server decides it"),
        ([*SERVER, "torch_threads=1"], "torch_threads=1 does nothing with engine.name='openai'"),
        ([*SERVER, "engine.api_key_env=NOT_THERE"], "no such environment variable is set"),
        (["engine=openai", "engine.base_url=localhost"], "base_url must be an address"),
        (["agent.name=poet"], "agent.name='poet' does not exist here; there is chat, code, game,"),
        (["agent.name=math", "agent.system_prompt=Hi"], "does nothing with agent.name=math"),
        (["policy=human"], "policy must be model or oracle, got 'human'"),
        (["num_tasks=0"], "num_tasks must be at least 1"),
        (["samples_per_task=0", "num_tasks=1"], "samples_per_task must be at least 1"),
        (["env.kwargs.max_turn=2"], "did you mean 'max_turns'?"),
        (["torch_threads=0"], "torch_threads must be at least 1"),
        (["n_parallel_agents=0", "policy=oracle"], "n_parallel_agents must be at least 1"),
        (["n_processes=-1", "policy=oracle"], "n_processes must be at least 1, got -1"),
        (["n_processes=2"], "each process would load the model"),
    ],
)
def test_a_mistake_gives_one_line_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.output.startswith("error: ")
    assert result.output.count("\n") == 1
    assert words in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_run_dir_that_is_in_use_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    result = run("policy=oracle", f"run_dir={tmp_path}")
    assert (result.exit_code, result.output.count("\n")) == (2, 1)
    assert "is not empty" in result.output
    assert (tmp_path / "summary.json").read_text() == "{}"


def test_without_torch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else found(name)
    )
    result = run("num_tasks=1")
    assert result.exit_code == 2
    assert "pip install 'rllm-agents[torch]'" in result.output


def test_ctrl_c_leaves_the_episodes_so_far_and_exits_130(tmp_path: Path, model_dir: str) -> None:
    arguments = (
        f"model={model_dir}", f"run_dir={tmp_path / 'run'}", "num_tasks=500",
        "n_parallel_agents=1", "max_response_length=200", "engine.max_batch_size=1",
    )  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", "from rllm_agents.cli import main; main()", "eval", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / "run").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert output == ""
    episodes = read_episodes(tmp_path / "run")
    assert f"interrupted: {len(episodes)} of 500 episodes are in" in errors
    assert 0 < len(episodes) < 500


# Lengths


def test_lengths_fit_the_model_unless_told_otherwise(tmp_path: Path) -> None:
    def lengths(positions: int, **given: int) -> tuple[int, int]:
        (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": positions}))
        return fitting_lengths(EvalSettings(**given), positions_of(tmp_path))

    assert lengths(1024) == (768, 256)
    assert lengths(100_000) == (100_000 - 8192, 8192)
    assert lengths(1024, max_prompt_length=1000) == (1000, 24)
    assert lengths(1024, max_response_length=1000) == (24, 1000)
    assert lengths(1024, max_prompt_length=10, max_response_length=20) == (10, 20)
    with pytest.raises(UserError, match="together exceed the model's 1024 positions"):
        lengths(1024, max_prompt_length=1000, max_response_length=25)
    with pytest.raises(UserError, match=r"max_prompt_length must be in \[1, 1023\]"):
        lengths(1024, max_prompt_length=1024)


def test_lengths_of_an_unknown_model_are_taken_as_they_are_asked_for() -> None:
    assert fitting_lengths(EvalSettings(), None) == (24_576, 8192)
    asked = EvalSettings(max_prompt_length=100_000, max_response_length=50_000)
    assert fitting_lengths(asked, None) == (100_000, 50_000)
    assert fitting_lengths(EvalSettings(max_response_length=50_000), None) == (1, 50_000)
    with pytest.raises(UserError, match="max_response_length must be at least 1"):
        fitting_lengths(EvalSettings(max_response_length=0), None)


def test_every_setting_is_explained_in_the_help() -> None:
    text = run("--help").output
    for setting in describe(EvalSettings):
        assert f"  {setting.key}=" in text
        assert setting.meaning, setting.key
