"""``CommandEnv``: worlds that are acted on by one tagged command per turn."""

from abc import abstractmethod

from rllm_envs.core import Response, TextEnv
from rllm_envs.parsing import boxed_answer, tag_content

MAX_COMMAND_LENGTH = 4000
MAX_OUTPUT_LENGTH = 4000


class CommandEnv(TextEnv):
    r"""A ``TextEnv`` whose actions are commands inside a tag, and maybe an answer in ``\boxed{}``.

    A subclass writes ``run_command``, and ``is_correct`` where ``takes_answer`` is True. An action
    without a complete tag is answered with ``hint``.

    Args: see ``TextEnv``.
    """

    tag: str = "command"
    """Name of the tag around a command."""
    hint: str = "Write one command as <command>look</command>."
    """What an action that holds neither a command nor an answer is answered with."""
    takes_answer: bool = False
    r"""Whether ``\boxed{...}`` answers the task and ends the episode."""

    @abstractmethod
    def run_command(self, command: str) -> Response:
        """Return the answer to a command, any text of at most ``MAX_COMMAND_LENGTH`` characters."""

    def is_correct(self, answer: str) -> bool:
        """Return whether a boxed answer solves the task; asked only if ``takes_answer``."""
        return False

    def respond(self, action: str) -> Response:
        """Grade an answer, run a command, or give the hint."""
        answer = boxed_answer(action) if self.takes_answer else None
        if answer is not None:
            return Response("", float(self.is_correct(answer)), terminated=True)
        command = tag_content(action, self.tag)
        if not command:
            return Response(self.hint, info={"invalid": True})
        if len(command) > MAX_COMMAND_LENGTH:
            return Response(
                f"Error: a command has at most {MAX_COMMAND_LENGTH} characters.",
                info={"invalid": True},
            )
        return self.run_command(command)

    def tagged(self, command: str) -> str:
        """Return a command inside its tag."""
        return f"<{self.tag}>{command}</{self.tag}>"


def clipped(text: str, limit: int = MAX_OUTPUT_LENGTH) -> str:
    """Return a text, cut after ``limit`` characters with a note that says how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n... ({len(text) - limit} more characters are not shown)"
