r"""``rllm/FileSystem-v0``: find and compute something in files, by the commands of a shell."""

from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import TaskError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.command_env import CommandEnv, clipped
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import is_name, need, object_field, text_field
from rllm_envs.tool_use.file_questions import QUESTIONS
from rllm_envs.tool_use.file_world import random_tree
from rllm_envs.tool_use.shell.files import check_tree
from rllm_envs.tool_use.shell.shell import READING, Shell

ANSWER_CHARACTERS = frozenset("-_./, ")


class FileSystemEnv(CommandEnv):
    r"""Answer a question about a tree of files with the reading commands of a shell.

    ## Description
    The files (logs, tables, settings, notes) exist only in memory, and so does the shell: pipes,
    lists (``;``, ``&&``, ``||``), quotes and patterns for names work, variables and substitutions
    do not. The questions ask where something is, for a value, for counts, or for the largest.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<command>ls /logs</command>`` runs a command line;
    the last complete one counts. ``\boxed{...}`` answers and ends the episode; a box counts before
    a command.

    ## Observation Space
    First the question, the known commands, and how to act. A command is answered with what it
    prints, cut after 4000 characters, or with ``(no output)``. Mistakes are answered with a message
    as a shell prints it.

    ## Starting State
    About 30 files in /logs, /data, /config and /notes; one of eight kinds of questions whose answer
    is unique. The current directory is /.

    ## Rewards
    1 for the right number, name, value or full path, 0 otherwise. Commands are free.

    ## Episode End
    Terminates with an answer. Truncates after ``max_turns`` actions without one.

    ## Information
    ``success``, ``invalid`` (neither a command nor an answer), ``turn``, ``turns_left``.

    ## Arguments
    ``max_turns`` (default 12), ``split`` ("train", "test" or "all").
    Task: ``{"tree": {name: text or directory}, "kind": "count_lines", "arguments": {"directory":
    "/logs", "text": "ERROR"}}``; kinds are those of ``file_questions.QUESTIONS``.

    ## Version History
    * v0: Initial version
    """

    takes_answer = True
    hint = "Write <command>ls</command> to run a command, or give the answer in \\boxed{}."

    def __init__(
        self, *, max_turns: int = 12, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self._shell = Shell({})
        self._answer = ""
        self._command = ""
        self._last = ("", "")

    def generate_task(self) -> Task:
        """Return a random tree and a question about it that has one answer."""
        draws = Draws(self.np_random)
        tree = random_tree(draws)
        while True:
            kind = draws.pick(tuple(QUESTIONS))
            arguments = QUESTIONS[kind].draw(draws, tree)
            if QUESTIONS[kind].answer(tree, arguments):
                return {"tree": tree, "kind": kind, "arguments": arguments}

    def validate_task(self, task: Task) -> Task:
        """Check the tree, the question's kind and arguments, and that it has one answer."""
        tree = check_tree(task.get("tree"))
        kind = text_field(task, "kind")
        need(kind in QUESTIONS, f"task['kind'] must be one of {', '.join(QUESTIONS)}", kind)
        arguments = object_field(task, "arguments", 1, 3)
        names = QUESTIONS[kind].names
        need(set(arguments) == set(names), f"task['arguments'] must hold {names}", arguments)
        for name, value in arguments.items():
            need(
                is_name(value)
                and all(char.isalnum() or char in ANSWER_CHARACTERS for char in value),
                f"task['arguments'][{name!r}] must be letters, digits and -_./,",
                value,
            )
        if not QUESTIONS[kind].answer(tree, arguments):
            raise TaskError(f"the question {kind!r} with {arguments} has no unique answer")
        return task

    def begin(self, task: Task) -> str:
        """Return the question and the rules."""
        arguments: dict[str, Any] = task["arguments"]
        question = QUESTIONS[task["kind"]]
        self._answer = question.answer(task["tree"], arguments)
        self._command = question.command.format(**arguments)
        self._last = ("", "")
        self._shell = Shell(task["tree"])
        return (
            f"{question.words.format(**arguments)}\n"
            "You are in / of a read-only file system with a simple shell. Write "
            "<command>ls -R /notes</command> to run a command; pipes, quotes and patterns such as "
            f"*.txt work. Known commands: {', '.join(sorted(READING))}. Give the final answer in "
            f"\\boxed{{}}. You have {self.max_turns} turns."
        )

    def run_command(self, command: str) -> Response:
        """Run a command line and show what it prints."""
        output = self._shell.run(command)
        self._last = (command, output)
        return Response(clipped(output) or "(no output)")

    def is_correct(self, answer: str) -> bool:
        """Return whether the answer is right; case, quotes and a missing first "/" do not count."""
        return _plain(answer) == _plain(self._answer)

    def oracle_action(self) -> str:
        """Run the command line that finds the answer, and then answer with what it printed."""
        command, output = self._last
        if command != self._command:
            return self.tagged(self._command)
        lines = output.splitlines() or [""]
        found = lines[-1].strip().rpartition("=")[2]
        # Counts stand before names: "  5 Oslo" and "12 /logs/mail/mail-03.log".
        first, _, rest = found.partition(" ")
        return f"\\boxed{{{rest if first.isdigit() and rest else found}}}"


def _plain(text: str) -> str:
    return text.strip().strip("'\"`").strip().lstrip("/").casefold()
