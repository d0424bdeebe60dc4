"""What learners do in tests, the same alone and as ranks that split weights, and processes for it.

Each case takes ranks, or None to learn alone, and returns tensors and figures to compare.
"""

from __future__ import annotations

import copy
import multiprocessing as python_multiprocessing
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import peft
import torch
import torch.multiprocessing as multiprocessing
from learn_fakes import random_sequences, sequences_of_prompts, tiny_policy
from ppo_fakes import learner_of, ppo_rule, random_rollouts, update_of
from torch import nn
from transformers import AutoModelForCausalLM, Gemma2Config, Gemma2ForCausalLM

from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.learner_set import LearnerPlan, LearnerSet
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.core.parallel import ProcessGroupRanks, Ranks

RULE = UpdateRule(learning_rate=LearningRate(1e-2), max_grad_norm=0.7, micro_tokens=40)
LOSS = GRPO(GRPOConfig()).loss


def lora(policy: nn.Module) -> nn.Module:
    """Adapters of rank 4, drawn from seed 0."""
    torch.manual_seed(0)
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    return peft.get_peft_model(policy, config)  # pyright: ignore[reportArgumentType]


def outcome(learner: Learner, metrics: dict[str, float]) -> dict[str, Any]:
    """State, exported weights and figures."""
    state = learner.state_dict()
    return {"state": state, "exported": learner.export_weights(), "metrics": metrics}


def updated(
    ranks: Ranks | None,
    *,
    wrap: Any = None,
    count: int = 5,
    adapter: bool = False,
    prompts: Any = None,
    **rule: Any,
) -> dict:
    """One update, in double precision; of sequences of some prompts, or of `count` others."""
    policy = tiny_policy().double()
    learner = Learner(
        wrap(policy) if wrap else policy,
        replace(RULE, **rule),
        exports_adapter=adapter,
        ranks=ranks,
    )
    sequences = sequences_of_prompts(prompts) if prompts else random_sequences(count)
    return outcome(learner, learner.update(sequences, LOSS).metrics)


def in_bfloat16(ranks: Ranks | None, *, wrap: Any = None) -> dict:
    """Two updates of a policy that computes in bfloat16, too small for it."""
    policy = tiny_policy().to(torch.bfloat16)
    rule = replace(RULE, learning_rate=LearningRate(1e-5))
    learner = Learner(wrap(policy) if wrap else policy, rule, ranks=ranks)
    learner.update(random_sequences(5), LOSS)
    return outcome(learner, learner.update(random_sequences(5), LOSS).metrics)


def checkpointed(ranks: Ranks | None) -> dict:
    """Two updates with activations that are computed again."""
    policy: Any = lora(tiny_policy().double())
    policy.gradient_checkpointing_enable({"use_reentrant": False})
    policy.enable_input_require_grads()
    learner = Learner(policy.train(), RULE, ranks=ranks)
    learner.update(random_sequences(5), LOSS)
    return outcome(learner, learner.update(random_sequences(5), LOSS).metrics)


def scored_first(ranks: Ranks | None) -> dict:
    """Scores of the model as loaded, asked for before and after an update, one sequence a rank."""
    learner = Learner(lora(tiny_policy().double()), RULE, keeps_reference=True, ranks=ranks)
    sequences = random_sequences(3)
    sampled = [item.sampled for item in sequences]
    own = sampled if ranks is None else sampled[:1] * (1 - ranks.rank)
    before = learner.score(own, {"reference", "policy"})
    metrics = learner.update(sequences, LOSS).metrics
    after = learner.score(own, {"reference", "policy"})
    scores = [(s.policy, s.reference) for s in before + after]
    return {**outcome(learner, metrics), "scores": scores}


def with_critic(ranks: Ranks | None, *, shares_trunk: bool, wrap: Any = None) -> dict:
    """PPO: scores with values of a critic, epochs of minibatches."""
    policy = tiny_policy().double()
    rule = ppo_rule(shares_trunk=shares_trunk)
    if ranks is None:
        learner = learner_of(wrap(policy) if wrap else policy, rule)
    else:
        # The head of a split critic is given its values as a whole state.
        start = learner_of(wrap(tiny_policy().double()) if wrap else tiny_policy().double(), rule)
        learner = Learner(wrap(policy) if wrap else policy, rule, keeps_reference=True, ranks=ranks)
        learner.load_state_dict(start.state_dict())
    return outcome(learner, update_of(learner, random_rollouts()))


def of_two_policies(ranks: Ranks | None) -> dict:
    """Scores of a set of policies, where a rank has sequences of one policy alone."""
    learners = {
        name: Learner(tiny_policy(seed).double(), RULE, ranks=ranks)
        for seed, name in enumerate(("red", "blue"))
    }
    both = LearnerSet(learners, LearnerPlan(names=("red", "blue")))
    sequences = [
        replace(item, sampled=replace(item.sampled, adapter="blue" if i % 2 else "red"))
        for i, item in enumerate(random_sequences(4))
    ]
    sampled = [item.sampled for item in sequences]
    own = sampled if ranks is None else sampled[ranks.rank :: 2]
    scores = [s.policy for s in both.score(own, {"policy"})]
    metrics = both.update(sequences, LOSS).metrics
    return {"exported": both.export_weights(), "metrics": metrics, "scores": scores}


def resumed(ranks: Ranks | None, *, state: dict | None = None, wrap: Any = None) -> dict:
    """An update, here or as a state of others says, and another one after it."""
    # A state holds what is trained: without adapters that is all of it, whatever was there before.
    policy = tiny_policy(seed=9 if state and wrap is None else 0).double()
    learner = Learner(wrap(policy) if wrap else policy, RULE, ranks=ranks)
    if state is None:
        learner.update(random_sequences(5), LOSS)
        state = copy.deepcopy(learner.state_dict())  # not what the next update moves
    else:
        learner.load_state_dict(state)
    metrics = learner.update(random_sequences(5, seed=1), LOSS).metrics
    return {**outcome(learner, metrics), "before": state}


def saved(ranks: Ranks | None, *, place: Path, wrap: Any = None) -> dict:
    """A policy that was written after an update."""
    policy = tiny_policy().to(torch.bfloat16)
    learner = Learner(wrap(policy) if wrap else policy, RULE, ranks=ranks)
    learner.update(random_sequences(5), LOSS)
    target = place / ("split" if ranks else "whole")
    learner.save_policy(target)
    return {"exported": learner.export_weights()}


def unusual(ranks: Ranks | None) -> dict:
    """A model whose attention cannot be packed, which is found out while its weights are split."""
    torch.manual_seed(0)
    config = Gemma2Config(
        vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, head_dim=8, sliding_window=5,
        final_logit_softcapping=3.0, attn_logit_softcapping=2.0,
    )  # fmt: skip
    config._attn_implementation = "sdpa"
    learner = Learner(Gemma2ForCausalLM(config).eval(), RULE, ranks=ranks)
    return outcome(learner, learner.update(random_sequences(5), LOSS).metrics)


CASES: dict[str, Callable[..., dict]] = {
    "full": updated,
    "lora": partial(updated, wrap=lora),
    "fewer sequences than ranks": partial(updated, count=1),
    "many small micro-batches": partial(updated, wrap=lora, count=9, micro_tokens=1),
    "equal prompts": partial(updated, wrap=lora, prompts=[(6, [2, 9, 4, 5]), (5, [7, 1])]),
    "bfloat16": in_bfloat16,
    "bfloat16 lora": partial(in_bfloat16, wrap=lora),
    "adapters published": partial(updated, wrap=lora, adapter=True),
    "checkpointed": checkpointed,
    "scored first": scored_first,
    "critic on the trunk": partial(with_critic, shares_trunk=True),
    "critic apart": partial(with_critic, shares_trunk=False),
    "critic apart, lora": partial(with_critic, shares_trunk=False, wrap=lora),
    "two policies": of_two_policies,
    "resumed": resumed,
    "resumed lora": partial(resumed, wrap=lora),
    "unusual": unusual,
}


def run_in_group(size: int, cases: dict[str, Callable[..., dict]]) -> dict[str, list[dict]]:
    """Run cases on ranks that split weights; return of each case what the ranks returned."""
    # The server imports what is slow to import once for all ranks.
    slow = ["rllm_learn.core.learner_set", "transformers.models.qwen3.modeling_qwen3"]
    python_multiprocessing.get_context("forkserver").set_forkserver_preload(slow)
    with tempfile.TemporaryDirectory() as place:
        multiprocessing.start_processes(
            _on_rank, args=(size, place, cases), nprocs=size, start_method="forkserver"
        )
        return {
            name: [torch.load(f"{place}/{name}-{rank}.pt") for rank in range(size)]
            for name in cases
        }


def _on_rank(rank: int, size: int, place: str, cases: dict[str, Callable[..., dict]]) -> None:
    torch.set_num_threads(1)
    ranks = ProcessGroupRanks(
        rank=rank,
        size=size,
        address=f"file://{place}/rendezvous",
        device=torch.device("cpu"),
        timeout_seconds=300,
        sharding="fsdp",
    )
    for name, case in cases.items():
        torch.save(case(ranks), f"{place}/{name}-{rank}.pt")
    ranks.close()


def load_saved(place: Path, base: nn.Module | None) -> dict[str, torch.Tensor]:
    """Return the weights of a written policy."""
    if base is None:
        return dict(AutoModelForCausalLM.from_pretrained(place).named_parameters())
    return dict(peft.PeftModel.from_pretrained(base, place).named_parameters())


def flat(names: Iterable[str], tensors: dict[str, torch.Tensor]) -> torch.Tensor:
    """All of some tensors in one."""
    return torch.cat([tensors[name].detach().double().reshape(-1) for name in names])
