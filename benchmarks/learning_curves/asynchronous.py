"""Train in turn and asynchronously from the same seeds; compare what is learned and what waits.

    uv run python benchmarks/learning_curves/asynchronous.py num_steps=40 --seeds 0 1

Runs of one seed follow each other, so that they see the same machine. Sampler and learner share it:
where cores are few, read CPU seconds and idle shares, not the clock. Each run is a plain
`rllm train`; its directory stays under `runs/asynchronous/`.
"""

from __future__ import annotations

import argparse
import json
import platform
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any

from run import RESULTS, run_seed

from rllm_learn.tracking import read_metrics

NAME = "asynchronous"


def main() -> None:
    """Run all, write the result and print it as a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("settings", nargs="*", help="KEY=VALUE, as `rllm train` takes them.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--staleness", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_intermixed_args()
    runs = [
        train(bound, seed, arguments.settings)
        for seed in arguments.seeds
        for bound in arguments.staleness
    ]
    result = {
        "name": NAME,
        "command": " ".join(["rllm train rollout.max_staleness=K", *arguments.settings]),
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "runs": runs,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"{NAME}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{target}\n{table(runs)}")


def train(max_staleness: int, seed: int, settings: list[str]) -> dict[str, Any]:
    """Train once and return what came of it."""
    name = f"{NAME}/staleness-{max_staleness}"
    own = [f"rollout.max_staleness={max_staleness}", *settings]
    found = run_seed(name, seed, own)
    rows = read_metrics(Path("runs") / name / f"seed-{seed}" / "metrics.jsonl")
    # The first step has nobody to wait for, and compiles and allocates.
    steps = [row for row in rows if "time/step_seconds" in row][1:]
    return {"max_staleness": max_staleness, **found, **figures(steps)}


def figures(steps: list[dict[str, Any]]) -> dict[str, float]:
    """Return means over steps: of shares of time, and of staleness."""
    seconds = sum(row["time/step_seconds"] for row in steps)
    waits = sum(row["time/sample_seconds"] for row in steps) / seconds
    idle = [row.get("async/sampler_idle", 1.0 - waits) for row in steps]
    return {
        "steps_seconds": round(seconds, 2),
        "learner_idle": round(waits, 3),
        "sampler_idle": round(fmean(idle), 3),
        **{
            name: round(fmean(row.get(f"async/{name}", 0.0) for row in steps), 4)
            for name in ("staleness_mean", "stale_tokens", "mixed_episodes")
        },
        "staleness_max": max(row.get("async/staleness_max", 0.0) for row in steps),
        "sampler_kl": fmean(row.get("learner/sampler_kl", 0.0) for row in steps),
    }


def table(runs: list[dict[str, Any]]) -> str:
    """Return a Markdown table, a row a run."""
    columns = {
        "max_staleness": "d",
        "seed": "d",
        "pass_at_1_before": ".3f",
        "pass_at_1_after": ".3f",
        "seconds": ".0f",
        "cpu_seconds": ".0f",
        "steps_seconds": ".0f",
        "learner_idle": ".2f",
        "sampler_idle": ".2f",
        "staleness_mean": ".2f",
        "staleness_max": ".0f",
        "mixed_episodes": ".2f",
        "sampler_kl": ".1e",
    }
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(format(r[k], f) for k, f in columns.items())} |" for r in runs]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
