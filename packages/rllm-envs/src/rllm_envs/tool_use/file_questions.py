"""Questions about a file tree: in words, by plain Python, and by one command line."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.file_world import COLUMNS, EVENTS, KEYS, LEVELS, files_below
from rllm_envs.tool_use.shell.files import Tree, lines_of

Arguments = dict[str, str]


@dataclass(frozen=True, slots=True)
class FileQuestion:
    """One kind of question; texts are formatted with the arguments."""

    names: tuple[str, ...]
    """Names of the arguments, each a text."""
    words: str
    """The question."""
    command: str
    """A command line whose last word (last field after "=") is the answer."""
    draw: Callable[[Draws, Tree], Arguments]
    """Random arguments that fit a tree."""
    answer: Callable[[Tree, Arguments], str]
    """The answer, or "" where none is unique."""


def _path(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split("/") if name)


def _rows(tree: Tree, file: str) -> list[list[str]]:
    return [line.split(",") for line in lines_of(files_below(tree).get(file, ""))[1:]]


def _column(tree: Tree, arguments: Arguments) -> list[str]:
    number = int(arguments["number"]) - 1 if arguments["number"].isdigit() else 99
    rows = _rows(tree, arguments["file"])
    return [row[number] for row in rows if 0 <= number < len(row)]


def _draw_column(draws: Draws, tree: Tree) -> Arguments:
    number = draws.between(2, 3)
    file = draws.pick(sorted(files_below(tree, ("data",))))
    return {"file": file, "column": COLUMNS[number - 1], "number": str(number)}


def _single(values: list[str]) -> str:
    return values[0] if len(values) == 1 else ""


def _most(counts: dict[str, int]) -> str:
    top = max(counts.values(), default=0)
    return _single([value for value, count in counts.items() if count == top])


def _draw_ending(draws: Draws, tree: Tree) -> Arguments:
    directory = draws.pick(["/logs", "/notes", *(f"/logs/{name}" for name in sorted(tree["logs"]))])
    endings = ("log", "txt") if directory.startswith("/logs") else ("txt", "md", "tmp")
    return {"directory": directory, "ending": draws.pick(endings)}


def _count_ending(tree: Tree, arguments: Arguments) -> str:
    paths = files_below(tree, _path(arguments["directory"]))
    return str(sum(path.endswith(f".{arguments['ending']}") for path in paths))


def _draw_lines(draws: Draws, tree: Tree) -> Arguments:
    directory = draws.pick(["/logs", *(f"/logs/{name}" for name in sorted(tree["logs"]))])
    return {"directory": directory, "text": draws.pick((*LEVELS, *EVENTS))}


def _count_lines(tree: Tree, arguments: Arguments) -> str:
    contents = files_below(tree, _path(arguments["directory"])).values()
    lines = [line for content in contents for line in lines_of(content)]
    return str(sum(arguments["text"] in line for line in lines))


def _draw_ticket(draws: Draws, tree: Tree) -> Arguments:
    content = draws.pick(list(files_below(tree, ("notes",)).values()))
    return {"text": next(line for line in lines_of(content) if line.startswith("ticket"))}


def _where(tree: Tree, arguments: Arguments) -> str:
    found = [path for path, content in files_below(tree).items() if arguments["text"] in content]
    return _single(found)


def _draw_setting(draws: Draws, tree: Tree) -> Arguments:
    file = draws.pick(sorted(files_below(tree, ("config",)))).rpartition("/")[2]
    return {"service": file.partition(".")[0], "key": draws.pick(KEYS)}


def _setting(tree: Tree, arguments: Arguments) -> str:
    return _single(
        [
            line.partition("=")[2]
            for path, content in files_below(tree).items()
            for line in lines_of(content)
            if path.endswith(f"/{arguments['service']}.conf")
            and line.startswith(f"{arguments['key']}=")
        ]
    )


def _draw_best_paid(draws: Draws, tree: Tree) -> Arguments:
    file = draws.pick(sorted(files_below(tree, ("data",))))
    rows = _rows(tree, file)
    return {"file": file, "department": draws.pick(rows)[1]}


def _best_paid(tree: Tree, arguments: Arguments) -> str:
    rows = [
        row
        for row in _rows(tree, arguments["file"])
        if len(row) == 4 and row[1] == arguments["department"] and row[3].isdigit()
    ]
    top = max((int(row[3]) for row in rows), default=0)
    return _single([row[0] for row in rows if int(row[3]) == top])


def _draw_longest(draws: Draws, tree: Tree) -> Arguments:
    return {"directory": "/logs/" + draws.pick(sorted(tree["logs"]))}


def _longest(tree: Tree, arguments: Arguments) -> str:
    contents = files_below(tree, _path(arguments["directory"]))
    return _most({path: len(lines_of(content)) for path, content in contents.items()})


QUESTIONS = {
    "count_files": FileQuestion(
        ("directory", "ending"),
        "How many files whose names end in .{ending} are in {directory} or anywhere below it?",
        "find {directory} -type f -name '*.{ending}' | wc -l",
        _draw_ending,
        _count_ending,
    ),
    "count_lines": FileQuestion(
        ("directory", "text"),
        "How many lines in all files of {directory} and below contain '{text}'?",
        "grep -rF '{text}' {directory} | wc -l",
        _draw_lines,
        _count_lines,
    ),
    "where": FileQuestion(
        ("text",),
        "Which file contains the text '{text}'? Answer with its full path.",
        "grep -rlF '{text}' /",
        _draw_ticket,
        _where,
    ),
    "setting": FileQuestion(
        ("service", "key"),
        "What value has the setting {key} of the service {service} in its .conf file?",
        "grep -r '^{key}=' / | grep '/{service}.conf:'",
        _draw_setting,
        _setting,
    ),
    "best_paid": FileQuestion(
        ("file", "department"),
        "Who has the highest salary of the department {department} in {file}? Give the name.",
        "grep ',{department},' {file} | sort -t , -k 4 -n | tail -n 1 | cut -d , -f 1",
        _draw_best_paid,
        _best_paid,
    ),
    "distinct": FileQuestion(
        ("file", "column", "number"),
        "How many different values has the column {column} of {file}?",
        "tail -n +2 {file} | cut -d , -f {number} | sort -u | wc -l",
        _draw_column,
        lambda tree, arguments: str(len(set(_column(tree, arguments)))),
    ),
    "most_common": FileQuestion(
        ("file", "column", "number"),
        "Which value is the most common one in the column {column} of {file}?",
        "tail -n +2 {file} | cut -d , -f {number} | sort | uniq -c | sort -n | tail -n 1",
        _draw_column,
        lambda tree, arguments: _most(Counter(_column(tree, arguments))),
    ),
    "longest": FileQuestion(
        ("directory",),
        "Which file of {directory} has the most lines? Answer with its full path.",
        "wc -l {directory}/* | sort -n | tail -n 2 | head -n 1",
        _draw_longest,
        _longest,
    ),
}
"""All kinds of questions by name."""
