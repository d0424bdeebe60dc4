"""The matrix of runs: tasks, algorithms, seeds, controls, and the file of each row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROWS = Path(__file__).parent.parent / "results" / "learning_curves" / "rows"
ALGORITHMS = ("grpo", "remax", "ppo")
CONTROLS = ("sft", "wrong_sign")
SEEDS = range(5)
CONTROL_SEEDS = range(3)


@dataclass(frozen=True)
class Task:
    """What is learned in a row."""

    title: str
    settings: tuple[str, ...]
    """Of `rllm train`, but for algorithm, model, seed and directory."""
    threshold: float
    """The score up to which CPU seconds and tokens are counted."""
    steps: int
    score: str = "eval/pass_at_1"
    """The held-out figure; for a game the mean over its named opponents."""
    ppo: tuple[str, ...] = ()
    """Further settings of PPO."""


SHARED = (
    "torch_threads=1",
    "tracking.to=[]",
    "tracking.episodes=0",
    "checkpoint.every_steps=1000",
    "eval.greedy=false",
    "eval.every_steps=4",
    "learner.warmup_updates=2",
)
TASKS = {
    "dilemma": Task(
        "self-play of one round of the prisoner's dilemma",
        (
            "env.id=rllm/PrisonersDilemma-v0",
            "env.kwargs.num_rounds=1",
            "players={player_0: {}, player_1: {}}",
            "eval.opponents=[random,expert]",
            "eval.num_tasks=256",
            "model.lora_rank=0",
            "tasks_per_step=8",
            "learner.learning_rate=1e-3",
            "rollout.max_response_length=32",
        ),
        ppo=("algorithm.critic_learning_rate=3e-3", "algorithm.value_clip=null"),
        threshold=0.8,
        steps=12,
        score="eval/score",
    ),
    "calculator": Task(
        "products with a calculator to call, two turns",
        ("env.id=rllm/Calculator-v0", "eval.num_tasks=192", "rollout.max_response_length=96"),
        threshold=0.6,
        steps=16,
    ),
    "arithmetic": Task(
        "sums and differences of three digits, one turn",
        ("env.id=rllm/Arithmetic-v0", "eval.num_tasks=192", "rollout.max_response_length=96"),
        threshold=0.5,
        steps=12,
    ),
    "retry": Task(
        "the same sums with a second attempt after a wrong one, two turns",
        (
            "env.id=rllm/MathRetry-v0",
            "env.kwargs.max_turns=2",
            "env.dataset=runs/retry-train.jsonl",
            "env.eval_dataset=runs/retry-test.jsonl",
            "model.lora_rank=0",
            "eval.num_tasks=192",
            "rollout.max_response_length=160",
            "learner.learning_rate=1e-3",
        ),
        ppo=("algorithm.critic_learning_rate=3e-3",),
        threshold=0.5,
        steps=16,
    ),
}


@dataclass(frozen=True, order=True)
class Row:
    """One training run."""

    task: str
    algorithm: str
    control: str
    """"" for none. The sft control has no algorithm: "sft" stands in its place."""
    seed: int

    @property
    def name(self) -> str:
        """Of its file."""
        parts = [self.task, self.algorithm, self.control if self.control == "wrong_sign" else ""]
        return "-".join([*filter(None, parts), f"seed{self.seed}"])

    @property
    def path(self) -> Path:
        """Its file."""
        return ROWS / f"{self.name}.json"

    @property
    def command(self) -> str:
        """What makes it."""
        algorithm = "" if self.control == "sft" else f" --algorithm {self.algorithm}"
        control = f" --control {self.control}" if self.control else ""
        script = "python benchmarks/learning_curves/matrix.py run"
        return f"{script}{algorithm} --task {self.task} --seed {self.seed}{control}"


def all_rows() -> list[Row]:
    """Return every row, so ordered that few seeds of everything come before many of anything."""
    rounds: list[list[Row]] = [[], [], []]
    for seed in SEEDS:
        late = 0 if seed < 3 else 2
        rounds[late] += [Row(t, a, "", seed) for a in ALGORITHMS for t in TASKS]
        if seed in CONTROL_SEEDS:
            late = 0 if seed < 1 else 1
            rounds[late] += [Row(t, "sft", "sft", seed) for t in TASKS]
            rounds[late] += [Row(t, a, "wrong_sign", seed) for a in ALGORITHMS for t in TASKS]
    return [row for rows in rounds for row in rows]
