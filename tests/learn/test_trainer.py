from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import peft
import pytest
import torch
from trainer_runs import SMALL, adapter_weights, trainer
from transformers import AutoModelForCausalLM

from rllm_agents import ChatAgent
from rllm_agents.models import TINY
from rllm_envs import BaseEnv, GymEnv
from rllm_learn import AgentTrainer
from rllm_learn.core.checkpoint import latest_checkpoint
from rllm_learn.errors import ConfigError, TrainingError
from rllm_learn.tracking import read_metrics


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run"
    trainer(path).train()
    return path


def test_a_run_leaves_what_the_documentation_promises(finished):
    summary = json.loads((finished / "summary.json").read_text())
    for key in ("pass_at_1_before", "pass_at_1_after"):
        assert 0.0 <= summary[key] <= 1.0
    assert summary["pass_at_1_after"] <= summary["pass_at_2_after"] <= 1.0
    assert summary["steps"] == 4
    assert summary["seed"] == 0
    assert 0 < summary["weights_versions"] <= 4
    assert summary["seconds"] > 0 < summary["cpu_seconds"]
    assert (finished / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert (finished / "config.yaml").exists()
    episodes = (finished / "episodes" / "eval-000004.jsonl").read_text().splitlines()
    assert len(episodes) == 16  # 8 tasks, each twice
    assert json.loads(episodes[0])["messages"][0]["role"] == "user"
    steps = [row["step"] for row in read_metrics(finished / "metrics.jsonl")]
    assert sorted(set(steps)) == [0, 1, 2, 3, 4]


def test_sampler_and_learner_hold_the_same_weights_at_every_step(finished):
    rows = read_metrics(finished / "metrics.jsonl")
    gaps = [row["learner/sampler_gap_max"] for row in rows if "learner/sampler_gap_max" in row]
    assert gaps
    # float32 logprobs of two ways to compute them: cached decoding and one padded forward.
    assert max(gaps) < 1e-4


def test_plain_peft_loads_the_adapter(finished):
    ids = torch.tensor([[1, 5, 9, 20]])
    base = AutoModelForCausalLM.from_pretrained(TINY)
    before = base(input_ids=ids).logits
    policy = peft.PeftModel.from_pretrained(base, finished / "adapter")
    assert (policy(input_ids=ids).logits - before).abs().max().item() > 1e-4


def test_the_same_seed_gives_the_same_run_and_another_seed_another(finished, tmp_path):
    trainer(tmp_path / "same").train()
    trainer(tmp_path / "other", seed=1).train()
    first, same = adapter_weights(finished), adapter_weights(tmp_path / "same")
    assert all(torch.equal(first[name], same[name]) for name in first)
    other = adapter_weights(tmp_path / "other")
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_a_resumed_run_ends_exactly_where_an_uninterrupted_one_does(finished, tmp_path):
    path = tmp_path / "run"
    trainer(path, num_steps=2).train()
    trainer(path, resume=True).train()
    first, resumed = adapter_weights(finished), adapter_weights(path)
    assert all(torch.equal(first[name], resumed[name]) for name in first)
    before = [r for r in read_metrics(finished / "metrics.jsonl") if "train/reward" in r]
    after = [r for r in read_metrics(path / "metrics.jsonl") if "train/reward" in r]
    keys = [k for k in before[0] if not k.startswith("time/")]
    assert [[r.get(k) for k in keys] for r in before] == [[r.get(k) for k in keys] for r in after]


@pytest.mark.parametrize(
    "algorithm",
    [
        {"name": "reinforce", "rollouts_per_task": 4, "baseline": "running"},
        {"name": "dapo", "group_size": 4, "kl_coefficient": 0.1},
        {"name": "ppo", "rollouts_per_task": 4},
        {"name": "ppo", "rollouts_per_task": 4, "vf_share_layers": True, "gae_over": "turns"},
    ],
    ids=["what it remembers", "how many tasks it played", "its critic", "its value head"],
)
def test_a_resumed_run_knows_what_the_algorithm_did_before(tmp_path, algorithm):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    trainer(whole, algorithm=algorithm).train()
    trainer(cut, algorithm=algorithm, num_steps=2).train()
    trainer(cut, algorithm=algorithm, resume=True).train()
    first, resumed = adapter_weights(whole), adapter_weights(cut)
    assert all(torch.equal(first[name], resumed[name]) for name in first)


@pytest.mark.parametrize("lora_rank", [0, 8])
def test_the_divergence_from_the_loaded_model_grows_from_nothing(tmp_path, lora_rank):
    algorithm = {"name": "grpo", "group_size": 4, "kl_coefficient": 0.01}
    path = tmp_path / "run"
    trainer(path, algorithm=algorithm, model={"lora_rank": lora_rank}).train()
    rows = read_metrics(path / "metrics.jsonl")
    found = [r["learner/reference_kl"] for r in rows if "learner/reference_kl" in r]
    assert abs(found[0]) < 1e-6 < found[-1]


@pytest.mark.parametrize(
    ("algorithm", "metric"),
    [
        ({"name": "rft", "rollouts_per_task": 4}, "train/kept"),
        ({"name": "dpo", "group_size": 4}, "train/preference_loss"),
        ({"name": "distillation", "rollouts_per_task": 2}, "train/teacher_kl"),
    ],
    ids=["rft", "dpo", "distillation"],
)
def test_algorithms_with_other_losses_run_in_the_same_loop(finished, tmp_path, algorithm, metric):
    path = tmp_path / "run"
    if algorithm["name"] == "distillation":
        algorithm = {**algorithm, "teacher": str(finished / "adapter")}
    summary = trainer(path, algorithm=algorithm, num_steps=2).train()
    assert summary["weights_versions"] > 0
    rows = read_metrics(path / "metrics.jsonl")
    found = [row[metric] for row in rows if metric in row]
    assert found
    assert all(value > 0 for value in found)


def test_a_damaged_newest_checkpoint_costs_only_the_steps_after_the_one_before(
    finished, tmp_path, capsys
):
    path = tmp_path / "run"
    trainer(path).train()
    newest, _ = latest_checkpoint(path / "checkpoints")
    assert newest is not None
    (newest.path / "learner.pt").write_bytes(b"damaged")
    trainer(path, resume=True).train()
    printed = capsys.readouterr().out
    assert "learner.pt is not what its manifest says" in printed
    assert "resumed at step 2" in printed
    first, resumed = adapter_weights(finished), adapter_weights(path)
    assert all(torch.equal(first[name], resumed[name]) for name in first)


def test_full_parameters_are_trained_and_saved_as_a_model(tmp_path):
    trainer(tmp_path / "run", model={"lora_rank": 0}, num_steps=1).train()
    trained = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model")
    base = AutoModelForCausalLM.from_pretrained(TINY)
    moved = [
        (a - b).abs().max().item()
        for a, b in zip(trained.parameters(), base.parameters(), strict=True)
    ]
    assert min(moved) > 0


class SilentEnv(BaseEnv):
    """Never rewards anything."""

    blocking = False

    def reset(self):
        return {"question": "?"}, {}

    def step(self, action):
        return {}, 0.0, True, {}

    @staticmethod
    def from_dict(info):
        return SilentEnv()


class BrokenEnv(SilentEnv):
    """Raises in every step."""

    def step(self, action):
        raise OSError("the shop is closed")

    @staticmethod
    def from_dict(info):
        return BrokenEnv()


TASKS = [{"number": i} for i in range(16)]


def test_a_run_without_any_reward_says_so_and_changes_nothing(tmp_path, capsys):
    summary = AgentTrainer(
        env_class=SilentEnv,
        config={**SMALL, "run_dir": str(tmp_path / "run")},
        train_dataset=TASKS,
    ).train()
    assert capsys.readouterr().out.count("all rewards are 0 (") == 4
    assert summary["weights_versions"] == 0
    assert summary["pass_at_1_after"] == 0.0


def test_a_run_whose_episodes_fail_stops_and_names_the_error(tmp_path):
    with pytest.raises((TrainingError, Exception), match="the shop is closed"):
        AgentTrainer(
            env_class=BrokenEnv,
            config={**SMALL, "run_dir": str(tmp_path / "run")},
            train_dataset=TASKS,
        ).train()


def test_an_env_class_of_ones_own_needs_tasks(tmp_path):
    with pytest.raises(ConfigError, match="train_dataset is needed with env_class=SilentEnv"):
        AgentTrainer(env_class=SilentEnv, config={"run_dir": str(tmp_path / "run")}).train()


def test_agent_and_env_arguments_reach_every_episode(tmp_path):
    AgentTrainer(
        agent_class=ChatAgent,
        env_class=GymEnv,
        config={**SMALL, "num_steps": 1, "run_dir": str(tmp_path / "run")},
        agent_args={"system_prompt": "Be brief."},
        env_args={"env_id": "rllm/Arithmetic-v0", "env_kwargs": {"digits": 2}},
    ).train()
    line = (tmp_path / "run" / "episodes" / "train.jsonl").read_text().splitlines()[0]
    messages = json.loads(line)["messages"]
    assert messages[0] == {"role": "system", "content": "Be brief."}
    assert messages[1]["content"].startswith("What is ")


class ForgetfulAgent(ChatAgent):
    """Leaves its earlier answers out of the conversation, so that history is rewritten."""

    @property
    def chat_completions(self):
        *earlier, last = super().chat_completions
        return [m for m in earlier if m["role"] != "assistant"] + [last]


def test_what_was_sampled_before_history_was_rewritten_is_learned_from_too(tmp_path):
    path = tmp_path / "run"
    AgentTrainer(
        agent_class=ForgetfulAgent,
        config={**SMALL, "num_steps": 2, "rollout": {"max_steps": 3}, "run_dir": str(path)},
        train_dataset=TASKS,
        env_class=ThreeTurnEnv,
    ).train()
    rows = [r for r in read_metrics(path / "metrics.jsonl") if "learner/loss" in r]
    assert rows
    # Each turn is a record of its own here; were earlier ones lost, there would be one at most.
    assert all(1.0 < row["train/turns"] <= 3.0 for row in rows)
    assert all(row["learner/sampler_gap_max"] < 1e-4 for row in rows)


class ThreeTurnEnv(SilentEnv):
    """Asks three times and rewards answers with an even number of characters."""

    def __init__(self):
        self.num_even = self.turn = 0

    def step(self, action):
        self.turn += 1
        self.num_even += len(action) % 2 == 0
        return {"question": "Again?"}, float(len(action) % 2 == 0), self.turn == 3, {}

    @staticmethod
    def from_dict(info):
        return ThreeTurnEnv()


def test_training_works_inside_a_running_event_loop(tmp_path):
    import asyncio

    async def cell():
        return trainer(tmp_path / "run", num_steps=1).train()

    assert asyncio.run(cell())["steps"] == 1


def test_an_engine_that_knows_only_text_is_refused_before_anything_is_loaded(tmp_path):
    for name in ("scripted", "openai"):
        with pytest.raises(ConfigError, match=f"one of transformers, vllm .* got '{name}'"):
            trainer(tmp_path / name, engine={"name": name}).train()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "delay_seconds"),
    [(signal.SIGINT, 0.0), (signal.SIGINT, 0.4), (signal.SIGTERM, 0.2)],
)
def test_an_interrupt_keeps_a_checkpoint_and_leaves_no_process(tmp_path, number, delay_seconds):
    path = tmp_path / "run"
    command = [str(Path(sys.executable).with_name("rllm")), "train", f"run_dir={path}"]
    small = ["num_steps=500", "tasks_per_step=8", "eval.num_tasks=8", "eval.every_steps=500"]
    process = subprocess.Popen(
        [*command, *small], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    metrics = path / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and len(metrics.read_text().splitlines()) > 3):
        assert time.monotonic() < deadline, process.stdout
        time.sleep(0.05)
    time.sleep(delay_seconds)
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert "--resume" in output
    newest, rejected = latest_checkpoint(path / "checkpoints")
    assert newest is not None
    assert rejected == []
    again = subprocess.run(
        [*command, "--resume", f"num_steps={newest.step + 1}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert f"resumed at step {newest.step}" in again.stdout


@pytest.mark.slow
def test_the_default_command_learns_to_call_the_calculator(tmp_path):
    command = [str(Path(sys.executable).with_name("rllm")), "train", f"run_dir={tmp_path / 'run'}"]
    subprocess.run(command, check=True, capture_output=True)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["pass_at_1_after"] - summary["pass_at_1_before"] > 0.4
    assert summary["eval_tasks"] >= 512
