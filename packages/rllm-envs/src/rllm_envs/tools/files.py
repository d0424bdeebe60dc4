"""``FilesTool``: a file system that exists only in memory, one for each episode."""

import copy
import threading
from collections.abc import Mapping
from typing import Any, Literal

from rllm_envs.errors import EnvArgumentError, TaskError, ToolError
from rllm_envs.shell.files import FileLimits, Files, ShellError, Tree, check_tree, lines_of, walk
from rllm_envs.tools.base import Tool

_LIMITS = FileLimits(work=4_000_000, file_length=100_000, entries=5000)


class FilesTool(Tool):
    """List, read, write and search text files of a file system that exists only in memory.

    Every episode begins with the same files; what is written lasts until the episode ends. Nothing
    of it is on a disk. A file has at most 100,000 characters, a tree at most 5,000 entries, which
    are at most 12 directories deep.

    Args:
        tree: The files of the beginning: a dict of names to texts (files) and to dicts
            (directories); none by default.
        writable: Whether the agent may write.
        max_output_characters: Most characters of an answer, at least 100.

    Raises:
        EnvArgumentError: The tree is none, exceeds a limit, or another argument is out of range.
    """

    name = "files"
    description = "List, read, write and search text files."

    def __init__(
        self,
        tree: Mapping[str, Any] | None = None,
        *,
        writable: bool = True,
        max_output_characters: int = 4000,
    ) -> None:
        most = max_output_characters
        if isinstance(most, bool) or not isinstance(most, int) or most < 100:
            raise EnvArgumentError(
                f"max_output_characters must be an integer of at least 100, got {most!r:.80}"
            )
        if not isinstance(writable, bool):
            raise EnvArgumentError(f"writable must be True or False, got {writable!r:.80}")
        try:
            self._start = copy.deepcopy(check_tree({} if tree is None else tree, _LIMITS))
        except TaskError as error:
            raise EnvArgumentError(f"tree of FilesTool: {error}") from error
        self._max_output = most
        self._files = Files(copy.deepcopy(self._start), is_writable=writable, limits=_LIMITS)
        self._lock = threading.Lock()

    @property
    def tree(self) -> Tree:
        """A copy of the files as they are, as nested dicts."""
        with self._lock:
            return copy.deepcopy(self._files.tree)

    def for_episode(self) -> "FilesTool":
        """Return a tool with the files of the beginning."""
        return FilesTool(
            self._start,
            writable=self._files.is_writable,
            max_output_characters=self._max_output,
        )

    def forward(
        self,
        operation: Literal["list", "read", "write", "search"],
        path: str = "/",
        content: str | None = None,
        text: str | None = None,
        first_line: int = 1,
    ) -> str:
        """Return the names, the content, what was written, or the lines found.

        Args:
            operation: list names the entries of a directory; read returns a file; write replaces
                or makes a file, and the directories above it; search finds lines in all files of
                a directory.
            path: The file or directory, such as /notes/plan.txt.
            content: For write: the whole content of the file.
            text: For search: what to look for, whatever the case of letters.
            first_line: For read: the line to begin with.
        """
        with self._lock:
            self._files.restart_budget()
            try:
                if operation == "list":
                    return self._list(path)
                if operation == "read":
                    return self._read(path, first_line)
                if operation == "write":
                    return self._write(path, content)
                return self._search(path, text)
            except ShellError as error:
                raise ToolError(str(error)) from None

    def _list(self, path: str) -> str:
        node = self._files.node(path)
        if isinstance(node, str):
            raise ToolError(f"{path[:200]}: Not a directory")
        entries = [
            f"{name}/" if isinstance(entry, dict) else f"{name} ({len(entry)} characters)"
            for name, entry in sorted(node.items())
        ]
        return self._clipped("\n".join(entries)) or "[the directory is empty]"

    def _read(self, path: str, first_line: int) -> str:
        lines = lines_of(self._files.read(path))
        if first_line < 1 or (first_line > len(lines) and lines != []):
            raise ToolError(f"first_line must be in [1, {len(lines)}], got {first_line}")
        shown = "\n".join(lines[first_line - 1 :])
        if len(shown) <= self._max_output:
            return shown or "[the file is empty]"
        whole = shown[: self._max_output].count("\n")
        if whole == 0:
            return f"{shown[: self._max_output]}\n[line {first_line} is longer and was cut here]"
        kept = "\n".join(lines[first_line - 1 : first_line - 1 + whole])
        return f"{kept}\n[the file goes on: read it with first_line {first_line + whole}]"

    def _write(self, path: str, content: str | None) -> str:
        if not self._files.is_writable:
            raise ToolError("the file system is read-only")
        if content is None:
            raise ToolError("write needs the argument 'content'")
        places = self._files.path_of(path)
        if not places or path.endswith("/"):
            raise ToolError(f"{path[:200]}: Is a directory")
        missing = [
            places[:depth]
            for depth in range(1, len(places))
            if self._files.find(places[:depth]) is None
        ]
        try:
            for directory in missing:
                self._files.put("/" + "/".join(directory), {})
            self._files.write("/" + "/".join(places), content)
        except ShellError:
            if missing and self._files.find(missing[0]) is not None:
                self._files.remove(missing[0])
            raise
        return f"[{len(content)} characters written]"

    def _search(self, path: str, text: str | None) -> str:
        if not text:
            raise ToolError("search needs the argument 'text'")
        node = self._files.node(path)
        base = self._files.path_of(path)
        wanted = text.lower()
        found: list[str] = []
        length = 0
        for place, entry in walk(node) if isinstance(node, dict) else [((), node)]:
            if not isinstance(entry, str):
                continue
            self._files.spend(len(entry) + 1)
            name = "/" + "/".join((*base, *place))
            for number, line in enumerate(lines_of(entry), 1):
                if wanted in line.lower():
                    found.append(f"{name}:{number}: {line[:500]}")
                    length += len(found[-1])
            if length > self._max_output:
                break
        return self._clipped("\n".join(found)) or "No line has this text."

    def _clipped(self, text: str) -> str:
        if len(text) <= self._max_output:
            return text
        return f"{text[: self._max_output]}\n[there is more, which was cut here]"
