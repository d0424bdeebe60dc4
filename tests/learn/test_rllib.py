"""Training over RLlib: exact, durable, and going on when something is lost. On real Ray."""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
from learn_fakes import plain_update, random_sequences, sequences_of_prompts, tiny_policy
from ppo_fakes import Plain, plain_ppo, ppo_rule, random_rollouts, update_of
from ray.rllib.algorithms.algorithm import Algorithm

from rllm_agents import ChatAgent
from rllm_envs import GymEnv
from rllm_learn import AgentTrainer
from rllm_learn.algorithms import GRPO as GRPORule
from rllm_learn.algorithms import GRPOConfig as GRPOSettings
from rllm_learn.core.learner import UpdateRule
from rllm_learn.core.learner_set import LearnerPlan
from rllm_learn.core.model import PolicySpec, load_policy
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.errors import ConfigError
from rllm_learn.rllib import GRPOConfig, LearnersLost, LLMLearnerGroup
from rllm_learn.tracking import read_metrics

LOSS = GRPORule(GRPOSettings()).loss


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def small(num_learners: int = 0, num_env_runners: int = 0, num_engines: int = 0) -> GRPOConfig:
    return (
        GRPOConfig()
        .environment("rllm/Calculator-v0")
        .model("tiny")
        .lora(rank=8)
        .env_runners(num_env_runners=num_env_runners)
        .engine(num_engines=num_engines)
        .learners(num_learners=num_learners)
        .training(lr=3e-3, tasks_per_step=8, group_size=4)
        .evaluation(evaluation_duration=16)
    )


def reward(result: dict[str, Any]) -> float:
    return result["env_runners"]["episode_return_mean"]


def episodes_kept(run: Path) -> list[tuple[Any, ...]]:
    """Step, reward, ids and advantages of the training episodes that a run kept."""
    found = []
    for line in (run / "episodes" / "train.jsonl").read_text().splitlines():
        episode = json.loads(line)
        (tokens,) = episode["token_records"]
        credit = tokens.get("advantages")
        found.append((episode["step"], episode["reward"], tokens["token_ids"], credit))
    return found


def learner_group(
    spec: PolicySpec,
    rule: UpdateRule,
    num_learners: int,
    teacher: PolicySpec | None = None,
    sharding: str = "replicate",
) -> LLMLearnerGroup:
    config = SimpleNamespace(
        num_learners=num_learners,
        init_timeout_s=120.0,
        collective_timeout_s=60.0,
        hang_timeout_s=60.0,
        snapshot_every_updates=1,
        sharding=sharding,
    )
    options = [{"num_cpus": 0.5}] * num_learners
    return LLMLearnerGroup(
        config=config,
        spec=spec,
        rule=rule,
        exports_adapter=False,
        keeps_reference=True,
        plan=LearnerPlan(teacher=teacher),
        torch_threads=1,
        actor_options=options,
    )


@pytest.mark.parametrize(
    ("num_learners", "sharding"),
    [(0, "replicate"), (1, "replicate"), (2, "replicate"), (2, "fsdp")],
)
def test_an_update_equals_a_plain_loop_whatever_the_number_of_learners(
    cluster: None, tmp_path: Path, num_learners: int, sharding: str
) -> None:
    tiny_policy().double().save_pretrained(tmp_path)
    tiny_policy(5).double().save_pretrained(tmp_path / "teacher")
    spec = PolicySpec(path=tmp_path, lora_rank=0, dtype="float64")
    teacher = PolicySpec(path=tmp_path / "teacher", lora_rank=0, dtype="float64")
    rule = UpdateRule(learning_rate=LearningRate(1e-2), max_grad_norm=0.7, micro_tokens=40)
    sequences = sequences_of_prompts([(6, [2, 9, 4]), (5, [7, 1])])  # an odd number
    plain = load_policy(spec)
    before = {name: p.detach().clone() for name, p in plain.named_parameters()}
    plain_update(plain, sequences, rule)
    group = learner_group(spec, rule, num_learners, teacher, sharding)
    try:
        group.update(sequences, LOSS)
        kinds = {"policy", "reference", "teacher"}
        scores = group.score([item.sampled for item in sequences], kinds)
        states = group.foreach_learner(lambda learner: learner.state_dict()["parameters"])
        exported = group.export_weights()
        group.save_policy(tmp_path / "written")
    finally:
        group.shutdown()
    assert len(states) == max(num_learners, 1)
    if sharding == "fsdp":
        states = states[:1]  # the others helped to gather it
    written = dict(load_policy(replace(spec, path=tmp_path / "written")).named_parameters())
    assert all(torch.equal(written[name], states[0][name]) for name in written)
    for item, score in zip(sequences, scores, strict=True):
        for model, found in (
            (plain, score.policy),
            (load_policy(spec), score.reference),
            (load_policy(teacher), score.teacher),
        ):
            ids = torch.tensor([item.sampled.token_ids])
            rows = model(input_ids=ids).logits[0].log_softmax(-1)
            mask = torch.tensor(item.sampled.action_mask[1:])
            expected = (rows[:-1].gather(-1, ids[0, 1:, None])[:, 0] * mask).tolist()
            assert found is not None and list(found[1:]) == pytest.approx(expected, abs=1e-5)
    for name, parameter in plain.named_parameters():
        change = parameter.detach() - before[name]
        for state in states:
            assert (state[name] - before[name] - change).norm() < 1e-6 * change.norm()
        assert torch.equal(exported[name], states[0][name])


@pytest.mark.parametrize("num_learners", [0, 1, 2])
def test_an_update_of_ppo_equals_a_plain_loop_whatever_the_number_of_learners(
    cluster: None, tmp_path: Path, num_learners: int
) -> None:
    tiny_policy().double().save_pretrained(tmp_path)
    spec = PolicySpec(path=tmp_path, lora_rank=0, dtype="float64")
    rule = ppo_rule(shares_trunk=False)
    start = Plain.of(load_policy(spec), shares_trunk=False).head.state_dict()
    plain = plain_ppo(load_policy(spec), random_rollouts(), rule, per_turn=False)
    group = learner_group(spec, rule, num_learners)
    try:
        # A closure travels by value: the learners' processes do not know this folder's modules.
        group.foreach_learner(lambda learner: learner.critic.head.load_state_dict(start))
        figures = update_of(group, random_rollouts())
        states = group.foreach_learner(lambda learner: learner.state_dict())
    finally:
        group.shutdown()
    assert len(states) == max(num_learners, 1)
    assert figures["value_clip_fraction"] > 0.05
    before = dict(load_policy(spec).named_parameters())
    for state in states:
        for name, parameter in plain.policy.named_parameters():
            change = parameter.detach() - before[name].detach()
            error = state["parameters"][name] - parameter.detach()
            assert error.norm() < 1e-3 * change.norm()
        head = state["critic"]["parameters"]["head.weight"]
        assert torch.allclose(head, plain.head.weight, rtol=0, atol=1e-6)


def test_resources_that_are_not_there_are_named_instead_of_waited_for(cluster: None) -> None:
    config = (
        small(num_learners=4).learners(num_cpus_per_learner=1).fault_tolerance(init_timeout_s=3.0)
    )
    started = time.monotonic()
    with pytest.raises(ConfigError, match=r"[1-4] learners.*need 4 CPU.*cluster has 2 CPU"):
        config.build_algo()
    assert time.monotonic() - started < 60


def test_the_loop_is_that_of_the_trainer_and_goes_on_from_a_checkpoint(
    cluster: None, tmp_path: Path
) -> None:
    algo = small().reporting(run_dir=tmp_path / "rllib").build_algo()
    first = [algo.train() for _ in range(2)]
    path = algo.save_to_path(str(tmp_path / "checkpoint"))
    judged = algo.evaluate()["env_runners"]
    third = algo.train()
    algo.stop()

    AgentTrainer(
        agent_class=ChatAgent,
        env_class=GymEnv,
        config={
            "num_steps": 3,
            "tasks_per_step": 8,
            "algorithm": {"group_size": 4},
            "learner": {"learning_rate": 3e-3},
            "eval": {"num_tasks": 16},
            "run_dir": str(tmp_path / "run"),
        },
    ).train()
    rows = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if "train/reward" in r]
    results = [*first, third]
    assert [reward(r) for r in results] == [row["train/reward"] for row in rows]
    for result, row in zip(results, rows, strict=True):
        figures = result["learners"]["default_policy"]
        assert figures["loss"] == pytest.approx(row["learner/loss"], rel=1e-6)
    assert episodes_kept(tmp_path / "rllib") == episodes_kept(tmp_path / "run")
    assert len(episodes_kept(tmp_path / "rllib")) == 3 * 8

    again = Algorithm.from_checkpoint(path)
    assert again.iteration == 2
    assert again.evaluate()["env_runners"] == judged
    assert reward(again.train()) == reward(third)
    policy = again.save_policy(tmp_path / "policy")
    again.stop()
    written = read_metrics(tmp_path / "rllib" / "metrics.jsonl")
    # The evaluation after two steps and the third step were done again, and stand there once.
    assert [row["step"] for row in written if "train/reward" in row] == [1, 2, 3]
    pass_rates = [row["eval/pass_at_1"] for row in written if "eval/pass_at_1" in row]
    assert pass_rates == [judged["pass_at_1"]] * 2
    summary = json.loads((tmp_path / "rllib" / "summary.json").read_text())
    assert (summary["steps"], summary["pass_at_1_after"]) == (3, judged["pass_at_1"])
    config = json.loads((policy / "adapter_config.json").read_text())
    assert config["r"] == 8 and (policy / "tokenizer.json").exists()


def test_options_that_do_not_exist_for_language_agents_say_what_to_use(cluster: None) -> None:
    algo = small().build_algo()
    with pytest.raises(NotImplementedError, match="save_policy"):
        algo.get_module()
    algo.stop()


@pytest.mark.slow
def test_lost_runners_engines_and_learners_cost_nothing_but_time(
    cluster: None, caplog: pytest.LogCaptureFixture
) -> None:
    undisturbed = small().build_algo()
    expected = [reward(undisturbed.train()) for _ in range(5)]
    undisturbed.stop()

    caplog.set_level(logging.WARNING, logger="rllm_learn")
    algo = small(num_learners=2, num_env_runners=2, num_engines=1).build_algo()
    got = [reward(algo.train())]

    runners = list(algo.env_runner_group._worker_manager.actors().values())
    killer = threading.Timer(0.15, lambda: ray.kill(runners[0], no_restart=False))
    killer.start()  # while it samples
    got.append(reward(algo.train()))
    killer.join()

    pool = algo._parts._pool
    (process,) = pool.process_ids()
    killer = threading.Timer(0.15, lambda: os.kill(process, signal.SIGKILL))
    killer.start()
    got.append(reward(algo.train()))
    killer.join()
    assert pool.process_ids() != [process]

    ray.kill(algo.learner_group._workers[1])
    lost = algo.train()
    assert algo.learner_group.num_restarts == 1 and lost["num_learner_restarts"] == 1
    got += [reward(algo.train()) for _ in range(2)]
    algo.stop()
    # Requests carry their seeds and learners their last state: every reward is what it would be.
    assert got == expected
    messages = "\n".join(record.getMessage() for record in caplog.records)
    assert "env runner 1 was lost; its 16 episodes are played again" in messages
    assert "a learner was lost" in messages and "state after update 3" in messages


@pytest.mark.slow
def test_processes_that_hang_are_found_within_a_bound_and_cost_nothing_but_time(
    cluster: None, caplog: pytest.LogCaptureFixture
) -> None:
    undisturbed = small().build_algo()
    expected = [reward(undisturbed.train()) for _ in range(4)]
    undisturbed.stop()

    caplog.set_level(logging.WARNING)
    config = small(num_learners=2, num_env_runners=2, num_engines=1)
    algo = config.fault_tolerance(hang_timeout_s=5.0).build_algo()
    got = [reward(algo.train())]
    (runner, *_) = algo.env_runner_group.foreach_env_runner(
        lambda _: os.getpid(), local_env_runner=False
    )
    (engine,) = algo._parts._pool.process_ids()
    for process in (runner, engine):
        os.kill(process, signal.SIGSTOP)
        got.append(reward(algo.train()))
    learner = algo.learner_group.foreach_learner(lambda _: os.getpid())[1]
    os.kill(learner, signal.SIGSTOP)
    lost = algo.train()
    assert algo.learner_group.num_restarts == 1 and lost["num_learner_restarts"] == 1
    got.append(reward(algo.train()))
    algo.stop()
    assert got == expected
    messages = "\n".join(record.getMessage() for record in caplog.records)
    assert "LLMEnvRunner" in messages and "LearnerActor" in messages
    assert messages.count("hangs: no sign of life for 5 s; it is ended") == 2
    assert "rollout engine 0 hangs: no answer to a ping" in messages


@pytest.mark.slow
def test_an_update_is_made_once_also_when_its_learner_is_lost_before_it_is_published(
    cluster: None, tmp_path: Path
) -> None:
    tiny_policy().double().save_pretrained(tmp_path)
    spec = PolicySpec(path=tmp_path, lora_rank=0, dtype="float64")
    rule = UpdateRule(learning_rate=LearningRate(1e-2), micro_tokens=40)
    batches = [random_sequences(5, seed=seed) for seed in range(2)]
    plain, expected = learner_group(spec, rule, 0), []
    for batch in batches:
        plain.update(batch, LOSS)
        expected.append({name: t.clone() for name, t in plain.export_weights().items()})

    def is_after(updates: int, weights: Mapping[str, torch.Tensor]) -> bool:
        reference = expected[updates - 1]
        return all((weights[name] - t).abs().max() < 1e-9 for name, t in reference.items())

    group = learner_group(spec, rule, 1)
    try:
        group.update(batches[0], LOSS)
        ray.kill(group._workers[0])
        # A step that failed here would be played again, from the state after this update.
        assert is_after(1, group.export_weights())
        with pytest.raises(LearnersLost):
            group.update(batches[1], LOSS)
        assert is_after(1, group.export_weights())
        group.update(batches[1], LOSS)
        assert is_after(2, group.export_weights()) and is_after(2, group.export_weights())
        assert not is_after(1, expected[1])
    finally:
        group.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2), (2, 0)])
def test_what_some_learners_saved_others_go_on_with(
    cluster: None, tmp_path: Path, before: int, after: int
) -> None:
    tiny_policy().double().save_pretrained(tmp_path)
    spec = PolicySpec(path=tmp_path, lora_rank=0, dtype="float64")
    rule = UpdateRule(learning_rate=LearningRate(1e-2, warmup_updates=4), micro_tokens=40)
    batches = [random_sequences(5, seed=seed) for seed in range(3)]
    plain = learner_group(spec, rule, 0)
    for batch in batches:
        plain.update(batch, LOSS)
    expected = plain.state_dict()

    first = learner_group(spec, rule, before)
    try:
        first.update(batches[0], LOSS)
        first.save_to_path(tmp_path / "saved")
    finally:
        first.shutdown()
    second = learner_group(spec, rule, after)
    try:
        second.restore_from_path(tmp_path / "saved")
        for batch in batches[1:]:
            second.update(batch, LOSS)
        found = second.foreach_learner(lambda learner: learner.state_dict())
    finally:
        second.shutdown()
    start = dict(load_policy(spec).named_parameters())
    for state in found:
        assert state["num_updates"] == expected["num_updates"] == 3
        for name, parameter in expected["parameters"].items():
            change = (parameter - start[name].detach()).norm()
            assert (state["parameters"][name] - parameter).norm() < 1e-6 * change


@pytest.mark.slow
def test_tune_searches_over_learning_rates(cluster: None, tmp_path: Path) -> None:
    from ray import tune

    config = small().training(lr=tune.grid_search([1e-4, 3e-3]))
    results = tune.Tuner(
        config.algo_class,
        param_space=config,
        run_config=tune.RunConfig(
            stop={"training_iteration": 2}, storage_path=str(tmp_path), verbose=0
        ),
    ).fit()
    assert len(results) == 2 and not results.errors
    assert sorted(result.config["lr"] for result in results) == [1e-4, 3e-3]
    assert all(result.metrics["training_iteration"] == 2 for result in results)
