"""Agents of the OpenAI Agents SDK, LangGraph and smolagents, played and recorded unchanged.

Each is a function of an OpenAI address, a key and a task that returns a reward; `AgentProgram`
makes a player of it, which an `AgentExecutionEngine` evaluates and an `AgentTrainer` trains. To see
what is recorded without a large model, an engine recites here: its words are written beforehand
and come out as token ids. Take `engine_name="vllm"` and a model instead to play for real.

Install what you want to try, then run it:

    pip install rllm-agents openai-agents langgraph langchain-openai 'smolagents[openai]'
    python agents_of_other_frameworks.py
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Mapping
from typing import Any

from transformers import AutoTokenizer

from rllm_agents import AgentExecutionEngine, Completion, Episode, GenerationRequest
from rllm_agents.gateway import AgentProgram
from rllm_agents.models import TINY
from rllm_envs import RewardOutput, math_reward_fn

TASK = {"question": "What is 47 * 83?", "answer": 3901}
INSTRUCTIONS = "Use the tool, then answer in \\boxed{}."


class RecitingEngine:
    """Calls the tool, and answers once its result is there."""

    weights_version = 0
    max_model_length = 65_536

    def __init__(self, tokenizer: Any) -> None:
        """Write with this tokenizer."""
        self._tokenizer = tokenizer

    async def generate(self, request: GenerationRequest) -> Completion:
        """Say what comes next in the conversation."""
        knows = any("3901" in message["content"] for message in request.messages[1:])
        ends_by_tool = '"final_answer"' in request.messages[0]["content"]
        call: dict[str, Any] = {"name": "multiply", "arguments": {"a": 47, "b": 83}}
        if knows and ends_by_tool:
            call = {"name": "final_answer", "arguments": {"answer": "\\boxed{3901}"}}
        text = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
        if knows and not ends_by_tool:
            text = "It is \\boxed{3901}."
        ids = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        ids.append(self._tokenizer.eos_token_id)
        return Completion(text, "stop", tuple(ids), (0.0,) * len(ids))

    async def load_weights(self, tensors: Mapping[str, Any], *, version: int) -> None:
        """Learn nothing."""

    def close(self) -> None:
        """Hold nothing."""


async def agents_sdk(base_url: str, api_key: str, task: dict[str, Any]) -> RewardOutput:
    """An agent of the OpenAI Agents SDK."""
    from openai import AsyncOpenAI

    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )

    @function_tool
    def multiply(a: int, b: int) -> int:
        """Multiply two numbers."""
        return a * b

    set_tracing_disabled(True)
    async with AsyncOpenAI(base_url=base_url, api_key=api_key) as client:
        agent = Agent(
            name="calculator",
            instructions=INSTRUCTIONS,
            tools=[multiply],
            model=OpenAIChatCompletionsModel(model="any", openai_client=client),
        )
        result = await Runner.run(agent, task["question"])
    return math_reward_fn(task, result.final_output)


async def langgraph(base_url: str, api_key: str, task: dict[str, Any]) -> RewardOutput:
    """A graph of LangGraph: the model and its tools take turns."""
    from langchain_core.messages import HumanMessage, SystemMessage
    from langchain_core.tools import tool
    from langchain_openai import ChatOpenAI
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode, tools_condition

    @tool
    def multiply(a: int, b: int) -> int:
        """Multiply two numbers."""
        return a * b

    model = ChatOpenAI(model="any", base_url=base_url, api_key=api_key).bind_tools([multiply])

    async def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", ToolNode([multiply]))
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition)
    graph.add_edge("tools", "think")
    messages = [SystemMessage(INSTRUCTIONS), HumanMessage(task["question"])]
    result = await graph.compile().ainvoke({"messages": messages})
    return math_reward_fn(task, result["messages"][-1].content)


def smolagents(base_url: str, api_key: str, task: dict[str, Any]) -> RewardOutput:
    """An agent of smolagents, which is not asynchronous: it runs in a thread."""
    from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool

    @tool
    def multiply(a: int, b: int) -> int:
        """Multiply two numbers.

        Args:
            a: The first.
            b: The second.
        """
        return a * b

    # Calls cannot be forced without changing what is sampled, so that they are left to the model.
    model = OpenAIServerModel("any", api_base=base_url, api_key=api_key, tool_choice="auto")
    agent = ToolCallingAgent(tools=[multiply], model=model, verbosity_level=LogLevel.OFF)
    return math_reward_fn(task, str(agent.run(task["question"])))


FRAMEWORKS = {"agents": agents_sdk, "langgraph": langgraph, "smolagents": smolagents}
"""Module that must be importable -> program."""


def play(program: Any, num_episodes: int = 4) -> list[Episode]:
    """Play the task several times at once."""
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    with AgentExecutionEngine(
        agent_class=AgentProgram(program),
        rollout_engine=RecitingEngine(tokenizer),
        tokenizer=tokenizer,
        max_prompt_length=16_384,
        max_response_length=16_384,
    ) as engine:
        return asyncio.run(engine.execute_tasks([TASK] * num_episodes))


def main() -> None:
    """Play with every framework that is installed."""
    for module, program in FRAMEWORKS.items():
        if importlib.util.find_spec(module) is None:
            print(f"{module}: not installed")
            continue
        for episode in play(program)[:1]:
            records = episode.trajectory.token_records
            turns = [len(record.turns) for record in records]
            print(f"{module}: reward {episode.reward}, {len(episode.steps)} calls")
            print(f"  turns in each token record: {turns}; error: {episode.error}")


if __name__ == "__main__":
    main()
