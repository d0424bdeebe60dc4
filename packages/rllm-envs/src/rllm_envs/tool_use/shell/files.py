"""``Files``: a tree of directories and texts in memory, a current directory, a budget of work."""

from collections.abc import Iterator
from typing import Any

from rllm_envs.tool_use.fields import is_name, need

Tree = dict[str, Any]
"""Directory: name to ``Tree`` or to the text of a file."""
Path = tuple[str, ...]
"""Names from the root down; the root is ()."""
MAX_WORK = 400_000
"""Characters read, written or compared, and entries visited, by one command line."""
MAX_FILE_LENGTH = 8000
MAX_FILES = 500
MAX_NAME_LENGTH = 60
MAX_DEPTH = 12


class ShellError(Exception):
    """A command fails; the message is what the shell prints."""


class Files:
    """Where the commands of a shell work. Nothing of it is on a disk.

    Args:
        tree: The root directory; commands that write change it in place.
        is_writable: Whether commands that write are permitted.
    """

    def __init__(self, tree: Tree, *, is_writable: bool = False) -> None:
        self.tree = tree
        self.is_writable = is_writable
        self.cwd: Path = ()
        self._work = 0

    def restart_budget(self) -> None:
        """Let the next command line begin with the full budget."""
        self._work = 0

    def spend(self, amount: int) -> None:
        """Count work.

        Raises:
            ShellError: The command line has done ``MAX_WORK`` already.
        """
        self._work += amount
        if self._work > MAX_WORK:
            raise ShellError("the command takes too long and is stopped")

    def path_of(self, text: str) -> Path:
        """Return the path that a text means, seen from the current directory."""
        names = [] if text.startswith("/") else list(self.cwd)
        for name in text.split("/"):
            if name == "..":
                names = names[:-1]
            elif name not in ("", "."):
                names.append(name)
        return tuple(names)

    def find(self, path: Path) -> Tree | str | None:
        """Return what is at a path, or None."""
        node: Any = self.tree
        for name in path:
            if not isinstance(node, dict) or name not in node:
                return None
            node = node[name]
        return node

    def node(self, text: str) -> Tree | str:
        """Return what a text names.

        Raises:
            ShellError: There is no such file or directory.
        """
        found = self.find(self.path_of(text))
        if found is None or (isinstance(found, str) and text.endswith("/")):
            raise ShellError(f"{text}: No such file or directory")
        return found

    def read(self, text: str) -> str:
        """Return the content of a file.

        Raises:
            ShellError: It does not exist or is a directory.
        """
        found = self.node(text)
        if isinstance(found, dict):
            raise ShellError(f"{text}: Is a directory")
        self.spend(len(found) + 1)
        return found

    def write(self, text: str, content: str) -> None:
        """Put content into a file, which is made if need be.

        Raises:
            ShellError: The place is no file in an existing directory, or a limit is exceeded.
        """
        path = self.path_of(text)
        if isinstance(self.find(path), dict):
            raise ShellError(f"{text}: Is a directory")
        if len(content) > MAX_FILE_LENGTH:
            raise ShellError(f"{text}: File too large")
        self.spend(len(content) + 1)
        self.put(text, content)

    def put(self, text: str, node: Tree | str) -> None:
        """Put a file or directory at a place whose directory exists.

        Raises:
            ShellError: The directory does not exist, or a limit is exceeded.
        """
        path = self.path_of(text)
        parent = self.find(path[:-1])
        if not path or (text.endswith("/") and not isinstance(node, dict)):
            raise ShellError(f"{text}: Is a directory")
        if not isinstance(parent, dict):
            raise ShellError(f"{text}: No such file or directory")
        if len(path[-1]) > MAX_NAME_LENGTH or not path[-1].isprintable():
            raise ShellError(f"{text[:80]}: File name too long or not printable")
        before = parent.get(path[-1])
        parent[path[-1]] = node
        entries = list(walk(self.tree))
        self.spend(len(entries))
        if len(entries) > MAX_FILES or max(len(p) for p, _ in entries) > MAX_DEPTH:
            if before is None:
                del parent[path[-1]]
            else:
                parent[path[-1]] = before
            raise ShellError(f"{text}: No space left")

    def remove(self, path: Path) -> None:
        """Remove what is at a path that exists and is not the root."""
        parent = self.find(path[:-1])
        assert isinstance(parent, dict)
        del parent[path[-1]]


def walk(tree: Tree, path: Path = ()) -> Iterator[tuple[Path, Tree | str]]:
    """Yield all entries below a directory with their paths, sorted by name, parents first."""
    for name in sorted(tree):
        node = tree[name]
        yield (*path, name), node
        if isinstance(node, dict):
            yield from walk(node, (*path, name))


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; a last line need not end with a newline."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def text_of(lines: list[str]) -> str:
    """Return lines as a text in which each ends with a newline."""
    return "".join(f"{line}\n" for line in lines)


def check_tree(tree: object) -> Tree:
    """Return a given tree if it is a directory within the limits.

    Raises:
        TaskError: A name, a content, the number or the depth of entries is not allowed.
    """
    need(isinstance(tree, dict), "a file tree must be an object", tree)
    assert isinstance(tree, dict)
    pending: list[tuple[Tree, int]] = [(tree, 1)]
    count = 0
    while pending:
        directory, depth = pending.pop()
        need(depth <= MAX_DEPTH, f"directories may be {MAX_DEPTH} deep", depth)
        for name, node in directory.items():
            count += 1
            is_plain = (
                is_name(name, MAX_NAME_LENGTH) and "/" not in name and name not in (".", "..")
            )
            need(is_plain, f"a file name has 1 to {MAX_NAME_LENGTH} characters without /", name)
            is_file = isinstance(node, str) and len(node) <= MAX_FILE_LENGTH
            need(
                is_file or isinstance(node, dict),
                f"{name!r} must be a directory or a text of at most {MAX_FILE_LENGTH} characters",
                node,
            )
            if isinstance(node, dict):
                pending.append((node, depth + 1))
    need(count <= MAX_FILES, f"a tree has at most {MAX_FILES} entries", count)
    return tree
