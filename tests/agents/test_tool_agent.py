from __future__ import annotations

import json

import pytest

from rllm_agents import ToolAgent, UserError
from rllm_agents.agents.tool import MALFORMED_CALL
from rllm_envs.tools import CalculatorTool

CALL = '<tool_call>{"name": "calculator", "arguments": {"expression": "2*3"}}</tool_call>'


def test_tools_are_presented_in_the_system_message() -> None:
    agent = ToolAgent(system_prompt="Use tools.", tools=["calculator"], parser_name="qwen")
    (message,) = agent.chat_completions
    assert message["role"] == "system"
    assert message["content"].startswith("Use tools.")
    assert '"name": "calculator"' in message["content"]


def test_a_tool_map_names_the_tools() -> None:
    agent = ToolAgent(tool_map={"calc": CalculatorTool})
    assert '"name": "calc"' in agent.chat_completions[0]["content"]


def test_a_call_becomes_an_action_in_the_form_of_the_openai_api() -> None:
    agent = ToolAgent(tools=["calculator"])
    (call,) = agent.update_from_model(f"Let me see. {CALL}").action
    assert call["type"] == "function"
    assert call["function"]["name"] == "calculator"
    assert json.loads(call["function"]["arguments"]) == {"expression": "2*3"}


def test_a_response_without_a_call_is_the_final_answer() -> None:
    assert ToolAgent().update_from_model("It is 6.").action == "It is 6."


def test_results_come_back_in_the_order_of_the_calls_and_by_their_ids() -> None:
    agent = ToolAgent(tools=["calculator"])
    first, second = agent.update_from_model(CALL + CALL).action
    agent.update_from_env(
        {"tool_outputs": {second["id"]: "two", first["id"]: "one"}}, 0.0, False, {}
    )
    shown = agent.chat_completions[-2:]
    assert [m["content"] for m in shown] == ["one", "two"]
    assert [m["tool_call_id"] for m in shown] == [first["id"], second["id"]]
    assert {m["role"] for m in shown} == {"tool"}


def test_a_missing_result_is_told_to_the_model() -> None:
    agent = ToolAgent(tools=["calculator"])
    agent.update_from_model(CALL)
    agent.update_from_env({"tool_outputs": {}}, 0.0, False, {})
    assert agent.chat_completions[-1]["content"] == "Error: no result"


def test_a_malformed_call_reaches_the_environment_and_the_model_reads_why() -> None:
    agent = ToolAgent(tools=["calculator"])
    (call,) = agent.update_from_model("<tool_call>{oops</tool_call>").action
    assert call["function"]["name"] == MALFORMED_CALL
    assert json.loads(call["function"]["arguments"]) == {"text": "{oops"}
    agent.update_from_env({"tool_outputs": {call["id"]: "unknown tool"}}, 0.0, False, {})
    assert "not valid JSON" in agent.chat_completions[-1]["content"]


def test_the_assistant_message_is_what_the_model_wrote() -> None:
    agent = ToolAgent(tools=["calculator"])
    agent.update_from_model(f"x {CALL}\n")
    assert agent.chat_completions[-1] == {"role": "assistant", "content": f"x {CALL}\n"}


def test_the_empty_observation_after_the_end_shows_nothing() -> None:
    agent = ToolAgent()
    agent.update_from_env({"question": "2*3?"}, 0.0, False, {})
    agent.update_from_model("6")
    agent.update_from_env({}, 1.0, True, {})
    assert [m["role"] for m in agent.chat_completions] == ["system", "user", "assistant"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"tools": ["no_such_tool"]}, "no_such_tool"),
        ({"tools": ["calculator"], "tool_map": {"a": CalculatorTool}}, "not both"),
        ({"parser_name": "nope"}, "parser_name"),
        ({"tool_map": {"a": 3}}, "tool"),
    ],
)
def test_what_is_no_tool_or_parser_is_refused(arguments: dict, problem: str) -> None:
    with pytest.raises(UserError, match=problem):
        ToolAgent(**arguments)
