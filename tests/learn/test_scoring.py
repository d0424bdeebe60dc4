"""Packed, chunked scores against one forward pass of the plain model for each sequence."""

from __future__ import annotations

import copy

import peft
import pytest
import torch
import transformers
from learn_fakes import PROMPTS, random_sequences, sequences_of_prompts, tiny_policy
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rllm_learn.core.batch import by_prompt, collate
from rllm_learn.core.critic import Critic
from rllm_learn.core.scoring import Scorer

SMALL = {
    "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "max_position_embeddings": 256, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
FAMILIES = {
    "qwen3": (transformers.Qwen3Config, {}),
    "llama": (transformers.LlamaConfig, {}),
    "mistral, window 5": (transformers.MistralConfig, {"sliding_window": 5}),
    "gemma3, window 5": (transformers.Gemma3TextConfig, {"sliding_window": 5}),
    "gemma2, capped": (
        transformers.Gemma2Config,
        {"sliding_window": 5, "final_logit_softcapping": 3.0, "attn_logit_softcapping": 2.0},
    ),
    "granite, scaled": (transformers.GraniteConfig, {"logits_scaling": 4.0}),
    "gpt2": (
        transformers.GPT2Config,
        {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256},
    ),
    "mamba": (transformers.MambaConfig, {"state_size": 8}),
}
PACKED = {"qwen3", "llama", "mistral, window 5", "gemma3, window 5", "granite, scaled", "gpt2"}
SPLIT = {"qwen3", "llama", "mistral, window 5", "gemma3, window 5", "gpt2", "mamba"}


def make(family: str) -> torch.nn.Module:
    torch.manual_seed(0)
    kind, extra = FAMILIES[family]
    config = kind(**SMALL, **extra)
    config._attn_implementation = "sdpa" if family in PACKED else "eager"
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    if family != "mamba":  # whose scan is in float32
        model = model.double()
    # The usual small first weights make everything look alike.
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter) * 0.1)
    return model


def plain_logprobs(model: torch.nn.Module, sequences, temperature: float = 1.0):
    """Each sequence alone, whole logits, log-softmax."""
    rows = []
    for item in sequences:
        ids = torch.tensor([item.sampled.token_ids])
        logits = model(input_ids=ids).logits[0] / temperature
        logprobs = logits.log_softmax(-1)
        for position, sampled in enumerate(item.sampled.action_mask):
            if sampled:
                rows.append(logprobs[position - 1, ids[0, position]])
    return torch.stack(rows)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("max_logits", [2**26, 300], ids=["whole", "chunks"])
def test_scores_are_those_of_each_sequence_alone(family, max_logits):
    model = make(family)
    sequences = random_sequences(7, vocabulary=97)
    expected = plain_logprobs(copy.deepcopy(model), sequences, temperature=0.7)
    scorer = Scorer(model, temperature=0.7, max_logits=max_logits)
    batch = collate(sequences)
    scores = scorer(batch)
    # Attention of "eager" takes its softmax in float32.
    tolerance = 1e-9 if family in PACKED else 1e-4
    assert torch.allclose(scores.logprobs[batch.action_mask], expected, rtol=0, atol=tolerance)
    assert not scores.logprobs[~batch.action_mask].any()
    assert (scorer.packs, scorer.splits_head) == (family in PACKED, family in SPLIT)


@pytest.mark.parametrize("wrapped", [False, True], ids=["full", "lora"])
def test_gradients_are_those_of_each_sequence_alone(wrapped):
    policy = make("qwen3")
    if wrapped:
        policy = lora_of(policy)
    reference = copy.deepcopy(policy)
    sequences = random_sequences(6, vocabulary=97)
    scorer = Scorer(policy, max_logits=200)
    assert scorer.packs and scorer.splits_head
    scorer(collate(sequences)).logprobs.square().sum().backward()
    plain_logprobs(reference, sequences).square().sum().backward()
    check_gradients(policy, reference, 1e-9)


@pytest.mark.parametrize("family", sorted(PACKED))
def test_scores_of_equal_prompts_computed_once_are_those_of_each_sequence_alone(family):
    model = make(family)
    sequences = by_prompts(PROMPTS)
    expected = plain_logprobs(copy.deepcopy(model), sequences)
    batch = collate(sequences)
    positions = []
    model.get_decoder().register_forward_hook(
        lambda _, __, output: positions.append(output.last_hidden_state.shape[1])
    )
    scores = Scorer(model)(batch)
    assert torch.allclose(scores.logprobs[batch.action_mask], expected, rtol=0, atol=1e-9)
    # Three prompts of 6, 9 and 5 ids, and 24, 43 and 8 ids after them.
    assert positions[-1] == 20 + 75


def lora_of(policy):
    config = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    policy = peft.get_peft_model(policy, config)
    for name, parameter in policy.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter)
    return policy.double()


def checkpointed(policy):
    policy.gradient_checkpointing_enable({"use_reentrant": False})
    return policy.train()


@pytest.mark.parametrize(
    ("family", "wrap", "tolerance"),
    [
        ("gpt2", lambda policy: policy, 1e-9),
        ("gpt2", lora_of, 1e-9),
        ("llama", checkpointed, 1e-5),
        # Its norms round to single precision in models of double, too.
        ("qwen3", lambda policy: policy, 1e-5),
    ],
)
def test_gradients_of_equal_prompts_add_up(family, wrap, tolerance):
    policy = wrap(make(family))
    reference = copy.deepcopy(policy)
    sequences = by_prompts(PROMPTS)
    scorer = Scorer(policy)
    assert scorer.packs
    scorer(collate(sequences)).logprobs.square().sum().backward()
    plain_logprobs(reference, sequences).square().sum().backward()
    check_gradients(policy, reference, tolerance)


@pytest.mark.parametrize("shares_trunk", [True, False], ids=["on the trunk", "apart"])
def test_values_of_equal_prompts_are_those_of_each_sequence_alone(shares_trunk):
    policy = make("gpt2")
    critic = Critic(policy, shares_trunk=shares_trunk)
    torch.nn.init.normal_(critic.head.weight)
    scorer = Scorer(policy, critic=critic)
    sequences = by_prompts(PROMPTS)
    batch = collate(sequences)
    found = scorer(batch).values
    assert found is not None
    found.square().sum().backward()
    modules = torch.nn.ModuleList([policy, critic])
    once = [None if p.grad is None else p.grad.clone() for p in modules.parameters()]
    modules.zero_grad()
    for row, item in enumerate(sequences):
        alone = scorer(collate([item])).values
        assert alone is not None
        alone.square().sum().backward()
        assert torch.allclose(found[row, : len(item)], alone[0], rtol=0, atol=1e-10)
    for one, parameter in zip(once, modules.parameters(), strict=True):
        assert (one is None) == (parameter.grad is None)
        if one is not None and parameter.grad is not None:
            assert torch.allclose(one, parameter.grad, rtol=1e-9, atol=1e-9)


def by_prompts(prompts):
    """Sequences of prompts, those of one together."""
    sequences = sequences_of_prompts(prompts, vocabulary=97)
    groups = by_prompt([sequence.sampled for sequence in sequences])
    return [sequences[index] for group in groups for index in group]


def check_gradients(policy, reference, tolerance):
    """Check that the gradients of two models are the same."""
    for (name, one), (_, other) in zip(
        policy.named_parameters(), reference.named_parameters(), strict=True
    ):
        assert (one.grad is None) == (other.grad is None), name
        if one.grad is not None:
            scale = other.grad.abs().max().clamp(min=1e-6)
            assert ((one.grad - other.grad).abs().max() / scale).item() < tolerance, name


def test_entropies_are_those_of_the_predictions():
    model = make("llama")
    sequences = random_sequences(3, vocabulary=97)
    batch = collate(sequences)
    entropies = Scorer(model, max_logits=100)(batch).entropies
    for row, item in enumerate(sequences):
        ids = torch.tensor([item.sampled.token_ids])
        probabilities = model(input_ids=ids).logits[0].softmax(-1)
        expected = -(probabilities * probabilities.log()).sum(-1)
        for position, sampled in enumerate(item.sampled.action_mask):
            want = expected[position - 1].item() if sampled else 0.0
            assert entropies[row, position].item() == pytest.approx(want, abs=1e-6)


def test_gradient_checkpointing_keeps_the_gradients():
    policy = tiny_policy().double()
    reference = copy.deepcopy(policy)
    policy.gradient_checkpointing_enable({"use_reentrant": False})
    policy.train()
    batch = collate(random_sequences(5))
    scorer = Scorer(policy)
    assert scorer.packs
    scorer(batch).logprobs.sum().backward()
    Scorer(reference)(batch).logprobs.sum().backward()
    pairs = zip(policy.parameters(), reference.parameters(), strict=True)
    assert all(torch.allclose(a.grad, b.grad, atol=1e-12) for a, b in pairs)


class LargestTensor(TorchDispatchMode):
    """Notes how many numbers the largest tensor has that any operation makes."""

    def __init__(self) -> None:
        super().__init__()
        self.numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return result


def test_logits_never_stand_whole_in_memory_forward_or_backward():
    torch.manual_seed(0)
    vocabulary = 4096
    config = transformers.Qwen3Config(**{**SMALL, "vocab_size": vocabulary})
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.get_output_embeddings().requires_grad_(False)  # tied: the table's own gradient is whole
    batch = collate(random_sequences(60, vocabulary=97))
    scorer = Scorer(model, max_logits=16 * vocabulary)
    assert scorer.splits_head
    num_sampled = int(batch.action_mask.sum())
    with LargestTensor() as seen:
        output = scorer(batch)
        (output.logprobs.sum() + output.entropies.sum()).backward()
    assert num_sampled > 10 * 16
    # The table itself is the largest: 4096 x 32, twice a chunk of 16 x 4096.
    assert seen.numel == vocabulary * SMALL["hidden_size"]
    whole = Scorer(model)
    with LargestTensor() as seen:
        whole(batch).logprobs.sum().backward()
    assert seen.numel == num_sampled * vocabulary


def test_gradient_checkpointing_keeps_less_than_half_of_the_activations():
    torch.manual_seed(0)
    config = transformers.Qwen3Config(**{**SMALL, "num_hidden_layers": 6})
    kept = []
    for checkpointing in (False, True):
        policy = transformers.AutoModelForCausalLM.from_config(config)
        if checkpointing:
            policy.gradient_checkpointing_enable({"use_reentrant": False})
        scorer = Scorer(policy.train(checkpointing))
        sizes = {}

        def note(tensor, sizes=sizes):
            sizes[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            output = scorer(collate(random_sequences(20, vocabulary=97)))
        weights = {p.data_ptr() for p in policy.parameters()}
        kept.append(sum(size for place, size in sizes.items() if place not in weights))
        output.logprobs.sum().backward()
    assert kept[1] < 0.5 * kept[0]
