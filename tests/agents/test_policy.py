"""LLMPolicy: one environment, a vector of them, adapters by name, and evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import peft
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from transformers import AutoModelForCausalLM

from rllm_agents import LLMPolicy, UserError, evaluate
from rllm_agents.models import TINY

GREEDY = {"temperature": 0.0}


def drive(policy: LLMPolicy, seed: int) -> tuple[list[str], float]:
    """Play one episode; return the actions and the sum of rewards."""
    env = gymnasium.make("rllm/Calculator-v0")
    observation, _ = env.reset(seed=seed)
    policy.reset()
    actions: list[str] = []
    total, over = 0.0, False
    while not over:
        actions.append(policy.act(observation))
        observation, reward, terminated, truncated, _ = env.step(actions[-1])
        total += float(reward)
        over = terminated or truncated
    return actions, total


@pytest.fixture(scope="module")
def policy() -> Any:
    policy = LLMPolicy("tiny", sampling_params=GREEDY)
    yield policy
    policy.close()


def test_what_the_renderer_is_told_reaches_it() -> None:
    with pytest.raises(UserError, match="template, keep, drop; got 'hard'"):
        LLMPolicy("tiny", renderer_args={"thinking": "hard"})


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two random adapters of the tiny model, written by peft."""
    places = {}
    for seed, name in enumerate(("one", "two")):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(TINY)
        config = peft.LoraConfig(
            r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM"
        )
        wrapped = peft.get_peft_model(model, config)
        with torch.no_grad():
            for parameter_name, parameter in wrapped.named_parameters():
                if "lora_B" in parameter_name:
                    parameter.normal_(0.0, 0.05)
        places[name] = tmp_path_factory.mktemp(name)
        wrapped.save_pretrained(places[name])
    return places


def test_it_plays_whole_episodes_and_the_same_ones_again(policy: LLMPolicy) -> None:
    first = drive(policy, seed=3)
    assert first[0] and all(isinstance(action, str) for action in first[0])
    assert drive(policy, seed=3) == first


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_a_vector_of_environments_is_played_as_each_alone(
    policy: LLMPolicy, mode: AutoresetMode
) -> None:
    alone = [drive(policy, seed)[0] for seed in (3, 4, 5)]
    envs = SyncVectorEnv(
        [lambda: gymnasium.make("rllm/Calculator-v0") for _ in range(3)], autoreset_mode=mode
    )
    observations, _ = envs.reset(seed=[3, 4, 5])
    policy.reset(envs)
    done = [False] * 3
    played: list[list[str]] = [[], [], []]
    first_over = [False] * 3
    for _ in range(8):
        actions = policy.act(observations, done)
        assert isinstance(actions, tuple)
        for slot, action in enumerate(actions):
            if not first_over[slot]:
                played[slot].append(action)
        observations, _, terminated, truncated, _ = envs.step(actions)
        done = [bool(a or b) for a, b in zip(terminated, truncated, strict=True)]
        first_over = [a or b for a, b in zip(first_over, done, strict=True)]
    assert all(first_over)
    assert played == alone


def test_an_ignored_action_costs_no_sampling(policy: LLMPolicy) -> None:
    envs = SyncVectorEnv(
        [lambda: gymnasium.make("rllm/Arithmetic-v0")], autoreset_mode=AutoresetMode.NEXT_STEP
    )
    observations, _ = envs.reset(seed=0)
    policy.reset(envs)
    first = policy.act(observations)
    observations, _, terminated, _, _ = envs.step(first)
    assert policy.act(observations, terminated) == ("",)
    observations, *_ = envs.step(("",))
    assert policy.act(observations)[0] != ""


def test_adapters_are_loaded_listed_and_switched(adapters: dict[str, Path]) -> None:
    with LLMPolicy("tiny", adapter=adapters["one"], sampling_params=GREEDY) as policy:
        assert policy.adapters == (str(adapters["one"]),) == (policy.adapter,)
        policy.load_adapter("two", adapters["two"])
        prompts = [f"What is {i} + 5?" for i in range(6)]

        def answers() -> tuple[str, ...]:
            policy.reset()
            return policy.act(prompts)

        with_one = answers()
        policy.set_adapter("two")
        with_two = answers()
        policy.set_adapter(None)
        bare = answers()
        policy.set_adapter(str(adapters["one"]))
        assert answers() == with_one and policy.adapter == str(adapters["one"])
        assert len({with_one, with_two, bare}) == 3
        with LLMPolicy("tiny", sampling_params=GREEDY) as plain:
            assert plain.act(prompts) == bare
        with pytest.raises(UserError, match=r"no adapter is named 'three'; loaded: .*two"):
            policy.set_adapter("three")
        with pytest.raises(UserError, match="loaded already"):
            policy.load_adapter("two", adapters["two"])


def test_a_merged_adapter_is_the_policy_that_peft_has(adapters: dict[str, Path]) -> None:
    from rllm_agents.rollout_engines.adapters import LoraAdapter

    base = AutoModelForCausalLM.from_pretrained(TINY)
    weights = {n: p.detach().clone() for n, p in base.named_parameters()}
    merged = LoraAdapter.from_path(adapters["one"]).merged(weights)
    expected = peft.PeftModel.from_pretrained(base, adapters["one"]).merge_and_unload()
    expected_weights = dict(expected.named_parameters())
    assert merged
    for name, value in merged.items():
        assert torch.allclose(value, expected_weights[name], atol=1e-6)
        assert not torch.equal(value, weights[name])


def test_evaluation_is_one_call_and_uses_the_adapter(
    policy: LLMPolicy, adapters: dict[str, Path]
) -> None:
    result = evaluate(policy, "rllm/Arithmetic-v0", 20)
    assert result.num_tasks == 20 and result.num_failed == 0
    assert result.pass_at_1 == evaluate(policy, "rllm/Arithmetic-v0", 20).pass_at_1
    texts = [e.steps[0].model_response for e in result.episodes]
    with LLMPolicy("tiny", adapter=adapters["two"], sampling_params=GREEDY) as other:
        changed = evaluate(other, "rllm/Arithmetic-v0", 20)
    assert [e.steps[0].model_response for e in changed.episodes] != texts


def test_seeds_make_sampled_actions_repeatable_and_episodes_differ() -> None:
    with LLMPolicy("tiny", sampling_params={"seed": 1, "max_tokens": 20}) as one:
        first, second = (one.reset() or one.act("What is 1 + 2?") for _ in range(2))
    with LLMPolicy("tiny", sampling_params={"seed": 1, "max_tokens": 20}) as again:
        assert again.act("What is 1 + 2?") == first
    assert first != second


def test_a_conversation_without_room_acts_with_nothing_and_warns() -> None:
    with (
        LLMPolicy("tiny", max_prompt_length=8, sampling_params=GREEDY) as policy,
        pytest.warns(UserWarning, match="no room"),
    ):
        assert policy.act("a question of more than eight tokens, surely") == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "nowhere/at/all"}, "does not exist"),
        ({"adapter": "nowhere"}, "holds no LoRA adapter"),
        ({"engine_name": "vlm"}, "engine_name must be one of"),
        ({"sampling_params": {"temprature": 1.0}}, "did you mean 'temperature'"),
    ],
)
def test_mistakes_are_told(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        LLMPolicy(**arguments)


def test_a_vector_and_its_ends_must_agree(policy: LLMPolicy) -> None:
    policy.reset()
    with pytest.raises(UserError, match="2 observations, but done has 1 entries"):
        policy.act(["a", "b"], [True])
    with pytest.raises(UserError, match="must be a text or a sequence"):
        policy.act(3)
