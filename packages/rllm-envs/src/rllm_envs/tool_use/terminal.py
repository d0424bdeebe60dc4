"""``rllm/Terminal-v0``: bring files into a described state, by the commands of a shell."""

import copy
from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import TaskError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.command_env import CommandEnv, clipped
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import check_integer, is_name, list_field, need
from rllm_envs.tool_use.file_changes import CHANGES, changed
from rllm_envs.tool_use.file_world import random_tree
from rllm_envs.tool_use.shell.files import Tree, check_tree
from rllm_envs.tool_use.shell.shell import READING, WRITING, Shell

ARGUMENT_CHARACTERS = frozenset("-_./ ")


class TerminalEnv(CommandEnv):
    r"""Change a tree of files as instructed, with the commands of a shell.

    ## Description
    The agent reads a list of changes (move, rename, delete, copy, write, append, replace, remove
    lines, sort, count) that are to be made in their order. Files and shell exist only in memory:
    pipes, lists, quotes, redirections and patterns for names work, variables and substitutions do
    not.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<command>mkdir /old</command>`` runs a command
    line; the last complete one counts.

    ## Observation Space
    First the instructions, the known commands, and how to act. A command is answered with what it
    prints, cut after 4000 characters, or with ``(no output)``.

    ## Starting State
    About 30 files in /logs, /data, /config and /notes; ``num_steps`` changes, none of which undoes
    those before it. The current directory is /.

    ## Rewards
    1 when the tree is exactly the described one (names, contents, empty directories), 0 otherwise.

    ## Episode End
    Terminates as soon as the tree is the described one. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no command), ``turn``, ``turns_left``.

    ## Arguments
    ``num_steps`` (1 to 8, default 3), ``max_turns`` (default 15, at least ``num_steps``), ``split``
    ("train", "test" or "all").
    Task: ``{"tree": {name: text or directory}, "steps": [{"kind": "rename", "arguments": {"file":
    "/notes/a.txt", "name": "b.txt"}}]}``; kinds are those of ``file_changes.CHANGES``.
    ``rllm/TerminalHard-v0`` has 6 steps and 25 turns.

    ## Version History
    * v0: Initial version
    """

    hint = "Write <command>ls</command> to run a command."

    def __init__(
        self,
        *,
        num_steps: int = 3,
        max_turns: int = 15,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_steps", num_steps, 1, 8)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        check_integer("max_turns", max_turns, num_steps, 1000)
        self.num_steps = num_steps
        self._shell = Shell({}, is_writable=True)
        self._goal: Tree = {}
        self._steps: list[dict[str, Any]] = []

    def generate_task(self) -> Task:
        """Return a random tree and changes that are possible one after another."""
        draws = Draws(self.np_random)
        tree = random_tree(draws)
        steps: list[dict[str, Any]] = []
        states = [tree]
        while len(steps) < self.num_steps:
            kind = draws.pick(tuple(CHANGES))
            arguments = CHANGES[kind].draw(draws, states[-1])
            following = changed(states[-1], kind, arguments)
            if following is not None and following not in states:
                steps.append({"kind": kind, "arguments": arguments})
                states.append(following)
        return {"tree": tree, "steps": steps}

    def validate_task(self, task: Task) -> Task:
        """Check the tree, and that each step is possible and leads to a state of its own."""
        states = [check_tree(task.get("tree"))]
        for step in list_field(task, "steps", 1, 20):
            is_step = isinstance(step, dict) and isinstance(step.get("arguments"), dict)
            need(
                is_step and step.get("kind") in tuple(CHANGES),
                f"a step needs a kind of {', '.join(CHANGES)} and arguments",
                step,
            )
            names, arguments = CHANGES[step["kind"]].names, step["arguments"]
            need(set(arguments) == set(names), f"a step {step['kind']!r} needs {names}", arguments)
            for name, value in arguments.items():
                is_plain = is_name(value) and all(
                    char.isalnum() or char in ARGUMENT_CHARACTERS for char in value
                )
                need(is_plain, f"{name!r} of a step must be letters, digits and -_./", value)
            following = changed(states[-1], step["kind"], arguments)
            if following is None:
                raise TaskError(f"the step {step} is not possible or changes nothing")
            need(following not in states, "a step must not undo the steps before it", step)
            states.append(check_tree(following))
        return task

    def begin(self, task: Task) -> str:
        """Return the instructions and the rules."""
        self._steps = task["steps"]
        self._goal = task["tree"]
        for step in self._steps:
            following = changed(self._goal, step["kind"], step["arguments"])
            assert following is not None
            self._goal = following
        self._shell = Shell(copy.deepcopy(task["tree"]), is_writable=True)
        lines = [
            f"{number}. {CHANGES[step['kind']].words.format(**step['arguments'])}"
            for number, step in enumerate(self._steps, 1)
        ]
        return "\n".join(
            (
                "Make these changes in a file system, in this order, and nothing else:",
                *lines,
                "You are in / with a simple shell. Write <command>ls -R /notes</command> to run a "
                "command; pipes, quotes, > and >>, && and patterns such as *.txt work. Known "
                f"commands: {', '.join(sorted(READING | WRITING))}. The task ends when all is as "
                f"described. You have {self.max_turns} turns.",
            )
        )

    def run_command(self, command: str) -> Response:
        """Run a command line and compare the tree with the described one."""
        output = clipped(self._shell.run(command)) or "(no output)"
        is_solved = self._shell.files.tree == self._goal
        return Response(output, float(is_solved), terminated=is_solved)

    def oracle_action(self) -> str:
        """Make the change after the last one that is made."""
        current: Tree | None = self.task["tree"]
        for step in self._steps:
            assert current is not None
            if current == self._shell.files.tree:
                return self.tagged(CHANGES[step["kind"]].command(current, step["arguments"]))
            current = changed(current, step["kind"], step["arguments"])
        return self.tagged("ls")
