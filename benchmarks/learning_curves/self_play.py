"""Self-play in Nim: a policy plays both seats, and is judged against named frozen opponents.

    uv run python benchmarks/learning_curves/self_play.py --seeds 0 1 2

First a tiny model learns by supervised fine-tuning how moves are written, from games of random
legal moves; it knows nothing of playing well. Then each seed is a plain `rllm train` in which the
policy plays itself, from positions of which a part is held out: no training game begins with
those. The opponents that it is judged against are never trained against. Run directories stay
under `runs/`.
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

import numpy as np
from matplotlib.figure import Figure

from rllm_envs.multi_agent import make_aec
from rllm_learn.tracking import read_metrics

RESULTS = Path(__file__).parent.parent / "results" / "learning_curves"
RUNS = Path("runs")
GAME = "rllm/Nim-v0"
KWARGS = {"num_piles": 2, "max_objects": 5}
NUM_GAMES = 4000
HELD_OUT = ([1, 4], [5, 2], [3, 5], [4, 3], [2, 1], [5, 1])
"""Beginnings of games that the policy is judged on."""
GAMES_PER_POSITION = 4
SFT = (
    "model=tiny-untrained",
    "model.lora_rank=0",
    "num_updates=300",
    "batch_sequences=64",
    "learner.learning_rate=3e-3",
    "learner.muon_learning_rate=2e-2",
    "learner.warmup_updates=20",
    "learner.decay=cosine",
)
TRAIN = (
    f"env={GAME}",
    *(f"env.kwargs.{key}={value}" for key, value in KWARGS.items()),
    "players={player_0: {}, player_1: {}}",
    "eval.opponents=[random,expert]",
    "eval.greedy=false",
    "eval.num_tasks=96",
    f"env.dataset={RUNS / 'nim-train.jsonl'}",
    f"env.eval_dataset={RUNS / 'nim-held-out.jsonl'}",
    "model.lora_rank=0",
    "num_steps=24",
    "learner.learning_rate=5e-4",
    "learner.warmup_updates=2",
    "eval.every_steps=8",
    "checkpoint.every_steps=4",
    "tasks_per_step=8",
    "rollout.max_response_length=700",
)


def main() -> None:
    """Make the base model, train every seed, then write the result and its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--name", default="nim-self-play")
    parser.add_argument("settings", nargs="*", help="KEY=VALUE, over those of the script.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_intermixed_args()
    model = base_model()
    write_positions()
    settings = [*TRAIN, *arguments.settings]
    runs = [
        run_seed(arguments.name, seed, [f"model={model}", *settings]) for seed in arguments.seeds
    ]
    result = {
        "name": arguments.name,
        "command": " ".join(["rllm train", *settings]),
        "base_model": f"rllm sft data=<{NUM_GAMES} games of random legal moves> {' '.join(SFT)}",
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "runs": runs,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"{arguments.name}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    plot(result, RESULTS / f"{arguments.name}.png")
    print(f"{target}\n{report(result)}")


def base_model() -> Path:
    """Return the directory of a tiny model that writes legal moves, made if absent."""
    directory = RUNS / "nim-base"
    data = RUNS / "nim-random-games.jsonl"
    if not (directory / "summary.json").exists():
        RUNS.mkdir(exist_ok=True)
        data.write_text("".join(random_games(NUM_GAMES)), encoding="utf-8")
        rllm("sft", f"data={data}", f"run_dir={directory}", *SFT)
    return directory / "model"


def write_positions() -> None:
    """Write the beginnings of training and of held-out games, which the first player can win."""
    sizes = range(1, KWARGS["max_objects"] + 1)
    positions = [[a, b] for a in sizes for b in sizes if a != b]
    training = [{"piles": p} for p in positions if p not in HELD_OUT]
    # The seed is that of the opponents' chance.
    held_out = [{"piles": p, "seed": s} for s in range(GAMES_PER_POSITION) for p in HELD_OUT]
    for name, rows in (("nim-train", training), ("nim-held-out", held_out)):
        lines = [json.dumps(row) + "\n" for row in rows]
        (RUNS / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def random_games(num_games: int) -> list[str]:
    """Return the conversations of both players in games of random legal moves, as JSON lines."""
    env = make_aec(GAME, **KWARGS, split="train")
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(num_games):
        env.reset(seed=seed)
        said: dict[str, list[dict[str, str]]] = {agent: [] for agent in env.possible_agents}
        for agent in env.agent_iter():
            observation, _, terminated, truncated, info = env.last()
            if terminated or truncated:
                env.step(None)
                continue
            action = str(rng.choice(info["action_mask"]))
            said[agent].append({"role": "user", "content": str(observation)})
            said[agent].append({"role": "assistant", "content": action})
            env.step(action)
        rows += [json.dumps({"messages": m}) + "\n" for m in said.values() if m]
    return rows


def run_seed(name: str, seed: int, settings: list[str]) -> dict[str, Any]:
    """Train once and return the scores against each opponent before and after, and the curve."""
    run_dir = RUNS / name / f"seed-{seed}"
    if not (run_dir / "summary.json").exists():
        begun = ["--resume"] if (run_dir / "checkpoints").is_dir() else []
        rllm("train", *begun, f"seed={seed}", f"run_dir={run_dir}", *settings)
    summary = json.loads((run_dir / "summary.json").read_text(encoding="utf-8"))
    rows = read_metrics(run_dir / "metrics.jsonl")
    curve = [
        {key: value for key, value in row.items() if key == "step" or key.startswith("eval/score/")}
        for row in rows
        if "eval/pass_at_1" in row
    ]
    tokens = sum(
        row["train/response_tokens"] * row["train/episodes"]
        for row in rows
        if "train/response_tokens" in row
    )
    kept = ("seed", "seconds", "cpu_seconds", "steps")
    return {
        **{key: summary[key] for key in kept},
        "algorithm": "grpo",
        "tokens": int(tokens),
        "scores_before": {k: v for k, v in curve[0].items() if k != "step"},
        "scores_after": {k: v for k, v in curve[-1].items() if k != "step"},
        "curve": curve,
    }


def rllm(*arguments: str) -> None:
    """Run a command of `rllm`."""
    program = "from rllm_agents.cli import main; main()"
    subprocess.run([sys.executable, "-c", program, *arguments], check=True)


def plot(result: dict[str, Any], path: Path) -> None:
    """Draw each seed's score against each opponent."""
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for opponent, style in (("random", "-o"), ("expert", "--s")):
        for index, run in enumerate(result["runs"]):
            axes.plot(
                [row["step"] for row in run["curve"]],
                [row[f"eval/score/{opponent}"] for row in run["curve"]],
                style,
                color=f"C{index}",
                markersize=4,
                label=f"seed {run['seed']}, against {opponent}",
            )
    axes.set_xlabel("training step")
    axes.set_ylabel("held-out score (win 1, draw 0.5)")
    axes.set_ylim(-0.02, 1.02)
    axes.set_title(f"{result['name']}: both seats, never trained against these opponents")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(path, dpi=110)


def report(result: dict[str, Any]) -> str:
    """Return a Markdown table, a row a seed."""
    lines = ["| seed | opponent | before | after | CPU seconds |", "|---|---|---|---|---|"]
    lines += [
        f"| {run['seed']} | {name} | {run['scores_before'][key]:.3f} | "
        f"{run['scores_after'][key]:.3f} | {run['cpu_seconds']:.0f} |"
        for run in result["runs"]
        for name in ("random", "expert")
        for key in (f"eval/score/{name}",)
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
