"""An agent that calls tools, which its environment runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import observation_text
from rllm_agents.errors import UserError
from rllm_agents.tool_parsers import MalformedCall, ToolCall, get_tool_parser
from rllm_agents.types import Action, Message, Trajectory
from rllm_envs.errors import EnvArgumentError
from rllm_envs.tools import make_tools
from rllm_envs.tools.catalog import ToolSpec, ToolSpecs

MALFORMED_CALL = "malformed_tool_call"
"""Name under which the environment gets a call that could not be read."""
_DEFAULT_PROMPT = (
    "You solve tasks with the help of tools. Think first, call a tool where it helps, read its "
    "result, and end with your final answer."
)


class ToolAgent(BaseAgent):
    """Presents tools to the model and turns what it writes into calls for the environment.

    Its action is a list of calls ``{"id": ..., "type": "function", "function": {"name": ...,
    "arguments": <JSON text>}}``, or the whole response as the final answer where it holds no
    call. A call that cannot be read is sent under the name `MALFORMED_CALL`, so that the
    environment counts the turn, and the model is told what was wrong with it.

    Observations are those of ChatAgent, or ``{"tool_outputs": {id: text}}``.

    Args:
        system_prompt: Stands before the presentation of the tools.
        parser_name: How the model writes calls; a key of `tool_parsers.TOOL_PARSERS`, or ``vllm:``
            and the name of a tool parser of vLLM, where that is installed.
        tools: Tools by name, class or object, as `rllm_envs.tools.make_tools` takes them.
        tool_map: Tools under names of the caller's choice, instead of `tools`.

    Raises:
        UserError: When a tool or the parser is not known, or both ways of giving tools are used.
    """

    def __init__(
        self,
        system_prompt: str = _DEFAULT_PROMPT,
        parser_name: str = "qwen",
        tools: ToolSpecs | None = None,
        tool_map: Mapping[str, ToolSpec] | None = None,
    ) -> None:
        self._parser = get_tool_parser(parser_name)
        try:
            made = make_tools(tools, tool_map)
        except EnvArgumentError as error:
            raise UserError(f"tools of ToolAgent: {error}") from error
        self._system_prompt = system_prompt
        if made:
            schemas = [named_schema(tool.schema, name) for name, tool in made.items()]
            self._system_prompt += "\n\n" + self._parser.tool_prompt(schemas)
        self.reset()

    def reset(self) -> None:
        """Begin a new conversation."""
        self._trajectory = Trajectory()
        self._messages: list[Message] = [{"role": "system", "content": self._system_prompt}]
        self._num_calls = 0
        # Of the newest response: the name of each call by id, and what was wrong with it.
        self._called: dict[str, str] = {}
        self._problems: dict[str, str] = {}

    @property
    def chat_completions(self) -> list[Message]:
        """The conversation so far; calls stand in it as the model wrote them."""
        return self._messages

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Append results of tools, one message each, or the observation as a user message."""
        if isinstance(observation, Mapping) and "tool_outputs" in observation:
            outputs = observation["tool_outputs"]
            for call_id, name in self._called.items():
                text = self._problems.get(call_id) or outputs.get(call_id, "Error: no result")
                message = {"role": "tool", "tool_call_id": call_id, "name": name}
                self._messages.append({**message, "content": str(text)})
        elif observation != {}:
            text = observation_text(observation)
            if text is not None:
                self._messages.append({"role": "user", "content": text})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Append the response and act with its calls, or with its text where it has none."""
        self._messages.append({"role": "assistant", "content": response})
        parsed = self._parser.parse(response)
        self._called, self._problems = {}, {}
        calls = [self._call(call) for call in parsed.calls]
        return Action(action=calls or response)

    def _call(self, call: ToolCall | MalformedCall) -> dict[str, Any]:
        call_id = f"call_{self._num_calls}"
        self._num_calls += 1
        if isinstance(call, MalformedCall):
            name, arguments = MALFORMED_CALL, {"text": call.text}
            self._problems[call_id] = f"Error: {call.error}"
        else:
            name, arguments = call.name, dict(call.arguments)
        self._called[call_id] = name
        return tool_call(call_id, name, arguments)


def tool_call(call_id: str, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call as environments take it."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": call_id, "type": "function", "function": function}


def named_schema(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return a tool's schema under the name that the agent calls it by."""
    return {**schema, "function": {**schema["function"], "name": name}}
