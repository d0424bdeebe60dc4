"""Train an agent that searches: questions of HotpotQA, a corpus on this machine, PPO.

    RLLM_DATA_DIR=... uv run python examples/search_agent.py num_steps=3 tasks_per_step=4

The questions are read from hotpotqa/dev.jsonl in RLLM_DATA_DIR, which holds no passages: a small
corpus is generated beside the run, some passages of which name the answers. Settings are those of
`rllm train`, in Hydra's grammar.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import hydra

from rllm_agents import ToolAgent
from rllm_envs import (
    Dataset,
    DatasetRegistry,
    LocalRetrievalTool,
    ToolEnvironment,
    search_reward_fn,
)
from rllm_learn import AgentTrainer

NAME = "hotpotqa_combined"
NUM_QUESTIONS = 512
SEARCH_SYSTEM_PROMPT = (
    "Answer the question in a few words. Search where you do not know, and end with the answer "
    "in <answer></answer>."
)


def register(questions: Path) -> None:
    """Register short questions, every eighth one held out."""
    rows = [row for row in Dataset.from_file(questions) if len(row["question"]) < 120]
    chosen = rows[:NUM_QUESTIONS]
    test = [dict(row) for row in chosen[7::8]]
    train = [dict(row) for index, row in enumerate(chosen) if index % 8 != 7]
    DatasetRegistry.register_dataset(NAME, train, "train")
    DatasetRegistry.register_dataset(NAME, test, "test")


def write_corpus(path: Path) -> None:
    """Write two passages for each question: one that gives its answer, one that does not."""
    with path.open("w", encoding="utf-8") as file:
        for split in ("train", "test"):
            for row in DatasetRegistry.load_dataset(NAME, split):
                about = row["question"].rstrip("?")
                for text in (f"{about}: {row['answer']}.", f"Much has been asked about {about}."):
                    file.write(json.dumps({"text": text}) + "\n")


@hydra.main(config_path="pkg://rllm_learn.config", config_name="ppo_trainer", version_base=None)
def main(config: Any) -> None:
    """Register questions and corpus where they are not there, then train."""
    if not DatasetRegistry.dataset_exists(NAME):
        data_dir = os.environ.get("RLLM_DATA_DIR")
        if not data_dir:
            raise SystemExit("set RLLM_DATA_DIR to the directory that holds hotpotqa/dev.jsonl")
        register(Path(data_dir) / "hotpotqa" / "dev.jsonl")
    if "RLLM_CORPUS" not in os.environ:
        corpus = Path("hotpotqa-corpus.jsonl").absolute()
        write_corpus(corpus)
        os.environ["RLLM_CORPUS"] = str(corpus)

    train_dataset = DatasetRegistry.load_dataset(NAME, "train")
    val_dataset = DatasetRegistry.load_dataset(NAME, "test")

    tool_map = {"local_search": LocalRetrievalTool}
    env_args = {
        "max_steps": 20,
        "tool_map": tool_map,
        "reward_fn": search_reward_fn,
    }
    agent_args = {
        "system_prompt": SEARCH_SYSTEM_PROMPT,
        "tool_map": tool_map,
        "parser_name": "qwen",
    }
    trainer = AgentTrainer(
        agent_class=ToolAgent,
        env_class=ToolEnvironment,
        config=config,
        train_dataset=train_dataset,
        val_dataset=val_dataset,
        agent_args=agent_args,
        env_args=env_args,
    )
    trainer.train()


if __name__ == "__main__":
    main()
