from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rllm_agents.cli import main


def run(*arguments: str):
    return CliRunner().invoke(main, list(arguments))


SMALL = ("num_steps=1", "tasks_per_step=2", "eval.num_tasks=4", "algorithm.group_size=2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["env=rllm/Mathh-v0"], "did you mean 'rllm/Math-v0'"),
        (["env=rllm/Math-v0", "env.dataset=absent.jsonl"], "absent.jsonl"),
        (["learner.learning_rat=1"], "did you mean learner.learning_rate"),
        (["model=/no/such/model"], "'/no/such/model' does not exist"),
        (["engine=openai"], "engine.name must be one of transformers, vllm"),
        (["engine.kv_cache_gib=2"], "has no such setting"),
        (["engine.sleep=true"], "has no such setting"),
        (
            ["engine=vllm", "engine.sleep=true", "rollout.max_staleness=1"],
            "engine.sleep=true hands nothing back",
        ),
        (["algorithm.group_size=1"], "at least 2, got 1"),
        (["env.kwargs.digitz=2"], "did you mean 'digits'"),
        (["model.device=mps:99"], "model.device='mps:99' cannot be used here"),
        (["seed"], "KEY=VALUE, got 'seed'"),
        (["--resume"], "--resume needs the run to go on with"),
        (["learner.muon_learning_rate=0.02"], "set model.lora_rank=0"),
    ],
)
def test_a_mistake_is_one_line_with_exit_code_2_and_leaves_no_directory(
    tmp_path, monkeypatch, arguments, words
):
    monkeypatch.chdir(tmp_path)
    result = run("train", *arguments)
    assert result.exit_code == 2, result.output
    lines = result.output.strip().splitlines()
    assert lines[-1].startswith("error: ")
    assert words in lines[-1]
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def test_to_let_vllm_sleep_is_refused_where_it_samples_on_the_cpu(tmp_path, monkeypatch):
    pytest.importorskip("vllm", reason="vLLM is not installed")
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        pytest.skip("here vLLM samples on a GPU")
    monkeypatch.chdir(tmp_path)
    result = run("train", "engine=vllm", "engine.sleep=true")
    assert result.exit_code == 2
    assert "samples on the CPU" in result.output and "set it to false" in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_broken_row_is_named_by_file_and_number(tmp_path):
    data = tmp_path / "data.jsonl"
    data.write_text('{"question": "1 + 1", "answer": "2"}\n{"question": \n')
    result = run("train", "env=rllm/Math-v0", f"env.dataset={data}")
    assert result.exit_code == 2
    assert "data.jsonl, row 2" in result.output


def test_training_on_a_file_plays_its_rows_and_holds_others_out(tmp_path):
    data = tmp_path / "data.jsonl"
    rows = [{"question": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(16)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "run"
    result = run("train", "env=rllm/Math-v0", f"env.dataset={data}", f"run_dir={path}", *SMALL)
    assert result.exit_code == 0, result.output
    held_out = {rows[7]["question"], rows[15]["question"]}
    assert {e["task"]["question"] for e in episodes(path / "episodes" / "eval-000000.jsonl")} == (
        held_out
    )
    trained = {e["task"]["question"] for e in episodes(path / "episodes" / "train.jsonl")}
    assert trained.isdisjoint(held_out)


def test_a_prompt_over_the_limit_is_an_outcome_that_is_said(tmp_path):
    path = tmp_path / "run"
    result = run("train", "rollout.max_prompt_length=5", f"run_dir={path}", *SMALL)
    assert result.exit_code == 0, result.output
    assert "all rewards are 0 (4 x max_prompt_length_exceeded); no update" in result.output


def test_a_used_directory_is_refused_and_resume_reads_its_settings(tmp_path):
    path = tmp_path / "run"
    assert run("train", "seed=5", f"run_dir={path}", *SMALL).exit_code == 0
    again = run("train", f"run_dir={path}")
    assert again.exit_code == 2
    assert "--resume" in again.output
    changed = run("train", "--resume", f"run_dir={path}", "seed=6")
    assert changed.exit_code == 2
    assert "seed was 5, is 6" in changed.output
    resumed = run("train", "--resume", f"run_dir={path}", "num_steps=2")
    assert resumed.exit_code == 0, resumed.output
    summary = json.loads((path / "summary.json").read_text())
    assert (summary["seed"], summary["steps"]) == (5, 2)


def test_the_resolved_settings_can_be_printed():
    result = run("train", "--show-config", "env=rllm/Arithmetic-v0")
    assert result.exit_code == 0
    assert "id: rllm/Arithmetic-v0" in result.output


def test_help_teaches_with_examples():
    result = run("train", "--help")
    assert "env=rllm/Math-v0 env.dataset=train.jsonl" in result.output


def episodes(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


CHAT = {
    "messages": [
        {"role": "user", "content": "What is 2 + 2?"},
        {"role": "assistant", "content": "\\boxed{4}"},
    ]
}


def test_fine_tuning_imitates_and_writes_a_model_that_evaluation_takes(tmp_path):
    data = tmp_path / "chats.jsonl"
    questions = [
        f"What is {a} + {a + 37}? Give the answer in \\boxed{{}}." for a in range(100, 800)
    ]
    answer = {"role": "assistant", "content": "\\boxed{4}"}
    chats = [{"messages": [{"role": "user", "content": q}, answer]} for q in questions]
    data.write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    path = tmp_path / "run"
    result = run(
        "sft",
        f"data={data}",
        "model=tiny",
        "num_updates=60",
        "batch_sequences=16",
        "learner.learning_rate=0.01",
        f"run_dir={path}",
    )
    assert result.exit_code == 0, result.output
    assert json.loads((path / "summary.json").read_text())["final_loss"] < 0.05
    assert (path / "adapter" / "adapter_config.json").exists()
    judged = run(
        "eval",
        f"model={path / 'model'}",
        "env=rllm/Arithmetic-v0",
        "num_tasks=4",
        "sampling.temperature=0",
        f"run_dir={tmp_path / 'eval'}",
    )
    assert judged.exit_code == 0, judged.output
    said = episodes(tmp_path / "eval" / "episodes.jsonl")[0]["messages"][-1]["content"]
    assert said == "\\boxed{4}"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"text": "x"}, "`messages` must be a list"),
        ({"messages": []}, "`messages` must be a list"),
        ({"messages": [{"role": "user"}]}, "a string `content`"),
        ({"messages": [{"role": "robot", "content": ""}]}, "got 'robot'"),
        ({"messages": [{"role": "user", "content": "x"}]}, "no assistant message"),
        (
            {"messages": [*CHAT["messages"], {"role": "assistant", "content": "1 " * 3000}]},
            "more than max_length=1024",
        ),
    ],
)
def test_a_conversation_that_cannot_be_learned_from_is_named(tmp_path, row, words):
    data = tmp_path / "chats.jsonl"
    data.write_text(json.dumps(CHAT) + "\n" + json.dumps(row) + "\n")
    result = run("sft", f"data={data}", f"run_dir={tmp_path / 'run'}")
    assert result.exit_code == 2, result.output
    assert "row 2" in result.output
    assert words in result.output
    assert not (tmp_path / "run").exists()


def test_fine_tuning_without_data_says_what_is_missing():
    result = run("sft")
    assert result.exit_code == 2
    assert "data is not set" in result.output
