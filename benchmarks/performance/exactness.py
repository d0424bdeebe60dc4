"""How exact an update over several learners is, and how near vLLM's logprobs are to the learner's.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/exactness.py learners
    OMP_NUM_THREADS=1 uv run python benchmarks/performance/exactness.py vllm

`learners` compares the change of every weight after one update with that of a plain loop over
sequences and positions, as relative L2 error. `vllm` samples 64 completions of the tiny model and
scores them by a plain forward pass, before and after changing each kind of weight.
"""

from __future__ import annotations

import argparse
import asyncio
from types import SimpleNamespace

import numpy as np
import torch

from rllm_agents.models import TINY
from rllm_agents.types import GenerationRequest, SamplingParams
from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import SampledSequence, TokenSequence
from rllm_learn.core.learner import UpdateRule
from rllm_learn.core.model import PolicySpec, load_policy, trainable_parameters
from rllm_learn.core.optimizer import LearningRate

RULE = UpdateRule(learning_rate=LearningRate(1e-3), max_grad_norm=0.5, micro_tokens=200)


def main() -> None:
    """Print one table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=["learners", "vllm"])
    {"learners": compare_learners, "vllm": compare_vllm}[parser.parse_args().what]()


def uneven_sequences(count: int, dtype: str) -> list[TokenSequence]:
    """Random sequences of log-normal lengths, scored by nobody: logprobs near the policy's."""
    rng = np.random.default_rng(0)
    policy = load_policy(PolicySpec(path=TINY, dtype=dtype))
    sequences = []
    for length in np.clip(rng.lognormal(3.5, 0.8, count), 4, 400).astype(int):
        ids = rng.integers(3, 300, length)
        with torch.no_grad():
            logits = policy(input_ids=torch.tensor(ids)[None]).logits[0].log_softmax(-1)
        mask = [i > 1 for i in range(length)]
        logprobs = [float(logits[i - 1, ids[i]]) if mask[i] else 0.0 for i in range(length)]
        noisy = [
            p - abs(rng.normal(0, 0.1)) if m else 0.0 for p, m in zip(logprobs, mask, strict=True)
        ]
        sampled = SampledSequence(tuple(ids.tolist()), tuple(mask), tuple(noisy))
        sequences.append(TokenSequence(sampled, (float(rng.normal()),) * length))
    return sequences


def plain_change(spec: PolicySpec, sequences: list[TokenSequence]) -> dict[str, torch.Tensor]:
    """Change of each weight by one step of AdamW over the mean of all sampled tokens."""
    policy = load_policy(spec)
    parameters = trainable_parameters(policy)
    before = {name: p.detach().clone() for name, p in parameters.items()}
    optimizer = torch.optim.AdamW(
        parameters.values(), lr=RULE.learning_rate.peak, betas=RULE.betas, weight_decay=0.0
    )
    terms = []
    for item in sequences:
        record = item.sampled
        logits = policy(input_ids=torch.tensor([record.token_ids])).logits[0].log_softmax(-1)
        for t, is_sampled in enumerate(record.action_mask):
            if is_sampled:
                ratio = (logits[t - 1, record.token_ids[t]] - record.logprobs[t]).exp()
                advantage = item.advantages[t]
                terms.append(-torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage))
    torch.stack(terms).mean().backward()
    torch.nn.utils.clip_grad_norm_(parameters.values(), RULE.max_grad_norm)
    optimizer.step()
    return {name: p.detach() - before[name] for name, p in parameters.items()}


def compare_learners() -> None:
    """Print errors for 0, 1 and 2 learners, LoRA and full, double and single precision."""
    import ray

    from rllm_learn.rllib import LLMLearnerGroup

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    print("| policy | precision | 0 learners | 1 learner | 2 learners |\n|---|---|---|---|---|")
    for rank, name in ((8, "LoRA r=8"), (0, "all parameters")):
        for dtype in ("float64", "float32"):
            spec = PolicySpec(path=TINY, lora_rank=rank, dtype=dtype)
            sequences = uneven_sequences(33, dtype)
            expected = plain_change(spec, sequences)
            errors = []
            for num_learners in (0, 1, 2):
                config = SimpleNamespace(
                    num_learners=num_learners,
                    init_timeout_s=120.0,
                    collective_timeout_s=60.0,
                    snapshot_every_updates=1,
                )
                group = LLMLearnerGroup(
                    config=config,
                    spec=spec,
                    rule=RULE,
                    exports_adapter=False,
                    torch_threads=1,
                    actor_options=[{"num_cpus": 0.5}] * num_learners,
                )
                before = group.state_dict()["parameters"]
                before = {n: p.clone() for n, p in before.items()}
                group.update(sequences, GRPO(GRPOConfig()).loss)
                after = group.state_dict()["parameters"]
                group.shutdown()
                wrong = sum(
                    float((after[n] - before[n] - d).norm() ** 2) for n, d in expected.items()
                )
                size = sum(float(d.norm() ** 2) for d in expected.values())
                errors.append((wrong / size) ** 0.5)
            print(f"| {name} | {dtype} | " + " | ".join(f"{e:.1e}" for e in errors) + " |")


def compare_vllm() -> None:
    """Print differences in logprob for float32 and bfloat16."""
    from transformers import AutoModelForCausalLM

    from rllm_agents.rollout_engines.vllm import VLLMEngine

    print("| precision | pushed | largest | mean |\n|---|---|---|---|")
    for dtype in ("float32", "bfloat16"):
        engine = VLLMEngine("tiny", dtype=dtype, max_batch_size=64, max_model_length=512)
        model = AutoModelForCausalLM.from_pretrained(TINY, dtype=getattr(torch, dtype)).eval()
        for part in ("nothing", "self_attn", "mlp", "norm", "embed_tokens"):
            changed = perturb(model, part)
            if changed:
                version = engine.weights_version + 1
                asyncio.run(engine.load_weights(changed, version=version))
            gaps = differences(engine, model)
            print(f"| {dtype} | {part} | {gaps.max():.1e} | {gaps.mean():.1e} |", flush=True)
        engine.close()


def perturb(model: torch.nn.Module, part: str) -> dict[str, torch.Tensor]:
    """Change the weights of one kind and return them."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if part in name:
                parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    return {n: p.detach().clone() for n, p in model.named_parameters() if part in n}


def differences(engine, model) -> np.ndarray:
    """Absolute differences in logprob over 64 sampled completions."""
    rng = np.random.default_rng(0)
    requests = [
        GenerationRequest(
            (), tuple(rng.integers(3, 300, 30).tolist()), SamplingParams(max_tokens=64, seed=i)
        )
        for i in range(64)
    ]

    async def sample():
        return await asyncio.gather(*(engine.generate(r) for r in requests))

    gaps = []
    for request, answer in zip(requests, asyncio.run(sample()), strict=True):
        ids = [*request.prompt_ids, *answer.token_ids]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0].float().log_softmax(-1)
        start = len(request.prompt_ids)
        gaps += [
            abs(float(logits[start + i - 1, token]) - logprob)
            for i, (token, logprob) in enumerate(
                zip(answer.token_ids, answer.logprobs, strict=True)
            )
        ]
    return np.array(gaps)


if __name__ == "__main__":
    main()
