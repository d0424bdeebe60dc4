"""Commands about directories: ``pwd``, ``cd``, ``ls``, ``find``."""

import fnmatch

from rllm_envs.tool_use.shell.files import Files, Path, ShellError, Tree, text_of, walk
from rllm_envs.tool_use.shell.options import read_options


def pwd(files: Files, arguments: list[str], stdin: str) -> str:
    """Print the current directory."""
    read_options(arguments, "")
    return "/" + "/".join(files.cwd) + "\n"


def cd(files: Files, arguments: list[str], stdin: str) -> str:
    """Change the current directory; without an operand to the root."""
    operands = read_options(arguments, "").operands or ["/"]
    if len(operands) > 1:
        raise ShellError("too many arguments")
    if not isinstance(files.node(operands[0]), dict):
        raise ShellError(f"{operands[0]}: Not a directory")
    files.cwd = files.path_of(operands[0])
    return ""


def ls(files: Files, arguments: list[str], stdin: str) -> str:
    """List directories, one name per line; ``-l`` with sizes, ``-a`` hidden ones, ``-R`` deep."""
    options = read_options(arguments, "laARp1hF")
    operands = options.operands or ["."]
    plain = [name for name in operands if isinstance(files.node(name), str)]
    blocks = [text_of([_entry(name, files.read(name), options.flags) for name in plain])]
    is_titled = len(operands) > 1 or "R" in options.flags
    for name in operands:
        node = files.node(name)
        if isinstance(node, dict):
            blocks += _blocks(files, name, node, options.flags, is_titled)
    return "\n".join(block for block in blocks if block)


def _blocks(files: Files, name: str, tree: Tree, flags: set[str], is_titled: bool) -> list[str]:
    files.spend(1 + len(tree))
    shown = sorted(entry for entry in tree if flags & {"a", "A"} or not entry.startswith("."))
    title = f"{name}:\n" if is_titled else ""
    blocks = [title + text_of([_entry(entry, tree[entry], flags) for entry in shown])]
    if "R" in flags:
        for entry in shown:
            if isinstance(tree[entry], dict):
                blocks += _blocks(files, f"{name.rstrip('/')}/{entry}", tree[entry], flags, True)
    return blocks


def _entry(name: str, node: Tree | str, flags: set[str]) -> str:
    is_directory = isinstance(node, dict)
    suffix = "/" if is_directory and flags & {"p", "F"} else ""
    if "l" not in flags:
        return name + suffix
    size = 0 if isinstance(node, dict) else len(node.encode("utf-8", "replace"))
    return f"{'drwxr-xr-x' if is_directory else '-rw-r--r--'} {size:6d} {name}{suffix}"


def find(files: Files, arguments: list[str], stdin: str) -> str:
    """Print the paths below the operands that pass all tests.

    Tests: ``-name``, ``-iname``, ``-type``, ``-maxdepth``, ``-mindepth``, ``-empty``, and ``!`` or
    ``-not`` before one.
    """
    starts: list[str] = []
    rest = list(arguments)
    while rest and not rest[0].startswith(("-", "!")):
        starts.append(rest.pop(0))
    tests = _read_tests(rest)
    found = []
    for start in starts or ["."]:
        node = files.node(start)
        entries: list[tuple[Path, Tree | str]] = [((), node)]
        if isinstance(node, dict):
            entries += walk(node)
        files.spend(len(entries))
        base = start.rstrip("/")
        for path, entry in entries:
            shown = "/".join((base, *path)) if path else start
            name = path[-1] if path else (files.path_of(start) or ("/",))[-1]
            if all(_passes(test, value, name, len(path), entry) for test, value in tests):
                found.append(shown)
    return text_of(found)


def _read_tests(words: list[str]) -> list[tuple[str, str]]:
    """Return tests with their values; a test with "!" before it is inverted."""
    tests = []
    rest = list(words)
    inversion = ""
    while rest:
        word = rest.pop(0)
        if word in ("!", "-not"):
            inversion = "!"
            continue
        if word in ("-print", "-a", "-and"):
            continue
        value = ""
        if word in ("-name", "-iname", "-type", "-maxdepth", "-mindepth"):
            if not rest:
                raise ShellError(f"{word} needs a value")
            value = rest.pop(0)
        elif word != "-empty":
            raise ShellError(f"{word[:40]} is not supported")
        if word == "-type" and value not in ("f", "d"):
            raise ShellError("-type needs f or d")
        if word.endswith("depth") and not (value.isascii() and value.isdigit() and len(value) < 4):
            raise ShellError(f"{word} needs a number")
        tests.append((inversion + word, value))
        inversion = ""
    return tests


def _passes(test: str, value: str, name: str, depth: int, node: Tree | str) -> bool:
    if test.startswith("!"):
        return not _passes(test[1:], value, name, depth, node)
    if test == "-name":
        return fnmatch.fnmatchcase(name, value)
    if test == "-iname":
        return fnmatch.fnmatchcase(name.lower(), value.lower())
    if test == "-type":
        return isinstance(node, dict) == (value == "d")
    if test == "-maxdepth":
        return depth <= int(value)
    if test == "-mindepth":
        return depth >= int(value)
    return not node
