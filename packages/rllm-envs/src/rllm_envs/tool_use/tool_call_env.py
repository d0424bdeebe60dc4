"""``ToolCallEnv``: worlds that are acted on by one JSON call per turn."""

from abc import abstractmethod
from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import ToolError
from rllm_envs.tool_use.command_env import CommandEnv
from rllm_envs.tool_use.functions import Function, read_calls, write_call


class ToolCallEnv(CommandEnv):
    """A ``CommandEnv`` whose commands are calls of ``functions``, checked before they are run.

    A subclass sets ``functions`` and writes ``run_call``.

    Args: see ``TextEnv``.
    """

    tag = "tool"
    functions: tuple[Function, ...] = ()
    """What can be called."""

    @abstractmethod
    def run_call(self, name: str, arguments: dict[str, Any]) -> Response:
        """Run a call whose arguments fit, defaults included.

        Raises:
            ToolError: The call cannot be run; the message is shown to the agent.
        """

    def run_command(self, command: str) -> Response:
        """Run the one call of a command, or say what is wrong with it."""
        try:
            calls = read_calls(command)
            if len(calls) != 1:
                raise ToolError("make one call per turn")
        except ToolError as error:
            return Response(f"Error: {error}. {self.hint}", info={"invalid": True})
        name, arguments = calls[0]
        function = next((item for item in self.functions if item.name == name), None)
        if function is None:
            known = ", ".join(item.name for item in self.functions)
            return Response(
                f"Error: there is no function {name[:60]!r}; known: {known}", info={"invalid": True}
            )
        problem = function.problem(arguments)
        if problem:
            return Response(f"Error: {problem}", info={"invalid": True})
        try:
            return self.run_call(name, function.completed(arguments))
        except ToolError as error:
            return Response(f"Error: {error}")

    def call(self, name: str, **arguments: Any) -> str:
        """Return a call as an action."""
        return self.tagged(write_call(name, arguments))

    def manual(self) -> str:
        """Return the signatures of all functions, one per line."""
        return "\n".join(function.signature() for function in self.functions)
