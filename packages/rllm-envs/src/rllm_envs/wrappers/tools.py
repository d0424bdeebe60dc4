"""``ToolWrapper``: an environment with tools at hand, called by name."""

import json
from collections.abc import Sequence
from typing import Any

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from rllm_envs.errors import EnvArgumentError, ToolError, excerpt
from rllm_envs.parsing import strip_thoughts
from rllm_envs.tools import Tool, close_tools, episode_tools, make_tools
from rllm_envs.tools.values import read_json

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


class ToolWrapper(gymnasium.Wrapper[str, str, str, str], RecordConstructorArgs):
    """Let the agent call tools before it acts.

    An action with ``<tool_call>{"name": "calculator", "arguments": {"expression": "47 *
    83"}}</tool_call>`` outside of ``<think>...</think>`` calls a tool; the last complete call
    counts. The observation is the tool's text, ``Error: ...`` where the call cannot be made, and
    the environment is not stepped. Any other action is the environment's. The first observation
    lists the tools.

    A call costs a turn and earns nothing. Info has ``tool_call`` (bool); ``turn`` and
    ``turns_left`` count calls too, and ``invalid`` is True for a call that cannot be made.

    Args:
        env: An environment of texts.
        tools: Names of tools, at least one; see ``rllm_envs.tools``.
        max_turns: Actions of an episode, calls included, at least 2. The episode is truncated when
            they are spent; the environment's own limit, which calls do not touch, holds too.

    Raises:
        EnvArgumentError: A tool is unknown, or ``max_turns`` is out of range.
    """

    def __init__(
        self, env: gymnasium.Env[str, str], tools: Sequence[str], max_turns: int = 8
    ) -> None:
        names = list(tools) if isinstance(tools, list | tuple) else tools
        RecordConstructorArgs.__init__(self, tools=names, max_turns=max_turns)
        super().__init__(env)
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            raise EnvArgumentError(
                f"tools must be a list of names such as ['calculator'], got {tools!r:.80}"
            )
        if type(max_turns) is not int or max_turns < 2:
            raise EnvArgumentError(f"max_turns must be an integer of at least 2, got {max_turns!r}")
        self.max_turns = max_turns
        self._tools = make_tools(names)
        self._episode_tools: dict[str, Tool] = {}
        self._turn = 0

    def may_block(self, task: Any) -> bool:
        """Return True: a tool may wait."""
        return True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Reset the environment; the observation ends with the list of tools."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._release()
        self._episode_tools = episode_tools(self._tools)
        self._turn = 0
        return f"{observation}\n\n{self._instructions()}", self._counted(info)

    def step(self, action: str) -> tuple[str, Any, bool, bool, dict[str, Any]]:
        """Call a tool, or step the environment."""
        call = _tool_call(action) if isinstance(action, str) else None
        self._turn += 1
        if call is None:
            observation, reward, terminated, truncated, info = self.env.step(action)
        else:
            text, is_made = self._run(call)
            limit = getattr(self.observation_space, "max_length", len(text))
            observation, reward, terminated, truncated = text[:limit], 0.0, False, False
            info = {"success": False, "invalid": not is_made, "tool_call": True}
        if self._turn >= self.max_turns and not terminated:
            truncated = True
        return observation, reward, terminated, truncated, self._counted(info)

    def close(self) -> None:
        """Release what the tools of the episode hold, and close the environment."""
        self._release()
        super().close()

    def _release(self) -> None:
        tools, self._episode_tools = self._episode_tools, {}
        close_tools(tools.values())

    def _run(self, call: str) -> tuple[str, bool]:
        """Return the tool's text, and whether there was a call to make."""
        try:
            fields = read_json(call)
        except ToolError as error:
            return f"Error: the tool call is not JSON: {error}", False
        name = fields.get("name") if isinstance(fields, dict) else None
        if not isinstance(name, str):
            return f"Error: a tool call needs a name, got {excerpt(fields)}", False
        if name not in self._episode_tools:
            known = ", ".join(self._tools)
            return f"Error: no tool is named {excerpt(name)}; known tools: {known}", False
        arguments = fields.get("arguments", {})
        if not isinstance(arguments, dict):
            return f"Error: arguments must be a JSON object, got {excerpt(arguments)}", False
        return self._episode_tools[name].call(arguments).text, True

    def _instructions(self) -> str:
        lines = ["You may call a tool before you answer. Tools:"]
        for tool in self._tools.values():
            function = tool.schema["function"]
            arguments = ", ".join(
                f"{name} ({_kind(schema)})"
                for name, schema in function["parameters"]["properties"].items()
            )
            lines.append(f"- {tool.name}({arguments}): {function['description']}")
        first = next(iter(self._tools.values()))
        needed = first.schema["function"]["parameters"]["required"]
        example = json.dumps({"name": first.name, "arguments": dict.fromkeys(needed, "...")})
        lines.append(f"Call one so: {_OPEN}{example}{_CLOSE}")
        return "\n".join(lines)

    def _counted(self, info: dict[str, Any]) -> dict[str, Any]:
        turns = {"turn": self._turn, "turns_left": self.max_turns - self._turn}
        return {"tool_call": False, **info, **turns}


def _kind(schema: dict[str, Any]) -> str:
    """Return what an argument must be, in a few words."""
    if "enum" in schema:
        return " or ".join(json.dumps(choice) for choice in schema["enum"])
    return str(schema.get("type", "any value"))


def _tool_call(action: str) -> str | None:
    """Return the content of the last complete call outside of thoughts, or None."""
    text = strip_thoughts(action)
    start = text.rfind(_OPEN, 0, max(text.rfind(_CLOSE), 0))
    if start < 0:
        return None
    return text[start + len(_OPEN) :].partition(_CLOSE)[0]
