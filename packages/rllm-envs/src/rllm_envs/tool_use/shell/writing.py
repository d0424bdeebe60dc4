"""Commands that change files: ``mkdir``, ``touch``, ``cp``, ``mv``, ``rm``, ``rmdir``, ``tee``."""

import copy

from rllm_envs.tool_use.shell.files import Files, ShellError, walk
from rllm_envs.tool_use.shell.options import read_options


def mkdir(files: Files, arguments: list[str], stdin: str) -> str:
    """Make directories; ``-p`` with those above them."""
    options = read_options(arguments, "p")
    for name in _operands(options.operands, 1):
        path = files.path_of(name)
        if "p" not in options.flags and files.find(path) is not None:
            raise ShellError(f"{name}: File exists")
        depths = range(1, len(path) + 1) if "p" in options.flags else (len(path),)
        for depth in depths:
            found = files.find(path[:depth])
            if isinstance(found, str):
                raise ShellError(f"{name}: Not a directory")
            if found is None:
                files.put("/" + "/".join(path[:depth]), {})
    return ""


def touch(files: Files, arguments: list[str], stdin: str) -> str:
    """Make empty files where there are none."""
    for name in _operands(read_options(arguments, "").operands, 1):
        if files.find(files.path_of(name)) is None:
            files.write(name, "")
    return ""


def cp(files: Files, arguments: list[str], stdin: str) -> str:
    """Copy files, or directories with ``-r``, to a name or into a directory."""
    options = read_options(arguments, "rRaf")
    for source, target in _pairs(files, options.operands):
        node = files.node(source)
        if isinstance(node, dict):
            if not options.flags & {"r", "R", "a"}:
                raise ShellError(f"{source}: Is a directory (use -r)")
            _refuse_inside(files, source, target)
        files.spend(_size(node))
        _place(files, target, copy.deepcopy(node))
    return ""


def mv(files: Files, arguments: list[str], stdin: str) -> str:
    """Move or rename files and directories."""
    options = read_options(arguments, "f")
    for source, target in _pairs(files, options.operands):
        node = files.node(source)
        path = files.path_of(source)
        if not path or path == files.cwd[: len(path)]:
            raise ShellError(f"{source}: Device or resource busy")
        if isinstance(node, dict):
            _refuse_inside(files, source, target)
        files.spend(1)
        if files.path_of(target) == path:
            raise ShellError(f"{source} and {target} are the same file")
        files.remove(path)
        try:
            _place(files, target, node)
        except ShellError:
            files.put("/" + "/".join(path), node)
            raise
    return ""


def rm(files: Files, arguments: list[str], stdin: str) -> str:
    """Remove files, or directories with ``-r``; ``-f`` accepts missing ones."""
    options = read_options(arguments, "rRf")
    for name in _operands(options.operands, 1):
        path = files.path_of(name)
        node = files.find(path)
        if node is None and "f" in options.flags:
            continue
        if isinstance(files.node(name), dict) and not options.flags & {"r", "R"}:
            raise ShellError(f"{name}: Is a directory (use -r)")
        if path == files.cwd[: len(path)]:
            raise ShellError(f"{name}: Refusing to remove the current directory")
        files.remove(path)
    return ""


def rmdir(files: Files, arguments: list[str], stdin: str) -> str:
    """Remove empty directories."""
    for name in _operands(read_options(arguments, "").operands, 1):
        path = files.path_of(name)
        if files.node(name) != {} or path == files.cwd[: len(path)]:
            raise ShellError(f"{name}: Not an empty directory")
        files.remove(path)
    return ""


def tee(files: Files, arguments: list[str], stdin: str) -> str:
    """Write the standard input to files and print it; ``-a`` appends."""
    options = read_options(arguments, "a")
    for name in options.operands:
        found = files.find(files.path_of(name))
        before = found if isinstance(found, str) and "a" in options.flags else ""
        files.write(name, before + stdin)
    return stdin


def _operands(operands: list[str], minimum: int) -> list[str]:
    if len(operands) < minimum:
        raise ShellError("missing operand")
    return operands


def _pairs(files: Files, operands: list[str]) -> list[tuple[str, str]]:
    """Return source and full target of each file to copy or move."""
    *sources, target = _operands(operands, 2)
    if not isinstance(files.find(files.path_of(target)), dict):
        if len(sources) > 1:
            raise ShellError(f"{target}: Not a directory")
        return [(sources[0], target)]
    base = target.rstrip("/")
    pairs = []
    for source in sources:
        path = files.path_of(source)
        if not path:
            raise ShellError(f"{source}: Device or resource busy")
        pairs.append((source, f"{base}/{path[-1]}"))
    return pairs


def _place(files: Files, target: str, node: dict | str) -> None:
    """Put a node at a target; a file replaces a file, nothing replaces a directory."""
    found = files.find(files.path_of(target))
    if isinstance(found, dict) or (isinstance(found, str) and isinstance(node, dict)):
        raise ShellError(f"{target}: cannot be replaced")
    files.put(target.rstrip("/") if isinstance(node, dict) else target, node)


def _refuse_inside(files: Files, source: str, target: str) -> None:
    path = files.path_of(source)
    if files.path_of(target)[: len(path)] == path:
        raise ShellError(f"{source}: cannot go into itself")


def _size(node: dict | str) -> int:
    if isinstance(node, str):
        return len(node) + 1
    return 1 + sum(len(entry) + 1 for _, entry in walk(node))
