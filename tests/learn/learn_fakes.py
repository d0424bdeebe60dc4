"""Small stand-ins for tests of rllm_learn."""

from __future__ import annotations

from itertools import zip_longest
from types import SimpleNamespace

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, Qwen3Config, Qwen3ForCausalLM

from rllm_learn.core.batch import SampledSequence, TokenSequence
from rllm_learn.core.learner import UpdateRule
from rllm_learn.core.model import trainable_parameters

PROMPTS = [(6, [1, 20, 3]), (9, [4, 2, 7, 30]), (5, [8])]
"""Lengths of prompts and of what follows them, for `sequences_of_prompts`; some follow with less
than their prompt."""


def tiny_policy(seed: int = 0, *, tied: bool = True) -> Qwen3ForCausalLM:
    """A two-layer Qwen3 with random weights and 32 ids."""
    config = Qwen3Config(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=64,
        tie_word_embeddings=tied,
        initializer_range=0.2,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Qwen3ForCausalLM(config).eval()


def double_policy(seed: int = 0) -> GPT2LMHeadModel:
    """A two-layer GPT-2 with random weights and 32 ids, in double precision, its norms too."""
    config = GPT2Config(vocab_size=32, n_embd=16, n_layer=2, n_head=2, n_positions=64)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return GPT2LMHeadModel(config).double().eval()


class UnigramPolicy(nn.Module):
    """Predicts the same distribution everywhere: its gradients can be worked out by hand."""

    def __init__(self, logits: list[float]):
        super().__init__()
        self.logits = nn.Parameter(torch.tensor(logits))

    def forward(self, input_ids: torch.Tensor, use_cache: bool = False) -> SimpleNamespace:
        return SimpleNamespace(logits=self.logits.expand(*input_ids.shape, -1))


def sequence(
    token_ids: list[int],
    *,
    sampled: list[int],
    logprobs: float | list[float] = -1.0,
    advantage: float = 1.0,
) -> TokenSequence:
    """A sequence whose positions `sampled` were sampled, all with one advantage."""
    values = [logprobs] * len(sampled) if isinstance(logprobs, float) else logprobs
    by_position = dict(zip(sampled, values, strict=True))
    record = SampledSequence(
        token_ids=tuple(token_ids),
        action_mask=tuple(i in by_position for i in range(len(token_ids))),
        logprobs=tuple(by_position.get(i, 0.0) for i in range(len(token_ids))),
    )
    return TokenSequence(record, advantages=(advantage,) * len(token_ids))


def random_sequences(count: int, *, seed: int = 0, vocabulary: int = 32) -> list[TokenSequence]:
    """Sequences of 4 to 20 ids, half of the positions sampled, random advantages.

    No two of up to `vocabulary` begin with the same id, so none have equal prompts.
    """
    draw = torch.Generator().manual_seed(seed)

    def integers(low: int, high: int, n: int) -> list[int]:
        return torch.randint(low, high, (n,), generator=draw).tolist()

    result = []
    for index in range(count):
        length = integers(4, 21, 1)[0]
        sampled = sorted({1 + i % (length - 1) for i in integers(0, 100, length // 2)})
        values = (-torch.rand(len(sampled), generator=draw) * 4).tolist()
        advantage = float(torch.randn(1, generator=draw))
        result.append(
            sequence(
                [index % vocabulary, *integers(0, vocabulary, length)[1:]],
                sampled=sampled,
                logprobs=values,
                advantage=advantage,
            )
        )
    return result


def sequences_of_prompts(
    lengths: list[tuple[int, list[int]]], *, vocabulary: int = 32
) -> list[TokenSequence]:
    """For each prompt length, sequences of that prompt that sample so many ids each.

    In turns of prompts, so that those of one prompt stand apart; random advantages.
    """
    draw = torch.Generator().manual_seed(0)

    def integers(count: int) -> list[int]:
        return torch.randint(0, vocabulary, (count,), generator=draw).tolist()

    lots = []
    for prompt_length, completions in lengths:
        prompt, lot = integers(prompt_length), []
        for length in completions:
            lot.append(
                sequence(
                    [*prompt, *integers(length)],
                    sampled=list(range(prompt_length, prompt_length + length)),
                    logprobs=(-torch.rand(length, generator=draw) * 4).tolist(),
                    advantage=float(torch.randn(1, generator=draw)),
                )
            )
        lots.append(lot)
    return [s for turn in zip_longest(*lots) for s in turn if s is not None]


def summed_gradients(policy: nn.Module) -> dict[str, torch.Tensor]:
    """A mapping that holds, after an update, the gradients of the policy as they were added up."""
    found: dict[str, torch.Tensor] = {}
    for name, parameter in trainable_parameters(policy).items():

        def keep(p: torch.Tensor, name: str = name) -> None:
            assert p.grad is not None
            found[name] = p.grad.clone()

        parameter.register_post_accumulate_grad_hook(keep)
    return found


def plain_update(policy: torch.nn.Module, sequences: list[TokenSequence], rule: UpdateRule) -> None:
    """The same update as a loop over sequences and positions, with nothing of the learner's."""
    optimizer = torch.optim.AdamW(
        trainable_parameters(policy).values(),
        lr=rule.learning_rate.peak,
        betas=rule.betas,
        weight_decay=rule.weight_decay,
    )
    optimizer.zero_grad()
    terms = []
    for item in sequences:
        logits = policy(input_ids=torch.tensor([item.sampled.token_ids])).logits[0]
        for t, is_sampled in enumerate(item.sampled.action_mask):
            if is_sampled:
                predicted = torch.log_softmax(logits[t - 1], dim=-1)
                ratio = (predicted[item.sampled.token_ids[t]] - item.sampled.logprobs[t]).exp()
                advantage = item.advantages[t]
                terms.append(-torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage))
    torch.stack(terms).mean().backward()
    torch.nn.utils.clip_grad_norm_(policy.parameters(), rule.max_grad_norm)
    optimizer.step()
