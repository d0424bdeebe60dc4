"""``Shell``: runs command lines over ``Files``."""

from collections.abc import Callable

from rllm_envs.tool_use.shell import listing, matching, text, writing
from rllm_envs.tool_use.shell.files import Files, ShellError, Tree
from rllm_envs.tool_use.shell.syntax import Call, Pipeline, expand, read_line

Command = Callable[[Files, list[str], str], str]
"""From files, arguments and standard input to standard output."""
READING: dict[str, Command] = {
    "cat": text.cat, "cd": listing.cd, "cut": text.cut, "echo": text.echo, "find": listing.find,
    "grep": matching.grep, "head": text.head, "ls": listing.ls, "pwd": listing.pwd,
    "sed": matching.sed, "sort": text.sort, "tail": text.tail, "tr": text.tr, "uniq": text.uniq,
    "wc": text.wc,
}  # fmt: skip
"""Commands that change nothing but the current directory."""
WRITING: dict[str, Command] = {
    "cp": writing.cp, "mkdir": writing.mkdir, "mv": writing.mv, "rm": writing.rm,
    "rmdir": writing.rmdir, "tee": writing.tee, "touch": writing.touch,
}  # fmt: skip
"""Commands that change files."""


class Shell:
    """A shell with pipes, lists, redirections and patterns for names, over files in memory.

    Args:
        tree: The root directory; changed in place if ``is_writable``.
        is_writable: Whether the commands of ``WRITING`` and redirections are known.
    """

    def __init__(self, tree: Tree, *, is_writable: bool = False) -> None:
        self.files = Files(tree, is_writable=is_writable)
        self.commands = READING | WRITING if is_writable else READING

    def run(self, line: str) -> str:
        """Run a command line and return what it prints, messages of errors included."""
        self.files.restart_budget()
        printed: list[str] = []
        succeeds = True
        try:
            for pipeline in read_line(line):
                is_skipped = pipeline.condition == ("||" if succeeds else "&&")
                if not is_skipped:
                    succeeds = self._run_pipeline(pipeline, printed)
        except ShellError as error:
            printed.append(f"{error}\n")
        return "".join(printed).rstrip("\n")

    def _run_pipeline(self, pipeline: Pipeline, printed: list[str]) -> bool:
        """Run the commands of a pipeline and return whether the last one succeeds."""
        stdin, succeeds = "", True
        for call in pipeline.calls:
            words = [text for word in call.words for text in expand(self.files, word)]
            self.files.spend(sum(map(len, words)))
            try:
                stdin, succeeds = self._run_call(call, words, stdin), True
            except ShellError as error:
                if str(error):
                    printed.append(f"{words[0][:40]}: {error}\n")
                stdin, succeeds = "", False
        printed.append(stdin)
        return succeeds

    def _run_call(self, call: Call, words: list[str], stdin: str) -> str:
        name, *arguments = words
        command = self.commands.get(name)
        if command is None:
            raise ShellError(f"command not found (known: {' '.join(sorted(self.commands))})")
        output = command(self.files, arguments, stdin)
        self.files.spend(len(output))
        if call.target is None:
            return output
        if call.target.text == "/dev/null":
            return ""
        if not self.files.is_writable:
            raise ShellError("the file system is read-only")
        found = self.files.find(self.files.path_of(call.target.text))
        before = found if isinstance(found, str) and call.appends else ""
        self.files.write(call.target.text, before + output)
        return ""
