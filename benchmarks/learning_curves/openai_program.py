"""Train agents that know nothing but the `openai` client, through the gateway, on the main job.

The agent is a program: it plays the calculator environment by itself and asks an OpenAI address for
each turn. What it samples is recorded by the gateway and trained on as the turns of `ChatAgent` are
in `rllm train`, whose curves are in `calculator-grpo-lora.json` beside the result.

    uv run --with openai python benchmarks/learning_curves/openai_program.py --seeds 0 1 2
    uv run --with openai-agents python benchmarks/learning_curves/openai_program.py \
        --framework agents --seeds 0
    uv run --with langgraph --with langchain-openai \
        python benchmarks/learning_curves/openai_program.py --framework langgraph --seeds 0
"""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import Any

import httpx
from openai import AsyncOpenAI
from run import result_of, save

from rllm_agents.gateway import AgentProgram
from rllm_envs import GymEnv
from rllm_learn import AgentTrainer


@functools.cache
def shared_client() -> AsyncOpenAI:
    """Return the client whose connections all episodes use; each has an address of its own."""
    # A busy machine may take longer than the five seconds that the client gives a connection.
    return AsyncOpenAI(base_url="http://unset.invalid", api_key="unset", timeout=600.0)


async def openai_client(base_url: str, api_key: str, task: dict[str, Any]) -> float:
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


async def agents_sdk(base_url: str, api_key: str, task: dict[str, Any]) -> float:
    """Play with an agent of the OpenAI Agents SDK, one run of it for each turn."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled

    set_tracing_disabled(True)
    client = shared_client().with_options(base_url=base_url, api_key=api_key)
    model = OpenAIChatCompletionsModel(model="any", openai_client=client)
    agent = Agent(name="player", model=model)
    env = GymEnv.from_dict(task)
    observation, _ = env.reset()
    history: list[Any] = []
    reward, done = 0.0, False
    while not done:
        history.append({"role": "user", "content": observation["question"]})
        result = await Runner.run(agent, history)
        history = result.to_input_list()
        observation, reward, done, _ = env.step(str(result.final_output))
    return reward


@functools.cache
def shared_connections() -> dict[str, Any]:
    """Return the clients of HTTP whose connections all episodes of LangGraph use."""
    return {
        "http_client": httpx.Client(timeout=600.0),
        "http_async_client": httpx.AsyncClient(timeout=600.0),
    }


async def langgraph(base_url: str, api_key: str, task: dict[str, Any]) -> float:
    """Play with a graph of LangGraph: the model and the environment take turns."""
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, MessagesState, StateGraph

    class State(MessagesState):
        reward: float
        done: bool

    model = ChatOpenAI(
        model="any", base_url=base_url, api_key=api_key, timeout=600.0, **shared_connections()
    )
    env = GymEnv.from_dict(task)

    async def think(state: State) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def act(state: State) -> dict[str, Any]:
        observation, reward, done, _ = env.step(str(state["messages"][-1].content))
        more = [] if done else [HumanMessage(observation["question"])]
        return {"messages": more, "reward": reward, "done": done}

    graph = StateGraph(State)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_edge("think", "act")
    graph.add_conditional_edges("act", lambda state: END if state["done"] else "think")
    observation, _ = env.reset()
    first = HumanMessage(observation["question"])
    result = await graph.compile().ainvoke({"messages": [first], "reward": 0.0, "done": False})
    return result["reward"]


FRAMEWORKS = {"openai": openai_client, "agents": agents_sdk, "langgraph": langgraph}


def main() -> None:
    """Train with every seed, then write the result and its picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--framework", choices=FRAMEWORKS, default="openai")
    arguments = parser.parse_args()
    name = f"calculator-{arguments.framework}-program"
    program = AgentProgram(FRAMEWORKS[arguments.framework])
    runs = []
    for seed in arguments.seeds:
        run_dir = Path("runs") / name / f"seed-{seed}"
        if not (run_dir / "summary.json").exists():
            config = {"seed": seed, "run_dir": str(run_dir), "num_steps": arguments.steps}
            is_stopped = (run_dir / "config.yaml").exists()
            AgentTrainer(agent_class=program, config=config, resume=is_stopped).train()
        runs.append(result_of(run_dir))
    seeds = " ".join(map(str, arguments.seeds))
    script = "python benchmarks/learning_curves/openai_program.py"
    options = f"--framework {arguments.framework} --seeds {seeds} --steps {arguments.steps}"
    save(name, f"{script} {options}", runs)


if __name__ == "__main__":
    main()
