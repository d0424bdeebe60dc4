"""One update and one whole GRPO step beside TRL, RLlib's own learner and a loop written by hand.

    OMP_NUM_THREADS=1 uv run python benchmarks/performance/peers_learning.py --write

CPU seconds of one thread in float32, all parameters of a random Qwen3, 8 tasks x 8 rollouts, the
same token ids on each side. "spread": log-normal lengths (mean 200, 99th percentile 1,500);
"short": 64 tokens each. Each side is a process of its own, which gives its peak of memory too; laps
take turns, and the table has medians and ranges over laps, those of ratios within a lap. TRL is
installed with uv into an environment of its own, with our versions of torch and transformers, and
is given several numbers of rows in a pass to choose from.

All sides that take one optimizer step must apply the same gradient, or the script fails.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from peers.installation import python_with, version_in
from peers.lap_process import LapProcess
from peers.workload import MAX_POSITIONS, SIZES, make_workload, save_workload

from results import Table, installed, with_range, write_result
from rllm_agents.models import TINY

MODES = ("update", "step")
LENGTHS = ("spread", "short")
SCRIPTS = Path(__file__).with_name("peers")
TOLERANCE = 1e-5
"""Relative L2 difference of a gradient to that of the loop written by hand, in float32."""


@dataclass(frozen=True, slots=True)
class Way:
    """One side with one setting. Made by `ways`, run by `measured`."""

    name: str
    script: str
    mode: str
    rows: int
    gradient: str | None
    """File of the gradient that it applies; None where it is not comparable."""


def ways(mode: str, size: str, lengths: str, rows: Sequence[int]) -> list[Way]:
    """Return what is compared.

    Args:
        mode: One of `MODES`.
        size: Of the model.
        lengths: One of `LENGTHS`.
        rows: TRL's sequences in a pass.
    """
    found = [Way("ours", "ours_grpo.py", mode, 0, "update.pt")]
    found += [
        Way(f"TRL, {count} rows a pass", "trl_grpo.py", mode, count, f"trl-{count}.pt")
        for count in rows
    ]
    if mode == "step":
        return found
    found.append(Way("a loop written by hand", "ours_grpo.py", "loop", 8, "loop.pt"))
    if size == "1M" or lengths == "short":
        found.append(Way("RLlib, one minibatch", "rllib_ppo.py", mode, 0, "rllib-0.pt"))
    else:  # one minibatch of all, padded, does not fit into the memory of a small machine
        found.append(Way("RLlib, minibatches of 8", "rllib_ppo.py", mode, 8, None))
    return found


def make_folder(folder: Path, size: str, lengths: str) -> dict[str, Any]:
    """Write model and workload; return what they are."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    workload = make_workload(tokenizer, lengths)
    save_workload(workload, folder)
    torch.manual_seed(0)
    config = transformers.Qwen3Config(
        vocab_size=len(tokenizer),
        max_position_embeddings=MAX_POSITIONS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **SIZES[size],
    )
    model = transformers.AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "rollouts": len(workload.lengths),
        "completion_tokens": sum(workload.lengths),
        "longest": max(workload.lengths),
    }


def measured(
    chosen: Sequence[Way], pythons: dict[str, Path], folder: Path, laps: int
) -> dict[str, dict[str, Any]]:
    """Let the ways take turns; return the CPU seconds of each lap and the peak of memory."""
    sides: list[LapProcess] = []
    try:
        for way in chosen:
            arguments = [SCRIPTS / way.script, way.mode, folder, str(way.rows)]
            log = folder / f"{way.script}-{way.mode}-{way.rows}.log"
            sides.append(LapProcess([pythons[way.script], *arguments], log))
        laps_of_all = [[side.lap() for side in sides] for _ in range(laps)]
    finally:
        for side in sides:
            side.close()
    return {
        way.name: {
            "cpu_seconds": [figures["cpu_seconds"] for figures in of_one],
            "peak_mib": max(figures["peak_mib"] for figures in of_one),
            "start_mib": side.ready["peak_mib"],
        }
        for way, side, of_one in zip(chosen, sides, zip(*laps_of_all, strict=True), strict=True)
    }


def check_gradients(chosen: Sequence[Way], folder: Path) -> dict[str, float]:
    """Return each gradient's relative difference to that of the loop written by hand.

    Raises:
        SystemExit: One is beyond the tolerance: what was compared is not the same work.
    """
    compared = [way for way in chosen if way.gradient is not None]
    reference = torch.load(folder / "loop.pt")
    norm = torch.stack([g.norm() for g in reference.values()]).norm()
    found = {}
    for way in compared:
        gradient = torch.load(folder / str(way.gradient))
        apart = [(gradient[name] - reference[name]).norm() for name in reference]
        found[way.name] = (torch.stack(apart).norm() / norm).item()
        if not found[way.name] < TOLERANCE:
            raise SystemExit(f"{way.name} applies another gradient: {found[way.name]:.1e} apart")
    return found


def tables(scenarios: list[dict[str, Any]]) -> dict[str, Table]:
    """Return CPU seconds, those of others as times ours, and peaks of memory: a column a scenario.

    Args:
        scenarios: As `compared` returns them.
    """
    columns = ("", *(f"{s['mode']}, {s['size']}, {s['lengths']}" for s in scenarios))
    names = list(dict.fromkeys(name for s in scenarios for name in s["ways"]))
    seconds = [(name, *(_times_ours(s["ways"], name) for s in scenarios)) for name in names]
    apart = [max(s["gradient_difference"].values(), default=None) for s in scenarios]
    seconds.append(("gradients apart", *("" if d is None else f"{d:.1e}" for d in apart)))
    memory = [(name, *(_peak(s["ways"].get(name)) for s in scenarios)) for name in names]
    return {"seconds": Table.of(columns, seconds), "memory": Table.of(columns, memory)}


def _peak(figures: dict[str, Any] | None) -> str:
    return "" if figures is None else f"{figures['peak_mib']:,.0f}"


def _times_ours(figures: dict[str, dict[str, Any]], name: str) -> str:
    """Return our CPU seconds, or how many times ours another way takes within a lap."""
    if name not in figures:
        return ""
    ours, laps = figures["ours"]["cpu_seconds"], figures[name]["cpu_seconds"]
    if name == "ours":
        return f"{with_range(ours, '.2f')} s"
    return f"{with_range([a / b for a, b in zip(laps, ours, strict=True)], '.2f')} x"


def compared(
    scenario: tuple[str, str, str], rows: Sequence[int], laps: int, trl: Path
) -> dict[str, Any]:
    """Measure one scenario, and return what belongs into the result file.

    Args:
        scenario: "update" or "step", the model's size, and the completions' lengths.
        rows: TRL's sequences in a pass.
        laps: Of each side.
        trl: The interpreter that has TRL.
    """
    mode, size, lengths = scenario
    pythons = {"trl_grpo.py": trl}
    pythons |= {name: Path(sys.executable) for name in ("ours_grpo.py", "rllib_ppo.py")}
    with tempfile.TemporaryDirectory(prefix="rllm-peers-") as folder:
        work = make_folder(Path(folder), size, lengths)
        chosen = ways(mode, size, lengths, rows)
        figures = measured(chosen, pythons, Path(folder), laps)
        gradients = check_gradients(chosen, Path(folder)) if mode == "update" else {}
    print(f"measured {mode}, {size}, {lengths}: {work['parameters']:,} parameters, "
          f"{work['completion_tokens']:,} sampled tokens, longest {work['longest']:,}",
          file=sys.stderr)  # fmt: skip
    named = {"mode": mode, "size": size, "lengths": lengths}
    return {**named, **work, "ways": figures, "gradient_difference": gradients}


def main() -> None:
    """Print Markdown tables, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["1M"])
    parser.add_argument("--lengths", nargs="+", choices=LENGTHS, default=LENGTHS)
    parser.add_argument("--rows", nargs="+", type=int, default=[8], help="TRL's rows a pass.")
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result files.")
    options = parser.parse_args()
    # The same torch and transformers on both sides, so that only the trainers differ.
    ours = installed("torch", "transformers")
    trl = python_with("trl", ["trl", *(f"{name}=={v}" for name, v in ours.items())])
    scenarios = [
        compared(scenario, options.rows, options.laps, trl)
        for scenario in itertools.product(options.modes, options.sizes, options.lengths)
    ]
    shown = tables(scenarios)
    print(*(table.markdown() for table in shown.values()), sep="\n\n")
    if options.write:
        versions = {"trl": version_in(trl, "trl"), **installed("ray"), **ours}
        settings = {"laps": options.laps, "threads": 1, "dtype": "float32"}
        for lengths in options.lengths:
            own = [scenario for scenario in scenarios if scenario["lengths"] == lengths]
            name, figures = f"peers_learning_{lengths}", {"scenarios": own}
            print(write_result(name, settings, figures, tables(own), versions))


if __name__ == "__main__":
    main()
