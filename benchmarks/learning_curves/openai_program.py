"""Train an agent that knows nothing but the `openai` client, through the gateway, on the main job.

The agent is a program: it plays the calculator environment by itself and asks an OpenAI address for
each turn. What it samples is recorded by the gateway and trained on as the turns of `ChatAgent` are
in `rllm train`, whose curves are in `calculator-grpo-lora.json` beside the result. Needs `openai`.

    uv run --with openai python benchmarks/learning_curves/openai_program.py --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from run import result_of, save

from rllm_agents.gateway import AgentProgram
from rllm_envs import GymEnv
from rllm_learn import AgentTrainer

NAME = "calculator-openai-program"


@functools.cache
def shared_client() -> AsyncOpenAI:
    """Return the client whose connections all episodes use; each has an address of its own."""
    # A busy machine may take longer than the five seconds that the client gives a connection.
    return AsyncOpenAI(base_url="http://unset.invalid", api_key="unset", timeout=600.0)


async def play(base_url: str, api_key: str, task: dict[str, Any]) -> float:
    """Play one task to its end with whatever model is at an address; return the reward."""
    client = shared_client().with_options(base_url=base_url, api_key=api_key)
    env = GymEnv.from_dict(task)
    observation, _ = env.reset()
    messages: list[Any] = []
    reward, done = 0.0, False
    while not done:
        messages.append({"role": "user", "content": observation["question"]})
        reply = await client.chat.completions.create(model="any", messages=messages)
        choice = reply.choices[0]
        if choice.finish_reason == "length":
            return 0.0  # nobody acts on half a sentence
        text = choice.message.content or ""
        messages.append({"role": "assistant", "content": text})
        observation, reward, done, _ = env.step(text)
    return reward


def main() -> None:
    """Train with every seed, then write the result and its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    runs = []
    for seed in arguments.seeds:
        run_dir = Path("runs") / NAME / f"seed-{seed}"
        if not (run_dir / "summary.json").exists():
            config = {"seed": seed, "run_dir": str(run_dir), "num_steps": arguments.steps}
            is_stopped = (run_dir / "config.yaml").exists()
            AgentTrainer(agent_class=AgentProgram(play), config=config, resume=is_stopped).train()
        runs.append(result_of(run_dir))
    seeds = " ".join(map(str, arguments.seeds))
    script = "python benchmarks/learning_curves/openai_program.py"
    save(NAME, f"{script} --seeds {seeds} --steps {arguments.steps}", runs)


if __name__ == "__main__":
    main()
