"""Memory, traffic and time of training on 1 to 1,024 GPUs, worked out and not measured.

    uv run python benchmarks/performance/scaling_arithmetic.py

Prints the tables of docs/scaling.md. Every function is one formula, with units; what they start
from (`MODELS`, `GPU`, `WORK`) is at the top and can be changed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

GB = 1e9
BF16, FP32 = 2, 4


@dataclass(frozen=True)
class Model:
    """A decoder as Qwen2.5 and Llama 3 have it: grouped queries, a gated MLP."""

    name: str
    layers: int
    hidden: int
    inner: int
    """Width of the MLP."""
    query_heads: int
    key_heads: int
    head: int
    """Size of one head."""
    vocabulary: int
    tied: bool
    """Whether the head is the embedding."""

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the linear layers of one block."""
        queries, keys = self.query_heads * self.head, self.key_heads * self.head
        attention = ((queries, self.hidden), *((keys, self.hidden),) * 2, (self.hidden, queries))
        return (*attention, *((self.inner, self.hidden),) * 2, (self.hidden, self.inner))


@dataclass(frozen=True)
class Gpu:
    """What a GPU and the links to it are taken to be."""

    memory_gb: float = 80.0
    flops: float = 400e12
    """Reached in training: 40 % of the 989 TFLOP/s that an H100 has in bfloat16."""
    memory_bandwidth: float = 3.35e12
    """Bytes a second from its own memory, half of which decoding is taken to reach."""
    node_link: float = 450e9
    """Bytes a second between GPUs of a node, in one direction."""
    network: float = 50e9
    """Bytes a second of one GPU's network card: 400 Gbit/s."""
    per_node: int = 8


@dataclass(frozen=True)
class Work:
    """One training step."""

    sequences: int = 1024
    """128 tasks, 8 rollouts each."""
    prompt: int = 200
    """Tokens of a prompt."""
    response: int = 1000
    """Sampled tokens, on average."""
    lora_rank: int = 16
    micro_tokens: int = 16_384
    in_flight: int = 128
    """Sequences that an engine decodes together."""

    @property
    def tokens(self) -> int:
        """Positions that the learner passes in a step."""
        return self.sequences * (self.prompt + self.response)

    @property
    def sampled(self) -> int:
        """Tokens that engines sample in a step."""
        return self.sequences * self.response


MODELS = (
    Model("0.5B", 24, 896, 4864, 14, 2, 64, 151_936, True),
    Model("7B", 28, 3584, 18_944, 28, 4, 128, 152_064, False),
    Model("70B", 80, 8192, 28_672, 64, 8, 128, 128_256, False),
)
GPU = Gpu()
WORK = Work()
GPUS = (1, 8, 64, 1024)


def parameters(model: Model) -> int:
    """Weights: blocks, embeddings, head; norms and biases are left out (below 0.1 %)."""
    block = sum(rows * columns for rows, columns in model.matrices)
    tables = 1 if model.tied else 2
    return model.layers * block + tables * model.vocabulary * model.hidden


def adapter_parameters(model: Model, rank: int) -> int:
    """Weights of LoRA on every linear layer: rank (rows + columns) of each."""
    return model.layers * sum(rank * (rows + columns) for rows, columns in model.matrices)


def state_bytes(model: Model, *, lora: bool, work: Work = WORK) -> int:
    """Weights, gradients and AdamW's averages of all learners together, with `sharding="fsdp"`.

    Full: float32 weights, gradients and two averages, 16 bytes a weight. LoRA: the frozen weights
    in bfloat16, and 16 bytes a weight of the adapters.
    """
    if lora:
        return BF16 * parameters(model) + 4 * FP32 * adapter_parameters(model, work.lora_rank)
    return 4 * FP32 * parameters(model)


def replicated_bytes(model: Model, *, lora: bool, work: Work = WORK) -> int:
    """The same on one learner with `sharding="replicate"`: full adds bfloat16 weights to compute.

    Their gradients live for one layer at a time only, until they are added to float32 ones.
    """
    return state_bytes(model, lora=lora, work=work) + (0 if lora else BF16 * parameters(model))


def gathered_bytes(model: Model) -> int:
    """What FSDP holds whole at a time, in bfloat16: a block and the next, embedding and head."""
    block = sum(rows * columns for rows, columns in model.matrices)
    tables = 1 if model.tied else 2
    return BF16 * (2 * block + tables * model.vocabulary * model.hidden)


def activation_bytes(model: Model, *, checkpointing: bool, work: Work = WORK) -> int:
    """Activations of a packed micro-batch, in bfloat16; those of one block where recomputed.

    A block keeps, for each position, about 8 vectors of the hidden size, 2 of the queries', 2 of
    the keys' and 4 of the MLP's; checkpointing keeps its input, 1 of the hidden size.
    """
    queries, keys = model.query_heads * model.head, model.key_heads * model.head
    block = 8 * model.hidden + 2 * queries + 2 * keys + 4 * model.inner
    kept = model.layers * model.hidden + block if checkpointing else model.layers * block
    return BF16 * work.micro_tokens * kept


def learner_bytes(
    model: Model, gpus: int, *, lora: bool, sharded: bool, checkpointing: bool = True
) -> float:
    """Memory of one of `gpus` learners; logits add 5 x 256 MiB, as they never stand whole."""
    logits = 5 * 2**28
    activations = activation_bytes(model, checkpointing=checkpointing) + logits
    if not sharded:
        return replicated_bytes(model, lora=lora) + activations
    return state_bytes(model, lora=lora) / gpus + gathered_bytes(model) + activations


def learn_seconds(model: Model, gpus: int, *, lora: bool, work: Work = WORK) -> float:
    """Arithmetic of one update: 6 FLOP a weight and token (full), 4 (LoRA), 2 more recomputed.

    2 forward, 2 for the gradient of inputs, and with all parameters 2 for that of weights; the 2
    are of gradient checkpointing.
    """
    per_weight = (4 if lora else 6) + 2
    return per_weight * parameters(model) * work.tokens / (gpus * GPU.flops)


def link(gpus: int) -> float:
    """Bytes a second that one of `gpus` learners sends: the slowest link that a ring crosses."""
    return GPU.node_link if gpus <= GPU.per_node else GPU.network


def replicate_seconds(model: Model, gpus: int, *, lora: bool) -> float:
    """One all-reduce of float32 gradients an optimizer step: 2 (n - 1) / n of them are sent."""
    trained = adapter_parameters(model, WORK.lora_rank) if lora else parameters(model)
    return 2 * (gpus - 1) / gpus * FP32 * trained / link(gpus)


def fsdp_seconds(model: Model, gpus: int, *, lora: bool, work: Work = WORK) -> float:
    """Gathers and reductions of a whole update, none of them hidden behind arithmetic.

    Each micro-batch gathers bfloat16 weights for the forward and again for the backward pass, and
    reduces float32 gradients of what is trained.
    """
    passes = math.ceil(work.tokens / gpus / work.micro_tokens)
    trained = adapter_parameters(model, work.lora_rank) if lora else parameters(model)
    sent = 2 * BF16 * parameters(model) + FP32 * trained
    return passes * (gpus - 1) / gpus * sent / link(gpus)


def publish_bytes(model: Model, *, lora: bool, work: Work = WORK) -> int:
    """What one engine receives: adapters in float32, or all weights in bfloat16."""
    return FP32 * adapter_parameters(model, work.lora_rank) if lora else BF16 * parameters(model)


def saved_bytes(model: Model) -> int:
    """A checkpoint of all parameters: float32 weights and AdamW's two averages."""
    return 3 * FP32 * parameters(model)


def cache_bytes(model: Model, work: Work = WORK) -> int:
    """Keys and values of the sequences that an engine decodes together, at their full length."""
    per_token = 2 * model.layers * model.key_heads * model.head * BF16
    return per_token * (work.prompt + work.response) * work.in_flight


def engine_gpus(model: Model) -> int:
    """GPUs that weights and caches of one engine need, with a tenth of memory left free."""
    need = BF16 * parameters(model) + cache_bytes(model)
    return 2 ** math.ceil(math.log2(max(need / (0.9 * GPU.memory_gb * GB), 1)))


def sample_seconds(model: Model, gpus: int, work: Work = WORK) -> float:
    """Time to sample a step's tokens: each decoded token reads all weights and its caches.

    An engine decodes `in_flight` sequences together, or fewer where there are not as many; caches
    are half full on average, and half of the memory's bandwidth is reached.
    """
    engines = gpus // engine_gpus(model)
    together = min(work.in_flight, math.ceil(work.sequences / engines))
    rounds = max(work.sequences / (engines * together), 1.0)
    read = BF16 * parameters(model) + cache_bytes(model, work) / 2 * together / work.in_flight
    bandwidth = engine_gpus(model) * GPU.memory_bandwidth / 2
    return rounds * work.response * read / bandwidth


def update_seconds(model: Model, gpus: int, *, lora: bool, work: Work = WORK) -> float:
    """Time of an update of split weights whose traffic is hidden behind arithmetic, or the reverse.

    Both with `sharding="fsdp"`; what fits on one GPU needs no traffic at all.
    """
    sent = fsdp_seconds(model, gpus, lora=lora, work=work)
    return max(learn_seconds(model, gpus, lora=lora, work=work), sent)


def fits(model: Model, gpus: int, *, lora: bool) -> bool:
    """Whether that many learners with split weights have the memory, a tenth of it left free."""
    return learner_bytes(model, gpus, lora=lora, sharded=True) < 0.9 * GPU.memory_gb * GB


def split(model: Model, gpus: int, *, lora: bool, work: Work = WORK) -> tuple[int, float]:
    """Return how many of the GPUs learn when a step is shortest, and its time in seconds.

    Sampling and learning overlap, so that a step takes the longer of the two. 0 and infinity where
    learners and an engine do not fit.
    """
    best = (0, math.inf)
    for learners in range(1, gpus):
        if gpus - learners >= engine_gpus(model) and fits(model, learners, lora=lora):
            learn = update_seconds(model, learners, lora=lora, work=work)
            step = max(learn, sample_seconds(model, gpus - learners, work))
            best = min(best, (learners, step), key=lambda pair: pair[1])
    return best


def shared_seconds(model: Model, gpus: int, *, lora: bool, work: Work = WORK) -> float:
    """Time of a step where all GPUs sample and then all learn, without moves in between."""
    if not fits(model, gpus, lora=lora) or gpus < engine_gpus(model):
        return math.inf
    learn = update_seconds(model, gpus, lora=lora, work=work)
    return sample_seconds(model, gpus, work) + learn


def step_work(gpus: int) -> Work:
    """A step for so many GPUs: at least 16 sequences each, so that all have something to do."""
    return replace(WORK, sequences=max(WORK.sequences, 16 * gpus))


def main() -> None:
    """Print the tables."""
    print_models()
    print_memory()
    print_updates()
    print_steps()


def print_models() -> None:
    """Sizes, states and what is published."""
    print("\n| model | weights | LoRA r=16 | state, all | LoRA | published, all | LoRA | saved |")
    print("|---|---|---|---|---|---|---|---|")
    for m in MODELS:
        sizes = [state_bytes(m, lora=flag) for flag in (False, True)]
        sizes += [publish_bytes(m, lora=flag) for flag in (False, True)]
        cells = " | ".join(f"{size / GB:,.2f} GB" for size in [*sizes, saved_bytes(m)])
        adapters = adapter_parameters(m, WORK.lora_rank)
        print(f"| {m.name} | {parameters(m) / 1e9:.2f} B | {adapters / 1e6:.1f} M | {cells} |")


def print_memory() -> None:
    """Memory of one learner."""
    print("\n| model | trained | replicate | fsdp, 8 | fsdp, 64 | fsdp, 1,024 |")
    print("|---|---|---|---|---|---|")
    for m, lora in ((m, lora) for m in MODELS for lora in (True, False)):
        cells = [learner_bytes(m, 1, lora=lora, sharded=False)]
        cells += [learner_bytes(m, n, lora=lora, sharded=True) for n in GPUS[1:]]
        row = " | ".join(_gigabytes(c) for c in cells)
        print(f"| {m.name} | {_trained(lora)} | {row} |")


def print_updates() -> None:
    """Arithmetic and communication of one update."""
    print("\n| model | trained | GPUs | arithmetic | replicate: sends | fsdp: sends |")
    print("|---|---|---|---|---|---|")
    for m, lora in ((m, lora) for m in MODELS for lora in (True, False)):
        for n in GPUS:
            cells = (
                learn_seconds(m, n, lora=lora, work=step_work(n)),
                replicate_seconds(m, n, lora=lora),
                fsdp_seconds(m, n, lora=lora, work=step_work(n)),
            )
            row = " | ".join(_seconds(c) for c in cells)
            print(f"| {m.name} | {_trained(lora)} | {n:,} | {row} |")


def print_steps() -> None:
    """One training step on separate and on the same GPUs."""
    print("\n| model | trained | GPUs | sequences | of them learn | separate GPUs | same GPUs |")
    print("|---|---|---|---|---|---|---|")
    for m, lora in ((m, lora) for m in MODELS for lora in (True, False)):
        for n in GPUS:
            work = step_work(n)
            learners, step = split(m, n, lora=lora, work=work)
            alone = shared_seconds(m, n, lora=lora, work=work)
            start = f"| {m.name} | {_trained(lora)} | {n:,} | {work.sequences:,} | "
            print(f"{start}{learners or '-'} | {_seconds(step)} | {_seconds(alone)} |")


def _trained(lora: bool) -> str:
    return "LoRA" if lora else "all"


def _gigabytes(size: float) -> str:
    mark = "" if size < 0.9 * GPU.memory_gb * GB else " (too large)"
    return f"{size / GB:,.1f} GB{mark}"


def _seconds(value: float) -> str:
    if math.isinf(value):
        return "does not fit"
    if value == 0:
        return "0"
    return f"{value:,.1f} s" if value >= 1 else f"{value * 1000:,.1f} ms"


if __name__ == "__main__":
    main()
