"""Train one's own agent in one's own environment: a minute on two cores.

python train.py                     # in this directory, with rllm-learn installed
python train.py num_steps=5         # settings as `rllm train` takes them
"""

from __future__ import annotations

import sys

from sums import SelfCorrectingAgent, SumEnv

from rllm_learn import AgentTrainer
from rllm_learn.config import load_config


def main() -> None:
    """Train on three-digit sums and print what came of it."""
    tasks = [{"left": a, "right": b} for a in range(100, 1000, 23) for b in range(100, 1000, 17)]
    settings = ["num_steps=20", "eval.num_tasks=256", *sys.argv[1:]]
    trainer = AgentTrainer(
        agent_class=SelfCorrectingAgent,
        env_class=SumEnv,
        config=load_config("grpo_trainer", settings),
        train_dataset=tasks,
        env_args={"max_attempts": 2},
    )
    summary = trainer.train()
    print(f"{summary['pass_at_1_before']:.3f} -> {summary['pass_at_1_after']:.3f}")


if __name__ == "__main__":
    main()
