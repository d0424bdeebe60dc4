"""ReActAgent: thoughts, actions and observations in plain text."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rllm_agents import AgentExecutionEngine, ReActAgent, ScriptedEngine
from rllm_agents.agents.tool import MALFORMED_CALL
from rllm_agents.errors import UserError
from rllm_envs import GymEnv, ToolEnvironment, math_reward_fn
from rllm_envs.tools import CalculatorTool, Tool


class DistanceTool(Tool):
    """Takes two arguments."""

    name = "distance"
    description = "How far two towns are apart."

    def forward(self, start: str, end: str) -> int:
        """Say it.

        Args:
            start: A town.
            end: Another.
        """
        return len(start) + len(end)


class DoubleTool(Tool):
    """Takes a number."""

    name = "double"
    description = "Twice a number."

    def forward(self, number: int) -> int:
        """Say it.

        Args:
            number: Any.
        """
        return 2 * number


def acted(response: str) -> Any:
    return (
        ReActAgent(tools=["calculator", DistanceTool, DoubleTool])
        .update_from_model(response)
        .action
    )


def called(response: str) -> tuple[str, dict[str, Any]]:
    (call,) = acted(response)
    return call["function"]["name"], json.loads(call["function"]["arguments"])


@pytest.mark.parametrize(
    ("response", "call"),
    [
        (
            'Thought: multiply\nAction: calculator\nAction Input: {"expression": "2*3"}',
            ("calculator", {"expression": "2*3"}),
        ),
        ("Action: calculator\nAction Input: 2 * 3\n", ("calculator", {"expression": "2 * 3"})),
        ("action: calculator[2 * 3]", ("calculator", {"expression": "2 * 3"})),
        ('Action: distance[{"start": "A", "end": "B"}]', ("distance", {"start": "A", "end": "B"})),
        ('Action: calculator["2 * 3"]', ("calculator", {"expression": "2 * 3"})),
        ("Action: double\nAction Input: 21", ("double", {"number": 21})),
        ("Action: nothing", ("nothing", {})),
        # Of several lines; what the model makes up after its action has no effect.
        (
            'Action: calculator\nAction Input: {\n"expression": "1"\n}\nObservation: 7\n'
            "Thought: it is 7\nFinal Answer: 7",
            ("calculator", {"expression": "1"}),
        ),
        (
            "Action: calculator\nAction Input: 1\nAction: distance\nAction Input: 2",
            ("calculator", {"expression": "1"}),
        ),
        (
            "<think>Action: distance\nFinal Answer: no</think>\nAction: calculator[1]",
            ("calculator", {"expression": "1"}),
        ),
    ],
)
def test_the_first_action_is_one_call(response: str, call: tuple[str, dict[str, Any]]) -> None:
    assert called(response) == call


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ("It is 6.", "write 'Action: NAME'"),
        ("", "write 'Action: NAME'"),
        ("Action Input: {}", "write 'Action: NAME'"),
        ("Thought: hm\nObservation: 3\nAction: calculator[1]", "write 'Action: NAME'"),
        ('Action: calculator\nAction Input: {"expression": ', "not valid JSON"),
        ("Action: distance\nAction Input: A, B", "must be a JSON object"),
        ("Action: distance[[1, 2]]", "must be a JSON object"),
        ("Action: x\nAction Input: " + "[" * 100_000, "must be a JSON object"),
    ],
)
def test_what_cannot_be_read_counts_as_a_turn_and_is_told(response: str, problem: str) -> None:
    agent = ReActAgent(tools=["calculator", DistanceTool])
    (call,) = agent.update_from_model(response).action
    assert call["function"]["name"] == MALFORMED_CALL
    agent.update_from_env({"tool_outputs": {call["id"]: "Error: unknown"}}, 0.0, False, {})
    told = agent.chat_completions[-1]
    assert told["role"] == "user"
    assert told["content"].startswith("Observation: Error: ") and problem in told["content"]
    # A call that can be read is not blamed for the one before.
    (call,) = agent.update_from_model("Action: calculator[1]").action
    agent.update_from_env({"tool_outputs": {call["id"]: "1"}}, 0.0, False, {})
    assert agent.chat_completions[-1]["content"] == "Observation: 1"


@pytest.mark.parametrize("tools", [None, ["calculator"]])
def test_a_final_answer_is_the_action(tools: list[str] | None) -> None:
    agent = ReActAgent(tools=tools)
    action = agent.update_from_model("Thought: done\nFinal Answer: \\boxed{6}\nor so").action
    assert action == "\\boxed{6}\nor so"
    assert agent.trajectory.steps[-1].thought == "done"


def test_without_tools_the_action_is_text() -> None:
    agent = ReActAgent()
    agent.update_from_env({"question": "Find it."}, 0.0, False, {})
    said = "Thought: look\nAction: <search>Ann Bell</search>\nObservation: made up"
    assert agent.update_from_model(said).action == "<search>Ann Bell</search>"
    agent.update_from_env({"question": "[1] Ann Bell"}, 0.0, False, {})
    assert agent.update_from_model("just \\boxed{2}").action == "just \\boxed{2}"
    agent.update_from_env({"question": ""}, 1.0, True, {})
    contents = [message["content"] for message in agent.chat_completions[1:]]
    assert contents == ["Find it.", said, "Observation: [1] Ann Bell", "just \\boxed{2}"]
    agent.reset()
    assert [m["role"] for m in agent.chat_completions] == ["system"]


def test_tools_are_presented_by_the_names_that_they_are_called_by() -> None:
    agent = ReActAgent("You compute.", tool_map={"calc": CalculatorTool})
    text = agent.chat_completions[0]["content"]
    assert text.startswith("You compute.\n\n") and '"name": "calc"' in text
    with pytest.raises(UserError, match="tools of ReActAgent"):
        ReActAgent(tools=["no such tool"])


def test_it_uses_a_tool_of_an_environment_and_answers() -> None:
    script = ["6?", "Action: calculator[47 * 83]", "Thought: so\nFinal Answer: \\boxed{3901}"]
    with AgentExecutionEngine(
        agent_class=ReActAgent,
        agent_args={"tools": ["calculator"]},
        env_class=ToolEnvironment,
        env_args={"tools": ["calculator"], "reward_fn": math_reward_fn},
        rollout_engine=ScriptedEngine(script),
    ) as engine:
        tasks = [{"question": "What is 47 * 83?", "answer": "3901"}]
        (episode,) = asyncio.run(engine.execute_tasks(tasks))
    assert (episode.error, episode.reward, len(episode.steps)) == (None, 1.0, 3)
    shown = [m["content"] for m in episode.steps[-1].chat_completions if m["role"] == "user"]
    assert shown[0] == "What is 47 * 83?"
    assert shown[1].startswith("Observation: Error: write 'Action: NAME'")
    assert shown[2] == "Observation: 3901"


def test_it_acts_in_a_text_environment() -> None:
    def respond(messages: Any) -> str:
        said = messages[-1]["content"]
        if said.startswith("Observation: Result: "):
            return f"Thought: there it is\nFinal Answer: \\boxed{{{said.split()[-1]}}}"
        expression = said.removeprefix("What is ").partition("?")[0]
        return f"Thought: compute\nAction: <calc>{expression}</calc>"

    with AgentExecutionEngine(
        agent_class=ReActAgent,
        env_class=GymEnv,
        env_args={"env_id": "rllm/Calculator-v0"},
        rollout_engine=ScriptedEngine(respond),
    ) as engine:
        episodes = asyncio.run(engine.execute_tasks([{"seed": 1}, {"seed": 2}]))
    assert [(e.reward, len(e.steps)) for e in episodes] == [(1.0, 2), (1.0, 2)]
