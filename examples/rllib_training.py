"""Train the tiny model over RLlib: two learners, an env runner and an engine on two cores.

    uv run python examples/rllib_training.py
    uv run python examples/rllib_training.py --learners 0 --iterations 10

The same loop as `rllm train`, with every part in a process of its own.
"""

from __future__ import annotations

import argparse

import ray

from rllm_learn.rllib import GRPOConfig


def main() -> None:
    """Train, print a line an iteration, and write the adapter."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--learners", type=int, default=2)
    parser.add_argument("--env-runners", type=int, default=1)
    parser.add_argument("--engines", type=int, default=1)
    parser.add_argument("--engine", default="transformers", help="transformers or vllm")
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="runs/rllib", help="Where the adapter goes.")
    arguments = parser.parse_args()

    ray.init(include_dashboard=False, log_to_driver=False)
    config = (
        GRPOConfig()
        .environment("rllm/Calculator-v0")
        .model("tiny")
        .lora(rank=8)
        .engine(arguments.engine, num_engines=arguments.engines)
        .env_runners(num_env_runners=arguments.env_runners)
        .learners(num_learners=arguments.learners)
        .training(lr=3e-3, group_size=8, tasks_per_step=32)
        .evaluation(evaluation_interval=10, evaluation_duration=512)
        .debugging(seed=arguments.seed)
    )
    algo = config.build_algo()
    print(f"before: {algo.evaluate()['env_runners']['pass_at_1']:.3f}")
    for _ in range(arguments.iterations):
        result = algo.train()
        line = f"{result['training_iteration']:3} "
        line += f"return {result['env_runners']['episode_return_mean']:.3f}"
        if "evaluation" in result:
            line += f"  held-out {result['evaluation']['env_runners']['pass_at_1']:.3f}"
        print(line, flush=True)
    print(f"adapter: {algo.save_policy(arguments.out)}")
    algo.stop()


if __name__ == "__main__":
    main()
