"""CPU seconds of one update, packed and padded, for several kinds of lengths.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/learner_update.py --write

One thread, float32, all parameters, GRPO. Rows: our learner as it is (packed, equal prompts once);
the same learner without packing (sorted, padded to an area); a plain loop that pads the
whole batch to its longest sequence and cuts it into rows of 8, as trainers do that do not pack.
Laps take turns; the table has medians and ranges over laps, those of ratios within a lap.
"""

from __future__ import annotations

import argparse
import copy
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import transformers

from results import Table, installed, with_range, write_result
from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import SampledSequence, TokenSequence, collate
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.optimizer import LearningRate

SIZES = {
    "1M": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4},
    "10M": {"hidden_size": 320, "intermediate_size": 960, "num_hidden_layers": 8},
}
VOCABULARY = 512
LENGTHS = ("spread", "equal", "long prompts")
GROUP_SIZE = 8
RULE = UpdateRule(learning_rate=LearningRate(1e-4), micro_tokens=4096)
LOSS = GRPO(GRPOConfig()).loss


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description="Cost of one update, packed and padded.")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--sequences", type=int, default=48)
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures = [
        measure(size, lengths, options.sequences, options.laps)
        for size in options.sizes
        for lengths in LENGTHS
    ]
    shown = table(figures)
    print(shown.markdown())
    if options.write:
        settings = {"sequences": options.sequences, "laps": options.laps, "dtype": "float32"}
        versions = installed("torch", "transformers")
        print(write_result("learner_update", settings, figures, {"seconds": shown}, versions))


def measure(size: str, lengths: str, count: int, laps: int) -> dict[str, Any]:
    """Return the CPU seconds of each lap of each way, for a model and lengths."""
    sequences = make_sequences(count, lengths)
    found: dict[str, list[float]] = {}
    compared = ways(make_model(size))
    for _ in range(laps):
        for name, update in compared.items():
            found.setdefault(name, []).append(cpu_seconds(update, sequences))
    sizes = list(map(len, sequences))
    print(f"measured {size}, {lengths}", file=sys.stderr)
    work = {"size": size, "lengths": lengths, "tokens": sum(sizes), "longest": max(sizes)}
    return {**work, "cpu_seconds": found}


def table(figures: list[dict[str, Any]]) -> Table:
    """Return a column for each way, and how many times the first the last takes."""
    names = list(figures[0]["cpu_seconds"])
    columns = ("model", "lengths", "tokens", "longest", *names, "plain loop / packed")
    rows = []
    for row in figures:
        spent = row["cpu_seconds"]
        ratios = [a / b for a, b in zip(spent[names[-1]], spent[names[0]], strict=True)]
        work = (row["size"], row["lengths"], f"{row['tokens']:,}", f"{row['longest']:,}")
        seconds = (with_range(spent[name], ".2f") for name in names)
        rows.append((*work, *seconds, with_range(ratios, ".2f")))
    return Table.of(columns, rows)


def make_model(size: str) -> torch.nn.Module:
    """Return a random Qwen3 of a size."""
    torch.manual_seed(0)
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32}
    config = transformers.Qwen3Config(
        vocab_size=VOCABULARY, max_position_embeddings=4096, **SIZES[size], **heads
    )
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def make_sequences(count: int, lengths: str) -> list[TokenSequence]:
    """Return random sequences in groups of one prompt.

    Args:
        count: Of the sequences.
        lengths: "spread" for log-normal ones (mean 200, 99th percentile 1,500), of which 32 are the
            prompt; "equal" for prompts of 32 and 64 sampled ids; "long prompts" for 480 and 32.
    """
    rng = np.random.default_rng(0)
    sigma = 1.18
    drawn = np.clip(rng.lognormal(np.log(200) - sigma**2 / 2, sigma, count), 33, 3000)
    made: list[TokenSequence] = []
    group: list[int] = []
    for index in range(count):
        if index % GROUP_SIZE == 0:
            group = rng.integers(0, VOCABULARY, 480).tolist()
        prompt = 480 if lengths == "long prompts" else 32
        completion = {"equal": 64, "long prompts": 32}.get(lengths, int(drawn[index]) - prompt)
        mask = [False] * prompt + [True] * completion
        sampled = SampledSequence(
            token_ids=(*group[:prompt], *rng.integers(0, VOCABULARY, completion).tolist()),
            action_mask=tuple(mask),
            logprobs=tuple(-6.2 if m else 0.0 for m in mask),
        )
        made.append(TokenSequence(sampled, (float(rng.normal()),) * len(mask)))
    return made


def ways(model: torch.nn.Module) -> dict[str, Callable[[list[TokenSequence]], None]]:
    """Return the updates that are compared, each on its own copy of the model."""
    packed, padded = (Learner(copy.deepcopy(model), RULE) for _ in range(2))
    assert packed._scorer.packs
    padded._scorer.packs = False
    padded._scorer._model.set_attn_implementation("sdpa")
    plain = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=1e-4)

    def pad_to_longest(sequences: list[TokenSequence]) -> None:
        whole = collate(sequences)
        count = int(whole.action_mask.sum())
        for start in range(0, len(sequences), 8):
            rows = slice(start, start + 8)
            ids, mask = whole.token_ids[rows], whole.action_mask[rows]
            logits = plain(input_ids=ids, use_cache=False).logits[:, :-1]
            logprobs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
            ratio = (logprobs - whole.sampler_logprobs[rows, 1:]).exp()
            advantages = whole.advantages[rows, 1:]
            clipped = ratio.clamp(0.8, 1.2)
            gain = torch.minimum(ratio * advantages, clipped * advantages)
            (-(gain * mask[:, 1:]).sum() / count).backward()
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return {
        "ours, packed": lambda sequences: void(packed.update(sequences, LOSS)),
        "ours, sorted and padded": lambda sequences: void(padded.update(sequences, LOSS)),
        "plain loop, padded to the longest": pad_to_longest,
    }


def void(_: object) -> None:
    """Drop a value."""


def cpu_seconds(update: Callable[[list[TokenSequence]], None], sequences: list) -> float:
    """Return the CPU seconds of one update."""
    start = time.process_time()
    update(sequences)
    return time.process_time() - start


if __name__ == "__main__":
    main()
