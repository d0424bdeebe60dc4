"""Advantages and losses of users' own: how they are named, chosen, checked and used."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from learn_fakes import random_sequences, sequence

from rllm_learn import register_advantage, register_loss
from rllm_learn.algorithms import (
    ALGORITHMS,
    GRPO,
    GRPOConfig,
    ReMaxConfig,
    RLOOConfig,
    make_algorithm,
)
from rllm_learn.algorithms import registered as registry
from rllm_learn.algorithms.policy_gradient import PolicyGradient
from rllm_learn.config import TrainerConfig, load_config, to_settings
from rllm_learn.core.batch import Rollout, collate
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import TokenLosses
from rllm_learn.errors import ConfigError
from rllm_learn.rllib import GRPOConfig as RLlibGRPOConfig

MODULE = '''
from rllm_learn import register_advantage, register_loss
from rllm_learn.core.losses import TokenLosses


@register_advantage("signs")
def signs(values, keys):
    """1 for values above the mean of all, -1 for those below."""
    mean = sum(values) / len(values)
    return [(value > mean) - (value < mean) for value in values]


@register_loss("linear")
def linear(logprobs, log_ratio, advantages, mask):
    """The surrogate without clipping: -A times the ratio."""
    return TokenLosses(-advantages * log_ratio.exp())
'''


@pytest.fixture(autouse=True)
def own_names(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each test register what it likes."""
    monkeypatch.setattr(registry, "_ADVANTAGES", {})
    monkeypatch.setattr(registry, "_LOSSES", {})
    yield


@pytest.fixture
def module(tmp_path, monkeypatch, request) -> str:
    """A module of a user's, which registers `signs` and `linear` when it is imported."""
    name = f"own_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return name


def rollouts(*rewards: float) -> list[Rollout]:
    sampled = sequence([1] * 5, sampled=[1, 2, 4]).sampled
    return [Rollout(0, reward, (sampled,)) for reward in rewards]


def test_a_module_is_imported_by_the_setting_and_decides_credit_and_loss(module):
    overrides = [f"algorithm.advantage={module}:signs", f"algorithm.loss={module}:linear"]
    config = to_settings(load_config("grpo_trainer", overrides), TrainerConfig, config_name="x")
    algorithm = make_algorithm(config.algorithm)
    # The mean is 3; GRPO's own would divide by a deviation.
    credit = algorithm.credit(rollouts(8.0, 2.0, 1.0, 1.0), {})
    assert [s.advantages[1] for s in credit.sequences] == [1.0, -1.0, -1.0, -1.0]
    # One sequence of three sampled tokens with advantage 1, twice as likely as when sampled: the
    # loss is -2 each, where GRPO's would be bounded at -1.2.
    batch = collate(credit.sequences[:1], device=torch.device("cpu"))
    logprobs = batch.sampler_logprobs + math.log(2.0)
    loss = algorithm.loss(PolicyOutput(logprobs, torch.zeros_like(logprobs)), batch)
    assert loss.total.item() == pytest.approx(-6.0)
    assert loss.count == 3
    # What actors and other processes get.
    copied = pickle.loads(pickle.dumps(algorithm.loss))
    assert copied(PolicyOutput(logprobs, torch.zeros_like(logprobs)), batch).total == loss.total


def test_what_is_chosen_survives_a_saved_configuration_and_rllib(module):
    names: dict[str, Any] = {"advantage": f"{module}:signs", "loss": f"{module}:linear"}
    mapping = {"algorithm": {"name": "rloo", **names}}
    config = to_settings(mapping, TrainerConfig, config_name="grpo_trainer")
    assert config.algorithm == RLOOConfig(**names)
    rllib = RLlibGRPOConfig().environment("rllm/Calculator-v0").training(**names)
    assert rllib.trainer_config().algorithm == GRPOConfig(**names)


@pytest.mark.parametrize("name", sorted(ALGORITHMS.keys() - {"dpo", "distillation"}))
def test_every_algorithm_with_a_loss_takes_another(name):
    seen = []

    @register_loss("own")
    def own(logprobs, log_ratio, advantages, mask):
        seen.append(mask.sum().item())
        return TokenLosses(0.0 * logprobs)

    settings: dict[str, Any] = {"length_constant": 9} if name == "dr_grpo" else {}
    settings |= {"max_length": 90} if name == "dapo" else {}
    settings |= {"loss": "own"}
    algorithm: Any = make_algorithm(ALGORITHMS[name][0](**settings))
    batch = collate(random_sequences(3), device=torch.device("cpu"))
    logprobs = batch.sampler_logprobs.clone()
    # PPO's adds the critic's, which is not what is asked about.
    policy: Any = partial(PolicyGradient.loss, algorithm) if name == "ppo" else algorithm.loss
    total = policy(PolicyOutput(logprobs, torch.zeros_like(logprobs)), batch).total
    assert (seen, total.item()) == ([batch.action_mask.sum().item()], 0.0)


def test_unknown_names_are_refused_with_those_there_are(module):
    with pytest.raises(ConfigError, match=r"no loss is registered as 'own' \(registered: none\)"):
        GRPOConfig(loss="own")
    register_loss("first")(lambda *tensors: tensors)
    with pytest.raises(ConfigError, match=r"algorithm.loss='own'.*\(registered: first\)"):
        ReMaxConfig(loss="own")
    with pytest.raises(ConfigError, match="module not_there cannot be imported"):
        GRPOConfig(advantage="not_there:signs")
    with pytest.raises(ConfigError, match=r"no advantage is registered as 'linear'.*: signs\)"):
        GRPOConfig(advantage=f"{module}:linear")


def test_a_name_belongs_to_one_function():
    register_advantage("mine")(min)
    register_advantage("mine")(min)  # loaded again
    with pytest.raises(ConfigError, match=r"mine is builtins.min already and cannot be builtins.m"):
        register_advantage("mine")(max)
    with pytest.raises(ConfigError, match="must be an identifier, got 'a:b'"):
        register_loss("a:b")


def test_settings_that_only_the_algorithms_own_read_are_refused():
    register_loss("own")(lambda *tensors: tensors)
    register_advantage("own")(lambda values, keys: values)
    with pytest.raises(ConfigError, match=r"clip_high=0\.4 does nothing with algorithm\.loss=own"):
        GRPOConfig(loss="own", clip_high=0.4)
    with pytest.raises(ConfigError, match=r"divide_by_std=False does nothing with algorithm\.adv"):
        GRPOConfig(advantage="own", divide_by_std=False)


@pytest.mark.parametrize("answer", [[1.0], [1.0, 0.0, math.nan, 0.0]])
def test_an_estimator_that_answers_wrongly_is_named(answer):
    register_advantage("own")(lambda values, keys: answer)
    with pytest.raises(ConfigError, match="advantage=own must return one finite number a value"):
        GRPO(GRPOConfig(advantage="own")).credit(rollouts(1.0, 0.0, 0.0, 0.0), {})


@pytest.mark.parametrize(
    ("answer", "words"),
    [(torch.zeros(()), "got Tensor"), (TokenLosses(torch.zeros(1)), r"got values of \(1,\)")],
)
def test_a_loss_that_answers_wrongly_is_named(answer, words):
    register_loss("own")(lambda *tensors: answer)
    batch = collate(random_sequences(2), device=torch.device("cpu"))
    output = PolicyOutput(batch.sampler_logprobs, torch.zeros_like(batch.sampler_logprobs))
    with pytest.raises(ConfigError, match=f"loss=own must return TokenLosses.*{words}"):
        GRPO(GRPOConfig(loss="own")).loss(output, batch)
