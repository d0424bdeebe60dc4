"""The field's quick start: an agent with a Python tool on AIME 2024, over any server.

    vllm serve Qwen/Qwen3-4B --port 30000 --logprobs-mode processed_logprobs
    uv run python examples/quick_start.py --model Qwen/Qwen3-4B --data aime2024/test.jsonl

The data file is registered once, as `aime2024`; its rows need `problem` (or `question`) and
`answer`. The Python tool is a process with limits and no sandbox: see docs/environments.md.
"""

from __future__ import annotations

import argparse
import asyncio

from transformers import AutoTokenizer

from rllm_agents import AgentExecutionEngine, ToolAgent, compute_pass_at_k
from rllm_envs import Dataset, DatasetRegistry, ToolEnvironment, math_reward_fn


def register(path: str) -> None:
    """Register a file of problems under the names that agents and reward functions read."""
    rows = [
        {"question": row.get("question") or row["problem"], "ground_truth": row["answer"]}
        for row in Dataset.from_file(path)
    ]
    DatasetRegistry.register_dataset("aime2024", rows, "test")


def main() -> None:
    """Play every problem eight times and print pass@1 and pass@8."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--model", default="Qwen/Qwen3-4B", help="As the server names it.")
    parser.add_argument("--base-url", default="http://localhost:30000/v1")
    parser.add_argument("--data", help="A JSONL file of problems, registered as aime2024.")
    arguments = parser.parse_args()
    if arguments.data:
        register(arguments.data)

    engine = AgentExecutionEngine(
        agent_class=ToolAgent,
        agent_args={"tools": ["python"], "parser_name": "qwen"},
        env_class=ToolEnvironment,
        env_args={"tools": ["python"], "reward_fn": math_reward_fn},
        engine_name="openai",
        rollout_engine_args={"base_url": arguments.base_url},
        tokenizer=AutoTokenizer.from_pretrained(arguments.model),
        sampling_params={"temperature": 0.6, "top_p": 0.95, "model": arguments.model},
        max_response_length=16384,
        max_prompt_length=2048,
        n_parallel_agents=64,
    )

    test_dataset = DatasetRegistry.load_dataset("aime2024", "test")
    tasks = test_dataset.repeat(n=8)  # For pass@k evaluation

    results = asyncio.run(engine.execute_tasks(tasks))
    compute_pass_at_k(results)
    engine.close()


if __name__ == "__main__":
    main()
