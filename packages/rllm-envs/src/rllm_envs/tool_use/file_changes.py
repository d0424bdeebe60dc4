"""Changes of a file tree: in words, by plain Python, and by one command line."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.file_world import KEYS, LEVELS, WORDS, files_below
from rllm_envs.tool_use.shell.files import Tree, lines_of, text_of, walk

Arguments = dict[str, str]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One kind of change; ``words`` and ``command`` are formatted with the arguments."""

    names: tuple[str, ...]
    """Names of the arguments, each a text."""
    words: str
    """The instruction."""
    draw: Callable[[Draws, Tree], Arguments]
    """Random arguments; they need not fit, see ``changed``."""
    apply: Callable[[Tree, Arguments], bool]
    """Changes a tree in place; False where the change is not possible."""
    command: Callable[[Tree, Arguments], str]
    """A command line that does it."""


def changed(tree: Tree, kind: str, arguments: Arguments) -> Tree | None:
    """Return a changed copy of a tree, or None where nothing would change or it cannot be done."""
    result = copy.deepcopy(tree)
    is_done = CHANGES[kind].apply(result, arguments)
    return result if is_done and result != tree else None


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _find(tree: Tree, path: str) -> Tree | str | None:
    node: Tree | str | None = tree
    for name in _names(path):
        node = node.get(name) if isinstance(node, dict) else None
    return node


def _add(tree: Tree, path: str, node: Tree | str) -> bool:
    """Put a node where nothing is yet, in a directory that exists."""
    *above, name = _names(path) or [""]
    parent = _find(tree, "/".join(above))
    if not isinstance(parent, dict) or not name or name in parent:
        return False
    parent[name] = node
    return True


def _replace(tree: Tree, path: str, edit: Callable[[list[str]], list[str]]) -> bool:
    """Edit the lines of a file that exists."""
    *above, name = _names(path) or [""]
    parent = _find(tree, "/".join(above))
    if not isinstance(parent, dict) or not isinstance(parent.get(name), str):
        return False
    parent[name] = text_of(edit(lines_of(parent[name])))
    return True


def _file(draws: Draws, tree: Tree) -> str:
    return draws.pick(sorted(files_below(tree)) or ["/"])


def _directory(draws: Draws, tree: Tree) -> str:
    paths = ["/" + "/".join(path) for path, node in walk(tree) if isinstance(node, dict)]
    return draws.pick(paths or ["/"])


def _fresh(draws: Draws, tree: Tree, ending: str = "") -> str:
    parent = draws.pick(["", *(f"/{name}" for name in sorted(tree) if _is_directory(tree, name))])
    return f"{parent}/{draws.pick(WORDS)}{ending}"


def _is_directory(tree: Tree, name: str) -> bool:
    return isinstance(tree[name], dict)


def _word_in(draws: Draws, tree: Tree, file: str) -> str:
    """Return a word of letters that the file contains, most often."""
    content = files_below(tree).get(file, "")
    words = sorted({word for word in content.split() if word.isascii() and word.isalpha()})
    return draws.pick(words or [*LEVELS, *KEYS])


def _with_word(draws: Draws, tree: Tree) -> Arguments:
    file = _file(draws, tree)
    return {"file": file, "word": _word_in(draws, tree, file)}


def _move(tree: Tree, arguments: Arguments) -> bool:
    source, ending = _find(tree, arguments["source"]), f".{arguments['ending']}"
    if not isinstance(source, dict) or not _add(tree, arguments["target"], {}):
        return False
    target = _find(tree, arguments["target"])
    names = [name for name in source if name.endswith(ending) and isinstance(source[name], str)]
    for name in names:
        target[name] = source.pop(name)  # type: ignore[index, union-attr]
    return bool(names)


def _rename(tree: Tree, arguments: Arguments) -> bool:
    directory, _, old = arguments["file"].rpartition("/")
    parent = _find(tree, directory)
    is_file = isinstance(parent, dict) and isinstance(parent.get(old), str)
    if not isinstance(parent, dict) or not is_file or "/" in arguments["name"]:
        return False
    if not _add(tree, f"{directory}/{arguments['name']}", parent[old]):
        return False
    del parent[old]
    return True


def _below(tree: Tree, arguments: Arguments) -> list[str]:
    paths = files_below(tree, tuple(_names(arguments["directory"])))
    return [path for path in paths if path.endswith(f".{arguments['ending']}")]


def _delete(tree: Tree, arguments: Arguments) -> bool:
    paths = _below(tree, arguments)
    for path in paths:
        directory, _, name = path.rpartition("/")
        parent = _find(tree, directory)
        assert isinstance(parent, dict)
        del parent[name]
    return bool(paths)


def _copy(tree: Tree, arguments: Arguments) -> bool:
    source = _find(tree, arguments["source"])
    is_inside = (arguments["target"] + "/").startswith(arguments["source"].rstrip("/") + "/")
    if not isinstance(source, dict) or is_inside:
        return False
    return _add(tree, arguments["target"], copy.deepcopy(source))


def _derive(tree: Tree, arguments: Arguments, lines: Callable[[list[str]], list[str]]) -> bool:
    content = _find(tree, arguments["file"])
    if not isinstance(content, str):
        return False
    return _add(tree, arguments["target"], text_of(lines(lines_of(content))))


def _sentence(draws: Draws) -> str:
    return " ".join(draws.sample(WORDS, 3))


CHANGES = {
    "move": FileChange(
        ("source", "ending", "target"),
        "Make the directory {target} and move all files that end in .{ending} from {source} (not "
        "from the directories below it) into it.",
        lambda draws, tree: {
            "source": _directory(draws, tree),
            "ending": draws.pick(("log", "txt", "md", "csv", "conf")),
            "target": _fresh(draws, tree),
        },
        _move,
        lambda tree, a: f"mkdir {a['target']} && mv {a['source']}/*.{a['ending']} {a['target']}",
    ),
    "rename": FileChange(
        ("file", "name"),
        "Rename the file {file} to {name}, in the same directory.",
        lambda draws, tree: {"file": _file(draws, tree), "name": f"{draws.pick(WORDS)}.old"},
        _rename,
        lambda tree, a: f"mv {a['file']} {a['file'].rpartition('/')[0]}/{a['name']}",
    ),
    "delete": FileChange(
        ("directory", "ending"),
        "Delete all files that end in .{ending} in {directory} and in all directories below it.",
        lambda draws, tree: {
            "directory": _directory(draws, tree),
            "ending": draws.pick(("log", "txt", "md", "tmp")),
        },
        _delete,
        lambda tree, a: "rm " + " ".join(_below(tree, a)),
    ),
    "copy": FileChange(
        ("source", "target"),
        "Copy the directory {source} with all that is in it; the copy is called {target}.",
        lambda draws, tree: {"source": _directory(draws, tree), "target": _fresh(draws, tree)},
        _copy,
        lambda tree, a: f"cp -r {a['source']} {a['target']}",
    ),
    "write": FileChange(
        ("target", "text"),
        "Make the file {target} with one line: {text}",
        lambda draws, tree: {"target": _fresh(draws, tree, ".txt"), "text": _sentence(draws)},
        lambda tree, a: _add(tree, a["target"], a["text"] + "\n"),
        lambda tree, a: f"echo '{a['text']}' > {a['target']}",
    ),
    "append": FileChange(
        ("file", "text"),
        "Add this line at the end of {file}: {text}",
        lambda draws, tree: {"file": _file(draws, tree), "text": _sentence(draws)},
        lambda tree, a: _replace(tree, a["file"], lambda lines: [*lines, a["text"]]),
        lambda tree, a: f"echo '{a['text']}' >> {a['file']}",
    ),
    "replace": FileChange(
        ("file", "word", "text"),
        "In {file}, replace each '{word}' (also inside of longer words) by '{text}'.",
        lambda draws, tree: _with_word(draws, tree) | {"text": draws.pick(WORDS)},
        lambda tree, a: _replace(
            tree, a["file"], lambda lines: [line.replace(a["word"], a["text"]) for line in lines]
        ),
        lambda tree, a: f"sed -i 's/{a['word']}/{a['text']}/g' {a['file']}",
    ),
    "remove_lines": FileChange(
        ("file", "word"),
        "In {file}, remove all lines that contain '{word}' (also inside of longer words).",
        _with_word,
        lambda tree, a: _replace(
            tree, a["file"], lambda lines: [line for line in lines if a["word"] not in line]
        ),
        lambda tree, a: f"sed -i '/{a['word']}/d' {a['file']}",
    ),
    "sort": FileChange(
        ("file", "target"),
        "Write the lines of {file}, sorted and each only once, into the new file {target}.",
        lambda draws, tree: {"file": _file(draws, tree), "target": _fresh(draws, tree, ".sorted")},
        lambda tree, a: _derive(tree, a, lambda lines: sorted(set(lines))),
        lambda tree, a: f"sort -u {a['file']} > {a['target']}",
    ),
    "count": FileChange(
        ("file", "word", "target"),
        "Write into the new file {target} only the number of lines of {file} that contain '{word}' "
        "(also inside of longer words).",
        lambda draws, tree: _with_word(draws, tree) | {"target": _fresh(draws, tree, ".count")},
        lambda tree, a: _derive(
            tree, a, lambda lines: [str(sum(a["word"] in line for line in lines))]
        ),
        lambda tree, a: f"grep -c {a['word']} {a['file']} > {a['target']}",
    ),
}
"""All kinds of changes by name."""
