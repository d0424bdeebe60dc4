"""An agent that thinks, acts and observes in plain text (Yao et al. 2022, "ReAct")."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import observation_text
from rllm_agents.agents.tool import MALFORMED_CALL, named_schema, tool_call
from rllm_agents.errors import UserError
from rllm_agents.tool_parsers.base import after_thought, load_json
from rllm_agents.types import Action, Message, Step, Trajectory
from rllm_envs.errors import EnvArgumentError
from rllm_envs.tools import make_tools
from rllm_envs.tools.catalog import ToolSpec, ToolSpecs

WITH_TOOLS = """Solve the task in turns. In each turn write

Thought: what you know and what to do next
Action: the name of one tool
Action Input: its arguments as a JSON object

and stop; the result comes back as an observation. When you know the answer, write

Thought: why it is right
Final Answer: the answer

The tools, one per line:
"""
WITHOUT_TOOLS = """Solve the task in turns. In each turn write

Thought: what you know and what to do next
Action: one action, just as the task asks for it

and stop; what comes of it is shown as an observation. When you know the answer, write

Thought: why it is right
Final Answer: the answer, just as the task asks for it"""
_FORM = "write 'Action: NAME' and 'Action Input: {...}', or 'Final Answer: ...'"
_OBSERVATION = re.compile(r"^[ \t]*Observation[ \t]*:", re.IGNORECASE | re.MULTILINE)
_LABEL = re.compile(
    r"^[ \t]*(Thought|Action Input|Action|Final Answer)[ \t]*:[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_BRACKETED = re.compile(r"([\w.-]{1,100})\s*\[(.*)\]", re.DOTALL)


class ReActAgent(BaseAgent):
    """Reads ``Thought:``, ``Action:`` and ``Final Answer:``, and shows ``Observation:``.

    With tools its action is a list of one call, as ToolAgent's is, read of ``Action: NAME`` and
    ``Action Input: {JSON}`` (or ``Action: NAME[input]``; an input that is no JSON object is the
    argument of a tool that has one). A response without either is a call that cannot be read:
    the environment counts the turn, and the model is told. Made for `rllm_envs.ToolEnvironment`.

    Without tools its action is the text after ``Action:``, for environments that are acted on in
    text, such as ``rllm/Calculator-v0``, ``rllm/Search-v0`` or ``rllm/TextAdventure-v0``; a
    response in another form is the action as a whole.

    A final answer is the action that ends an episode. What a response says after its first action,
    observations that the model makes up included, has no effect. Needs no tool tokens, so that
    models of any family can write it.

    Args:
        system_prompt: Stands before the presentation of the tools; None for the form alone.
        tools: Tools by name, class or object, as `rllm_envs.tools.make_tools` takes them.
        tool_map: Tools under names of the caller's choice, instead of `tools`.

    Raises:
        UserError: When a tool is not known, or both ways of giving tools are used.
    """

    def __init__(
        self,
        system_prompt: str | None = None,
        tools: ToolSpecs | None = None,
        tool_map: Mapping[str, ToolSpec] | None = None,
    ) -> None:
        try:
            made = make_tools(tools, tool_map)
        except EnvArgumentError as error:
            raise UserError(f"tools of ReActAgent: {error}") from error
        schemas = [named_schema(tool.schema, name) for name, tool in made.items()]
        # Of each tool: the schema of each argument by its name.
        self._parameters: dict[str, dict[str, Any]] = {
            schema["function"]["name"]: schema["function"]["parameters"]["properties"]
            for schema in schemas
        }
        lines = "\n".join(json.dumps(s["function"], ensure_ascii=False) for s in schemas)
        form = WITH_TOOLS + lines if made else WITHOUT_TOOLS
        self._system_prompt = f"{system_prompt}\n\n{form}" if system_prompt else form
        self.reset()

    def reset(self) -> None:
        """Begin a new conversation."""
        self._trajectory = Trajectory()
        self._messages: list[Message] = [{"role": "system", "content": self._system_prompt}]
        # What was wrong with the newest call.
        self._problem = ""

    @property
    def chat_completions(self) -> list[Message]:
        """The conversation so far, as the model wrote it."""
        return self._messages

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Append the task, or what came of the action; after the end, nothing."""
        if done:
            return
        if isinstance(observation, Mapping) and "tool_outputs" in observation:
            results = "\n".join(map(str, observation["tool_outputs"].values()))
            text = self._problem or results or "Error: no result"
        else:
            text = observation_text(observation) or ""
        if self._trajectory.steps:
            text = f"Observation: {text}"
        self._messages.append({"role": "user", "content": text})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Append the response and a step, and act with its first action or its answer."""
        self._messages.append({"role": "assistant", "content": response})
        parts = _parts(response)
        step = Step(chat_completions=list(self._messages), thought=parts.get("thought", ""))
        self._trajectory.steps.append(step)
        self._problem = ""
        if "final answer" in parts:
            return Action(action=parts["final answer"])
        if not self._parameters:
            return Action(action=parts.get("action", response))
        name, arguments = self._call(parts, response)
        return Action(action=[tool_call(f"call_{len(self._trajectory.steps)}", name, arguments)])

    def _call(self, parts: Mapping[str, str], response: str) -> tuple[str, dict[str, Any]]:
        """Return the name and the arguments of a call; what is wrong with it goes to `_problem`."""
        name, given = parts.get("action", ""), parts.get("action input")
        bracketed = _BRACKETED.fullmatch(name) if given is None else None
        if bracketed is not None:
            name, given = bracketed.groups()
        if not name:
            return self._malformed(_FORM, response)
        if not given:
            return name, {}
        try:
            arguments = load_json(given)
        except (ValueError, RecursionError) as error:
            if given.lstrip().startswith("{"):
                return self._malformed(f"the Action Input is not valid JSON: {error}"[:300], given)
            arguments = given
        given = arguments if isinstance(arguments, str) else given
        if isinstance(arguments, dict):
            return name, arguments
        parameters = self._parameters.get(name, {})
        if len(parameters) != 1:
            return self._malformed("the Action Input must be a JSON object", given)
        ((parameter, schema),) = parameters.items()
        is_text = isinstance(arguments, str) or schema.get("type") == "string"
        return name, {parameter: given if is_text else arguments}

    def _malformed(self, problem: str, text: str) -> tuple[str, dict[str, Any]]:
        self._problem = f"Error: {problem}"
        return MALFORMED_CALL, {"text": text}


def _parts(response: str) -> dict[str, str]:
    """Take a response apart by its labels, in small letters.

    What follows the first action with its input, or the first final answer, is left out, and so are
    thoughts in tags and all after an observation.
    """
    text = _OBSERVATION.split(after_thought(response), maxsplit=1)[0]
    labels = list(_LABEL.finditer(text))
    starts = [label.start() for label in labels]
    parts: dict[str, str] = {}
    for label, end in zip(labels, [*starts[1:], len(text)], strict=False):
        name = label.group(1).lower()
        if name == "action input":
            if "action" in parts:
                parts[name] = text[label.end() : end].strip()
            break
        if "action" in parts:
            break
        parts.setdefault(name, text[label.end() : end].strip())
        if name == "final answer":
            break
    return parts
