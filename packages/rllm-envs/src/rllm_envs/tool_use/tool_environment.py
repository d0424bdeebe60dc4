"""``ToolEnvironment``: an agent calls tools step by step and then answers; ``BaseEnv`` contract."""

import math
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rllm_envs.core import BaseEnv
from rllm_envs.errors import EnvArgumentError, ToolError, excerpt
from rllm_envs.rewards import HIDDEN_FIELDS, RewardOutput, as_reward_output
from rllm_envs.tasks import Task
from rllm_envs.tools import Tool, close_tools, episode_tools, make_tools
from rllm_envs.tools.catalog import ToolSpec, ToolSpecs
from rllm_envs.tools.values import check_plain, read_json

MAX_CALLS = 64
"""Calls of one action that are run."""
FINISH = "finish"
"""Name of the call that ends an episode; its argument ``response`` is the answer."""


@dataclass(frozen=True, slots=True)
class _Call:
    """One tool call as read from an action; ``problem`` says why it cannot be made."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""


class ToolEnvironment(BaseEnv):
    """A task, some tools, and a reward for the final response.

    ``reset`` returns the task as the observation. An action is a list of tool calls (dicts such as
    ``{"id": ..., "function": {"name": ..., "arguments": {...}}}``, arguments as an object or as
    JSON text), one such dict, None for no call, or a string, which is the final response. The calls
    run at the same time, each in its own thread, and the observation is ``{"tool_outputs": {call
    id: text}}``. What cannot be run is answered with ``Error: ...`` under its id.

    The episode ends with a string, with a call of ``finish`` (its ``response`` is the answer; the
    other calls of the action still run), or after ``max_steps`` actions. Then
    ``reward_fn(task_info=task, action=response)`` gives the reward, and info holds ``response``,
    ``metadata`` and ``is_correct``.

    Args:
        task: The task; a dict.
        tools: Tools by name ("calculator"), as classes or as objects, and sources of tools.
        tool_map: Tools under names of your choice, instead of ``tools``.
        reward_fn: Returns a ``RewardOutput`` or a number; without one every reward is 0.
        max_steps: Actions per episode, at least 1.
        tool_timeout: Seconds after which a call is given up.

    Raises:
        EnvArgumentError: An argument has a value that is not allowed.
    """

    blocking = True

    def __init__(
        self,
        task: Task | None = None,
        tools: ToolSpecs | None = None,
        tool_map: Mapping[str, ToolSpec] | None = None,
        reward_fn: Callable[..., RewardOutput | float] | None = None,
        max_steps: int = 10,
        *,
        tool_timeout: float = 30.0,
    ) -> None:
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or max_steps < 1:
            raise EnvArgumentError(f"max_steps must be an integer of at least 1, got {max_steps!r}")
        is_number = isinstance(tool_timeout, int | float) and not isinstance(tool_timeout, bool)
        if not is_number or not 0 < tool_timeout < math.inf:
            raise EnvArgumentError(f"tool_timeout must be positive seconds, got {tool_timeout!r}")
        if reward_fn is None:
            warnings.warn("ToolEnvironment without reward_fn gives reward 0", stacklevel=2)
        self.task = dict(task or {})
        self.tools = make_tools(tools, tool_map)
        self.reward_fn = reward_fn
        self.max_steps = max_steps
        self.tool_timeout = tool_timeout
        self.num_steps = 0
        self._episode_tools: dict[str, Tool] = {}

    def reset(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start the episode; the observation is the task without its answer and its tests."""
        self.num_steps = 0
        self.close()
        self._episode_tools = episode_tools(self.tools)
        shown = {name: v for name, v in self.task.items() if name not in HIDDEN_FIELDS}
        return shown, {}

    def close(self) -> None:
        """Release what the tools of the episode hold."""
        tools, self._episode_tools = self._episode_tools, {}
        close_tools(tools.values())

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:
        """Run the tool calls of an action, or end the episode with its response.

        Raises:
            InfrastructureError: What a tool needs (a sandbox, a server) failed.
        """
        self.num_steps += 1
        if isinstance(action, str):
            return self._end({}, action)
        calls = _read_calls(action)
        finish = next((call for call in calls if call.name == FINISH and not call.problem), None)
        outputs = self._run([call for call in calls if call is not finish])
        observation = {"tool_outputs": outputs} if outputs or finish is None else {}
        if finish is not None:
            return self._end(observation, _as_text(finish.arguments.get("response", "")))
        if self.num_steps >= self.max_steps:
            return self._end(observation, "" if action is None else _as_text(action))
        return observation, 0.0, False, {"response": "", "metadata": {}, "is_correct": False}

    @staticmethod
    def from_dict(info: Mapping[str, Any]) -> "ToolEnvironment":
        """Make an environment from the constructor's arguments; what else there is is the task."""
        fields = dict(info)
        names = ("tools", "tool_map", "reward_fn", "max_steps", "tool_timeout")
        named = {name: fields.pop(name) for name in names if name in fields}
        return ToolEnvironment(task=fields, **named)

    def _end(
        self, observation: dict[str, Any], response: str
    ) -> tuple[dict[str, Any], float, bool, dict[str, Any]]:
        output = RewardOutput(0.0, False)
        if self.reward_fn is not None:
            graded = self.reward_fn(task_info=dict(self.task), action=response)
            output = as_reward_output(graded)
        info = {
            "response": response,
            "metadata": dict(output.metadata),
            "is_correct": output.is_correct,
        }
        return observation, output.reward, True, info

    def _run(self, calls: list[_Call]) -> dict[str, str]:
        """Run the calls at once and return their texts, in the order of the calls."""
        outputs = {call.id: f"Error: {call.problem}" for call in calls}
        threads: list[tuple[_Call, threading.Thread]] = []
        finished: dict[str, str | Exception] = {}
        for call in calls:
            tool = self._episode_tools.get(call.name)
            if call.problem:
                continue
            if tool is None:
                known = ", ".join(self.tools) or "none"
                outputs[call.id] = (
                    f"Error: no tool is named {excerpt(call.name)}; known tools: {known}"
                )
                continue
            if len(threads) == MAX_CALLS:
                outputs[call.id] = f"Error: an action has at most {MAX_CALLS} tool calls"
                continue
            # A daemon thread, because a tool that never returns must not keep the program alive.
            thread = threading.Thread(target=_call_into, args=(finished, tool, call), daemon=True)
            thread.start()
            threads.append((call, thread))
        deadline = time.monotonic() + self.tool_timeout
        for call, thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            late = f"Error: {call.name} took longer than {self.tool_timeout:g} s"
            output = finished.get(call.id, late)
            if isinstance(output, Exception):
                raise output
            outputs[call.id] = output
        return outputs


def _call_into(finished: dict[str, str | Exception], tool: Tool, call: _Call) -> None:
    try:
        finished[call.id] = tool.call(call.arguments).text
    except Exception as error:
        # What ``call`` raises is no answer to the agent; the thread of the environment raises it.
        finished[call.id] = error


def _read_calls(action: Any) -> list[_Call]:
    """Return the calls of an action, each under an id of its own."""
    items = [] if action is None else list(action) if isinstance(action, list | tuple) else [action]
    calls: dict[str, _Call] = {}
    for number, item in enumerate(items):
        call = _read_call(item, f"call_{number}")
        call_id = call.id
        while call_id in calls:
            call_id = f"{call_id}_{number}"
        calls[call_id] = replace(call, id=call_id)
    return list(calls.values())


def _read_call(item: Any, default_id: str) -> _Call:
    if not isinstance(item, Mapping):
        return _Call(default_id, "", {}, f"a tool call must be an object, got {excerpt(item)}")
    given = item.get("id")
    is_id = isinstance(given, str | int) and given
    call_id = default_id if not is_id else given if isinstance(given, str) else excerpt(given)
    function = item.get("function", item)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        return _Call(call_id, "", {}, f"a tool call needs a name, got {excerpt(dict(item))}")
    arguments = function.get("arguments", {})
    try:
        if isinstance(arguments, str):
            arguments = read_json(arguments or "{}")
        if not isinstance(arguments, dict):
            raise ToolError(f"arguments must be a JSON object, got {excerpt(arguments)}")
        check_plain(arguments)
    except ToolError as error:
        return _Call(call_id, name, {}, str(error))
    return _Call(call_id, name, arguments)


def _as_text(value: Any) -> str:
    """Return a response as text; one that is neither text nor number is quoted in part."""
    return value if isinstance(value, str) else excerpt(value, 10_000)
