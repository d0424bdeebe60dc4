"""Self-play: a policy plays all seats of a game, and is judged against named frozen opponents.

    uv run python benchmarks/learning_curves/self_play.py dilemma --seeds 0 1 2
    uv run python benchmarks/learning_curves/self_play.py nim num_steps=200 --seeds 0 1 2

First a tiny model learns by supervised fine-tuning how moves are written, from games of random
legal moves; it knows nothing of playing well. Then each seed is what `rllm train` does with the
settings that the result names: the policy plays itself. It never trains against the opponents
that it is judged against. Run directories stay under `runs/`; what is there is not run again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from rllm_agents import run_match
from rllm_agents.match import MatchSetting
from rllm_learn import AgentTrainer
from rllm_learn.config import SFTConfig, TrainerConfig, load_config, to_settings
from rllm_learn.sft import train_supervised
from rllm_learn.tracking import read_metrics

RESULTS = Path(__file__).parent.parent / "results" / "learning_curves"
RUNS = Path("runs")
SFT = (
    "model.path=tiny-untrained",
    "model.lora_rank=0",
    "learner.learning_rate=3e-3",
    "learner.muon_learning_rate=2e-2",
    "learner.warmup_updates=20",
    "learner.decay=cosine",
    "tracking.to=[]",
)
TRAIN = (
    "players={player_0: {}, player_1: {}}",
    "eval.opponents=[random,expert]",
    "eval.greedy=false",
    "eval.num_tasks=64",
    "model.lora_rank=0",
    "tasks_per_step=8",
    "learner.warmup_updates=2",
    "tracking.to=[]",
)


@dataclass(frozen=True)
class Game:
    """What is played, and how the model is prepared for it."""

    id: str
    kwargs: dict[str, int]
    num_games: int
    """Games of random moves to imitate."""
    sft: tuple[str, ...]
    train: tuple[str, ...]

    @property
    def settings(self) -> list[str]:
        """Those of `rllm train`, but for model, seed and directory."""
        kwargs = [f"env.kwargs.{key}={value}" for key, value in self.kwargs.items()]
        return [f"env.id={self.id}", *kwargs, *TRAIN, *self.train]


GAMES = {
    "dilemma": Game(
        "rllm/PrisonersDilemma-v0",
        {"num_rounds": 1},
        num_games=200,
        sft=("num_updates=80", "batch_sequences=32"),
        train=("num_steps=12", "eval.every_steps=4", "learner.learning_rate=1e-3"),
    ),
    "nim": Game(
        "rllm/Nim-v0",
        {"num_piles": 2, "max_objects": 7},
        num_games=4000,
        sft=("num_updates=300", "batch_sequences=64"),
        train=(
            "num_steps=100",
            "eval.every_steps=20",
            "learner.learning_rate=3e-4",
            "tasks_per_step=32",
            "rollout.max_response_length=700",
        ),
    ),
}


def main() -> None:
    """Make the base model, train every seed, then write the result and its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("game", choices=GAMES)
    parser.add_argument("settings", nargs="*", help="KEY=VALUE, over those of the script.")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    arguments = parser.parse_intermixed_args()
    game, name = GAMES[arguments.game], f"{arguments.game}-self-play"
    model = base_model(arguments.game, game)
    settings = [*game.settings, *arguments.settings]
    runs = [run_seed(name, seed, [f"model.path={model}", *settings]) for seed in arguments.seeds]
    result = {
        "name": name,
        "command": " ".join(["rllm train", *settings]),
        "base_model": f"rllm sft data=<{game.num_games} games of random legal moves> "
        + " ".join([*SFT, *game.sft]),
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "runs": runs,
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"{name}.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    plot(result, RESULTS / f"{name}.png")
    print(f"{target}\n{report(result)}")


def base_model(name: str, game: Game) -> Path:
    """Return the directory of a tiny model that writes legal moves, made if absent."""
    directory, data = RUNS / f"{name}-base", RUNS / f"{name}-random-games.jsonl"
    if not (directory / "summary.json").exists():
        RUNS.mkdir(exist_ok=True)
        rows = asyncio.run(random_games(game))
        data.write_text("".join(rows), encoding="utf-8")
        given = [f"data={data}", f"run_dir={directory}", *SFT, *game.sft]
        train_supervised(to_settings(load_config("sft", given), SFTConfig, config_name="sft"))
    return directory / "model"


async def random_games(game: Game) -> list[str]:
    """Return the conversations of all players in games of random legal moves, as JSON lines."""
    rows = []
    setting = MatchSetting(env_kwargs={**game.kwargs, "split": "train"})
    players = {"player_0": "random", "player_1": "random"}
    for seed in range(game.num_games):
        episode = await run_match(game.id, players, seed=seed, setting=setting)
        for trajectory in episode.trajectories:
            messages = []
            for step in trajectory.steps:
                messages.append({"role": "user", "content": str(step.observation)})
                messages.append({"role": "assistant", "content": str(step.action)})
            if messages:
                rows.append(json.dumps({"messages": messages}) + "\n")
    setting.threads.close()
    return rows


def run_seed(name: str, seed: int, settings: list[str]) -> dict[str, Any]:
    """Train once and return the scores against each opponent before and after, and the curve."""
    run_dir = RUNS / name / f"seed-{seed}"
    if not (run_dir / "summary.json").exists():
        given = [f"seed={seed}", f"run_dir={run_dir}", *settings]
        config = load_config("grpo_trainer", given)
        resume = (run_dir / "checkpoints").is_dir()
        checked = to_settings(config, TrainerConfig, config_name="grpo_trainer")
        AgentTrainer(config=checked, resume=resume).train()
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
