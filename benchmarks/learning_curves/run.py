"""Train with several seeds and keep the curves: one JSON file and one picture a configuration.

    uv run python benchmarks/learning_curves/run.py calculator-grpo-lora --seeds 0 1 2
    uv run python benchmarks/learning_curves/run.py arithmetic-grpo-lora \
        env=rllm/Arithmetic-v0 --seeds 0 1 2

Each seed is a plain `rllm train`, one after the other; its run directory stays under `runs/`.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rllm_learn.tracking import read_metrics

RESULTS = Path(__file__).parent.parent / "results" / "learning_curves"
CURVES = {"eval/pass_at_1": "sampled", "eval/greedy_pass_at_1": "greedy"}


def main() -> None:
    """Run every seed, then write the result and its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("name", help="Of the result, for example calculator-grpo-lora.")
    parser.add_argument("settings", nargs="*", help="KEY=VALUE, as `rllm train` takes them.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_intermixed_args()
    runs = [run_seed(arguments.name, seed, arguments.settings) for seed in arguments.seeds]
    save(arguments.name, " ".join(["rllm train", *arguments.settings]), runs)


def save(name: str, command: str, runs: list[dict[str, Any]]) -> None:
    """Write the result of several seeds and its picture, and print the table."""
    result = {
        "name": name,
        "command": command,
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "runs": runs,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"{name}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    plot(result, RESULTS / f"{name}.png")
    print(f"{target}\n{report(result)}")


def run_seed(name: str, seed: int, settings: list[str]) -> dict[str, Any]:
    """Train once and return the summary with the evaluation curve."""
    run_dir = Path("runs") / name / f"seed-{seed}"
    if not (run_dir / "summary.json").exists():
        rllm = Path(sys.executable).with_name("rllm")
        command = [str(rllm), "train", f"seed={seed}", f"run_dir={run_dir}", *settings]
        subprocess.run(command, check=True)
    return result_of(run_dir)


def result_of(run_dir: Path) -> dict[str, Any]:
    """Return the summary of a finished run with the evaluation curve."""
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    rows = read_metrics(run_dir / "metrics.jsonl")
    curve = [
        {"step": row["step"], **{key: row[key] for key in CURVES if key in row}}
        for row in rows
        if "eval/pass_at_1" in row
    ]
    kept = ("seed", "pass_at_1_before", "pass_at_1_after", "seconds", "cpu_seconds", "steps")
    return {**{key: summary[key] for key in kept}, "curve": curve}


def plot(result: dict[str, Any], path: Path) -> None:
    """Draw a line a seed, sampled and greedy."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for (key, label), style in zip(CURVES.items(), ("-o", "--s"), strict=True):
        for index, run in enumerate(result["runs"]):
            points = [(row["step"], row[key]) for row in run["curve"] if key in row]
            if points:
                axes.plot(
                    *zip(*points, strict=True),
                    style,
                    color=f"C{index}",
                    markersize=4,
                    label=f"seed {run['seed']}, {label}",
                )
    axes.set_xlabel("training step")
    axes.set_ylabel("held-out pass@1")
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(result["command"])
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=110)


def report(result: dict[str, Any]) -> str:
    """Return a Markdown table, a row a seed."""
    lines = ["| seed | before | after | seconds | CPU seconds |", "|---|---|---|---|---|"]
    lines += [
        f"| {run['seed']} | {run['pass_at_1_before']:.3f} | {run['pass_at_1_after']:.3f} | "
        f"{run['seconds']:.0f} | {run['cpu_seconds']:.0f} |"
        for run in result["runs"]
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
