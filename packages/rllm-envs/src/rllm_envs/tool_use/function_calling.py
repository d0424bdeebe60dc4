"""``rllm/FunctionCalling-v0``: turn a request into calls of the right functions."""

import json
from typing import Any

from rllm_envs.errors import TaskError, ToolError
from rllm_envs.parsing import tag_content
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import Task
from rllm_envs.tool_use.api_catalog import random_request, random_services
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import check_integer, list_field, need, text_field
from rllm_envs.tool_use.functions import Call, Function, function_of, read_calls


class FunctionCallingEnv(SingleTurnEnv):
    r"""Choose functions and arguments for a request in words, in one turn.

    ## Description
    The agent reads the JSON schemas of several functions and a request of one or more sentences,
    each of which is one call. Most functions are not needed; some are about the same thing. For
    about an eighth of the requests there is no fitting function, and the list of calls is empty.

    ## Action Space
    Any text. The last complete ``<tool>...</tool>`` outside of ``<think>...</think>`` holds one
    JSON object ``{"name": ..., "arguments": {...}}`` or a list of them.

    ## Observation Space
    The schemas, one per line, the request, and how to answer. The last observation is empty.

    ## Starting State
    ``num_functions`` functions over ten kinds of things, with names and arguments drawn from
    synonyms; 1 to ``max_calls`` sentences.

    ## Rewards
    1 if the calls are exactly the right ones in any order, 0 otherwise. An argument that is left
    out counts as its default; texts are compared without outer spaces, integers and whole floats
    as equal, and nothing else is forgiven.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no readable calls in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_functions`` (2 to 39, default 8), ``max_calls`` (1 to 6, default 2), ``split`` ("train",
    "test" or "all").
    Task: ``{"functions": [schema, ...], "request": "...", "calls": [{"name": ..., "arguments":
    {...}}]}``.
    ``rllm/FunctionCallingHard-v0`` has 24 functions and up to 5 calls.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_functions: int = 8,
        max_calls: int = 2,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_functions", num_functions, 2, 39)
        check_integer("max_calls", max_calls, 1, 6)
        super().__init__(split=split, render_mode=render_mode)
        self.num_functions = num_functions
        self.max_calls = max_calls

    def generate_task(self) -> Task:
        """Return random functions, a request, and its calls."""
        draws = Draws(self.np_random)
        services = random_services(draws, self.num_functions + 1)
        hidden = services.pop(draws.below(len(services)))
        if draws.random() < 0.125:
            request, calls = random_request(draws, hidden)[0], []
        else:
            count = draws.between(1, min(self.max_calls, self.num_functions))
            pairs = [random_request(draws, item) for item in draws.sample(services, count)]
            request = " ".join(words for words, _ in pairs)
            calls = [call._asdict() for _, call in pairs]
        return {
            "functions": [service.function.schema() for service in draws.shuffled(services)],
            "request": request,
            "calls": calls,
        }

    def validate_task(self, task: Task) -> Task:
        """Check the schemas, and that each call fits one of them."""
        text_field(task, "request")
        try:
            functions = _by_name(list_field(task, "functions", 1, 100))
            calls = read_calls(json.dumps(list_field(task, "calls", 0, 20)))
        except ToolError as error:
            raise TaskError(f"the task cannot be read: {error}") from error
        for call in calls:
            need(call.name in functions, "task['calls'] must name given functions", call.name)
            reason = functions[call.name].problem(call.arguments)
            if reason:
                raise TaskError(f"task['calls']: {reason}")
        return task

    def question(self, task: Task) -> str:
        """Return schemas, request and form of the answer."""
        schemas = "\n".join(json.dumps(schema) for schema in task["functions"])
        return (
            f"You can call these functions:\n{schemas}\nRequest: {task['request']}\n"
            'Answer with all calls that the request needs, as JSON in a tag: <tool>[{"name": "f", '
            '"arguments": {"x": 1}}]</tool>. State no argument that the request does not state. If '
            "no function fits, answer <tool>[]</tool>."
        )

    def extract(self, action: str) -> str | None:
        """Return the calls of an action as text, or None where they cannot be read."""
        content = tag_content(action, "tool")
        try:
            return None if content is None or read_calls(content) is None else content
        except ToolError:
            return None

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether calls are exactly the right ones, in any order."""
        functions = _by_name(task["functions"])
        wanted = [Call(**call) for call in task["calls"]]
        given = read_calls(answer)
        return sorted(_key(functions, call) for call in given) == sorted(
            _key(functions, call) for call in wanted
        )

    def oracle_action(self) -> str:
        """Return the right calls."""
        return f"<tool>{json.dumps(self._current['calls'])}</tool>"


def _by_name(schemas: list[Any]) -> dict[str, Function]:
    return {function.name: function for function in map(function_of, schemas)}


def _key(functions: dict[str, Function], call: Call) -> str:
    """Return a text that is equal for equal calls, and is no call for an impossible one."""
    function = functions.get(call.name)
    if function is None:
        return "unknown"
    arguments = {name: _plain(value) for name, value in call.arguments.items()}
    if function.problem(arguments):
        return "unfit"
    complete = function.completed(arguments)
    values = {name: _plain(value) for name, value in complete.items()}
    return json.dumps([call.name, values], sort_keys=True)


def _plain(value: Any) -> Any:
    """Return a whole float as an integer and a text without outer spaces."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.strip() if isinstance(value, str) else value
