"""How exact an update over several learners is, and how near vLLM's logprobs are to the learner's.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/exactness.py learners --write
    OMP_NUM_THREADS=1 uv run python benchmarks/performance/exactness.py vllm --write

`learners` compares the change of every weight after one update with that of a plain loop over
sequences and positions, as relative L2 error: for a learner alone, for groups that hold copies of
the weights or split them (FSDP2), and for the plain loop in torch's DDP. It takes some minutes.
`vllm` samples 64 completions of the tiny model and scores them by a plain forward pass, before and
after changing each kind of weight. Each part has a result file of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.multiprocessing

from results import Table, installed, write_result
from rllm_agents.models import TINY
from rllm_agents.types import GenerationRequest, SamplingParams
from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import SampledSequence, TokenSequence
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.model import PolicySpec, load_policy, trainable_parameters
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.core.parallel import ProcessGroupRanks, Ranks, share_of

RULE = UpdateRule(learning_rate=LearningRate(1e-3), max_grad_norm=0.5)
DTYPES = ("float64", "float32")
NUM_SEQUENCES = 33
NUM_COMPLETIONS = 64


@dataclass(frozen=True)
class Case:
    """One policy, and how its batches are cut."""

    lora_rank: int
    dtype: str
    padded: bool
    micro_tokens: int

    @property
    def spec(self) -> PolicySpec:
        """Of the tiny model."""
        return PolicySpec(path=TINY, lora_rank=self.lora_rank, dtype=self.dtype)

    @property
    def words(self) -> list[str]:
        """First cells of its row."""
        policy = f"LoRA r={self.lora_rank}" if self.lora_rank else "all parameters"
        layout = "padded" if self.padded else "packed"
        return [policy, self.dtype, layout, f"{self.micro_tokens:,}"]

    def policy(self) -> torch.nn.Module:
        """Load it; attention that cannot be packed leaves sequences padded."""
        policy = load_policy(self.spec)
        if self.padded:
            model: Any = policy.get_base_model() if self.lora_rank else policy  # pyright: ignore[reportCallIssue]
            model.set_attn_implementation("eager")
        return policy


@dataclass(frozen=True)
class Group:
    """Learners that act as one; none is a learner without a process group."""

    size: int
    kind: str

    @property
    def name(self) -> str:
        """Title of its column."""
        return f"{self.size} {self.kind}".strip()

    def takes(self, case: Case) -> bool:
        """Whether the case means something: DDP's loop has sequences one by one."""
        return self.kind != "DDP" or (not case.padded and case.micro_tokens == MICRO_TOKENS[0])


MICRO_TOKENS = (200, 1000)
CASES = tuple(
    Case(rank, dtype, padded, micro_tokens)
    for rank in (8, 0)
    for dtype in DTYPES
    for padded in (False, True)
    for micro_tokens in MICRO_TOKENS
    if dtype == "float64" or (not padded and micro_tokens == MICRO_TOKENS[0])
)
GROUPS = (
    Group(1, ""),
    *(Group(size, kind) for size in (2, 4) for kind in ("replicate", "fsdp")),
    Group(2, "DDP"),
    Group(0, ""),
)


def main() -> None:
    """Print one table in Markdown, and write its result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=["learners", "vllm"])
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    if options.what == "learners":
        figures, modules = compare_learners(), ("torch", "transformers")
        settings, shown = {"sequences": NUM_SEQUENCES}, learners_table(figures)
    else:
        figures, modules = compare_vllm(), ("vllm", "torch", "transformers")
        settings, shown = {"completions": NUM_COMPLETIONS}, vllm_table(figures)
    print(shown.markdown())
    if options.write:
        name = f"exactness_{options.what}"
        print(write_result(name, settings, figures, {options.what: shown}, installed(*modules)))


def uneven_sequences(count: int, dtype: str) -> list[TokenSequence]:
    """Random completions of log-normal lengths, three to a prompt; logprobs near the policy's."""
    rng = np.random.default_rng(0)
    policy = load_policy(PolicySpec(path=TINY, dtype=dtype))
    prompts = [rng.integers(3, 300, length) for length in rng.integers(2, 40, max(count // 3, 1))]
    sequences = []
    for index, sampled_ids in enumerate(np.clip(rng.lognormal(3.0, 0.8, count), 2, 400)):
        prompt = prompts[index % len(prompts)]
        ids = np.concatenate([prompt, rng.integers(3, 300, int(sampled_ids))])
        length = len(ids)
        with torch.no_grad():
            logits = policy(input_ids=torch.tensor(ids)[None]).logits[0].log_softmax(-1)
        mask = [i >= len(prompt) for i in range(length)]
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
    optimizer = plain_optimizer(parameters)
    terms = [term for item in sequences for term in plain_terms(policy, item)]
    torch.stack(terms).mean().backward()
    torch.nn.utils.clip_grad_norm_(parameters.values(), RULE.max_grad_norm)
    optimizer.step()
    return {name: p.detach() - before[name] for name, p in parameters.items()}


def plain_optimizer(parameters: Mapping[str, torch.nn.Parameter]) -> torch.optim.Optimizer:
    """AdamW with the rule's settings."""
    return torch.optim.AdamW(
        parameters.values(), lr=RULE.learning_rate.peak, betas=RULE.betas, weight_decay=0.0
    )


def plain_terms(policy: torch.nn.Module, item: TokenSequence) -> list[torch.Tensor]:
    """PPO's clipped term of each sampled token of a sequence, from whole logits."""
    record = item.sampled
    logits = policy(input_ids=torch.tensor([record.token_ids])).logits[0].log_softmax(-1)
    terms = []
    for t, is_sampled in enumerate(record.action_mask):
        if is_sampled:
            ratio = (logits[t - 1, record.token_ids[t]] - record.logprobs[t]).exp()
            advantage = item.advantages[t]
            terms.append(-torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage))
    return terms


def compare_learners() -> list[dict[str, Any]]:
    """Return errors by policy, layout and micro-batch, over the groups of learners."""
    sequences = {dtype: uneven_sequences(NUM_SEQUENCES, dtype) for dtype in DTYPES}
    # Processes are forked before this one computes gradients, which torch allows no fork after.
    found = {group.name: changes_of(group, sequences) for group in GROUPS}
    expected = {
        (case.lora_rank, case.dtype): plain_change(case.spec, sequences[case.dtype])
        for case in CASES
    }
    errors: dict[Case, dict[str, float]] = {case: {} for case in CASES}
    for name, changes in found.items():
        for case, change in changes.items():
            errors[case][name] = relative_error(change, expected[case.lora_rank, case.dtype])
    return [{"case": case.words, "errors": of_case} for case, of_case in errors.items()]


def learners_table(rows: list[dict[str, Any]]) -> Table:
    """Return a column for each group of learners, DDP around the plain loop last."""
    names = [g.name for g in sorted(GROUPS, key=lambda group: (group.kind == "DDP", group.size))]
    titles = [f"{name} learners" if name == "0" else name for name in names]
    columns = ("policy", "precision", "layout", "micro-batch", *titles)
    cells = (
        [*row["case"], *(f"{row['errors'][n]:.1e}" if n in row["errors"] else "" for n in names)]
        for row in rows
    )
    return Table.of(columns, cells)


def changes_of(
    group: Group, sequences: dict[str, list[TokenSequence]]
) -> dict[Case, dict[str, torch.Tensor]]:
    """Run the cases of a group of learners; return how each changed the weights."""
    cases = [case for case in CASES if group.takes(case)]
    if group.size == 0:
        return {case: learner_change(case, sequences[case.dtype], None) for case in cases}
    with tempfile.TemporaryDirectory() as place:
        torch.multiprocessing.start_processes(
            _on_rank, args=(group, cases, sequences, place), nprocs=group.size, start_method="fork"
        )
        return dict(zip(cases, torch.load(f"{place}/changes.pt"), strict=True))


def _on_rank(
    rank: int,
    group: Group,
    cases: list[Case],
    sequences: dict[str, list[TokenSequence]],
    place: str,
) -> None:
    torch.set_num_threads(1)
    ranks = ProcessGroupRanks(
        rank=rank,
        size=group.size,
        address=f"file://{place}/rendezvous",
        device=torch.device("cpu"),
        timeout_seconds=600,
        sharding="fsdp" if group.kind == "fsdp" else "replicate",
    )
    change = ddp_change if group.kind == "DDP" else learner_change
    changes = [change(case, sequences[case.dtype], ranks) for case in cases]
    if rank == 0:
        torch.save(changes, f"{place}/changes.pt")
    ranks.close()


def learner_change(
    case: Case, sequences: list[TokenSequence], ranks: Ranks | None
) -> dict[str, torch.Tensor]:
    """Change of each weight by one update of a learner."""
    policy = case.policy()
    before = {name: p.detach().clone() for name, p in trainable_parameters(policy).items()}
    rule = replace(RULE, micro_tokens=case.micro_tokens)
    learner = Learner(policy, rule, ranks=ranks)
    learner.update(sequences, GRPO(GRPOConfig()).loss)
    after = learner.state_dict()["parameters"]
    return {name: after[name] - p for name, p in before.items() if after[name].numel()}


def ddp_change(case: Case, sequences: list[TokenSequence], ranks: Ranks) -> dict[str, torch.Tensor]:
    """Change of each weight by a plain loop in torch's DistributedDataParallel.

    DDP averages over ranks, so that each rank's sum is multiplied by their number and divided by
    the count of all; it exchanges gradients in the backward pass of the last sequence alone.
    """
    policy = case.policy()
    parameters = trainable_parameters(policy)
    before = {name: p.detach().clone() for name, p in parameters.items()}
    optimizer = plain_optimizer(parameters)
    parallel = torch.nn.parallel.DistributedDataParallel(policy)
    count = sum(item.sampled.num_actions for item in sequences)
    share = share_of(sequences, ranks)
    for index, item in enumerate(share):
        waits = index < len(share) - 1
        with parallel.no_sync() if waits else contextlib.nullcontext():
            total = torch.stack(plain_terms(parallel, item)).sum()
            (total * ranks.size / count).backward()
    torch.nn.utils.clip_grad_norm_(parameters.values(), RULE.max_grad_norm)
    optimizer.step()
    return {name: p.detach() - before[name] for name, p in parameters.items()}


def relative_error(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """Relative L2 distance of two changes of the same weights."""
    assert found.keys() == expected.keys()
    wrong = sum(float((found[name] - d).norm() ** 2) for name, d in expected.items())
    return (wrong / sum(float(d.norm() ** 2) for d in expected.values())) ** 0.5


def compare_vllm() -> list[dict[str, Any]]:
    """Return differences in logprob for float32 and bfloat16, by what was pushed."""
    from transformers import AutoModelForCausalLM

    from rllm_agents.rollout_engines.vllm import VLLMEngine

    rows = []
    for dtype in ("float32", "bfloat16"):
        engine = VLLMEngine("tiny", dtype=dtype, max_batch_size=64, max_model_length=512)
        model = AutoModelForCausalLM.from_pretrained(TINY, dtype=getattr(torch, dtype)).eval()
        for part in ("nothing", "self_attn", "mlp", "norm", "embed_tokens"):
            changed = perturb(model, part)
            if changed:
                version = engine.weights_version + 1
                asyncio.run(engine.load_weights(changed, version=version))
            gaps = differences(engine, model)
            largest, mean = float(gaps.max()), float(gaps.mean())
            rows.append({"precision": dtype, "pushed": part, "largest": largest, "mean": mean})
        engine.close()
    return rows


def vllm_table(rows: list[dict[str, Any]]) -> Table:
    """Return the largest and the mean difference of each push."""
    cells = [
        (row["precision"], row["pushed"], f"{row['largest']:.1e}", f"{row['mean']:.1e}")
        for row in rows
    ]
    return Table.of(("precision", "pushed", "largest", "mean"), cells)


def perturb(model: torch.nn.Module, part: str) -> dict[str, torch.Tensor]:
    """Change the weights of one kind and return them."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if part in name:
                parameter.add_(0.02 * torch.randn(parameter.shape, generator=generator))
    return {n: p.detach().clone() for n, p in model.named_parameters() if part in n}


def differences(engine, model) -> np.ndarray:
    """Absolute differences in logprob over the sampled completions."""
    rng = np.random.default_rng(0)
    requests = [
        GenerationRequest(
            (), tuple(rng.integers(3, 300, 30).tolist()), SamplingParams(max_tokens=64, seed=i)
        )
        for i in range(NUM_COMPLETIONS)
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
