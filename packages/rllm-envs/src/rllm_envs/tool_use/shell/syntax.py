"""Read a command line: quotes, patterns for names, pipes, redirections and lists."""

import fnmatch
from dataclasses import dataclass, field

from rllm_envs.tool_use.shell.files import Files, Path, ShellError

_OPERATORS = ("&&", "||", ">>", "|", ";", ">", "<", "&", "\n")
_IGNORED = ("2>/dev/null", "2>&1")


@dataclass(slots=True)
class Word:
    """One word; ``wild`` marks the characters that stood outside of quotes."""

    text: str = ""
    """The word without quotes."""
    wild: list[bool] = field(default_factory=list)
    """Per character: whether ``*``, ``?`` and ``[`` are special there."""
    is_operator: bool = False
    """Whether this is one of the shell's own signs."""


@dataclass(slots=True)
class Call:
    """One command of a pipeline."""

    words: list[Word] = field(default_factory=list)
    """Name and arguments, not yet expanded."""
    target: Word | None = None
    """File that takes the output."""
    appends: bool = False
    """Whether the output goes to the end of ``target``."""


@dataclass(slots=True)
class Pipeline:
    """Commands joined by pipes, and when they are run."""

    calls: list[Call]
    """At least one."""
    condition: str
    """What stands before it: ";" always, "&&" after success, "||" after failure."""


def read_line(line: str) -> list[Pipeline]:
    """Return the pipelines of a command line.

    Raises:
        ShellError: A quote is open, an operator misses its operand, or a sign is not supported.
    """
    pipelines: list[Pipeline] = []
    condition, calls, call = ";", [], Call()
    words = iter([*_words(line), Word(";", is_operator=True)])
    for word in words:
        if not word.is_operator:
            call.words.append(word)
        elif word.text in (">", ">>"):
            call.target, call.appends = next(words), word.text == ">>"
            if call.target.is_operator:
                raise ShellError(f"syntax error near {word.text}")
        elif word.text in ("<", "&"):
            raise ShellError(f"{word.text} is not supported in this shell")
        else:
            is_empty = not call.words
            if is_empty and (calls or call.target or word.text == "|" or condition != ";"):
                raise ShellError(f"syntax error near {word.text.strip() or 'the end of the line'}")
            if not is_empty:
                calls.append(call)
            call = Call()
            if word.text != "|":
                if calls:
                    pipelines.append(Pipeline(calls, condition))
                condition, calls = word.text if word.text in ("&&", "||") else ";", []
    return pipelines


def _words(line: str) -> list[Word]:
    words: list[Word] = []
    place = 0
    while place < len(line):
        operator = next((sign for sign in _OPERATORS if line.startswith(sign, place)), "")
        ignored = next((sign for sign in _IGNORED if line.startswith(sign, place)), "")
        if ignored:
            place += len(ignored)
        elif operator:
            words.append(Word(operator, is_operator=True))
            place += len(operator)
        elif line[place].isspace():
            place += 1
        elif line[place] == "#":
            place = (line + "\n").index("\n", place)
        else:
            word, place = _word(line, place)
            words.append(word)
    return words


def _word(line: str, place: int) -> tuple[Word, int]:
    """Return the word at a place, and the place after it."""
    word = Word()
    while place < len(line) and not line[place].isspace():
        char = line[place]
        if char in "|;><&":
            break
        if char in "'\"":
            end = _end_of_quote(line, place)
            _add_quoted(word, line[place + 1 : end], char)
            place = end + 1
            continue
        if char == "\\" and place + 1 < len(line):
            place += 1
            char, is_wild = line[place], False
        else:
            is_wild = True
            _refuse_substitution(char, line[place + 1 : place + 2])
        word.text += char
        word.wild.append(is_wild)
        place += 1
    return word, place


def _end_of_quote(line: str, place: int) -> int:
    quote, end = line[place], place + 1
    while end < len(line) and line[end] != quote:
        end += 2 if line[end] == "\\" and quote == '"' else 1
    if end >= len(line):
        raise ShellError(f"unexpected end of line while looking for {quote}")
    return end


def _add_quoted(word: Word, content: str, quote: str) -> None:
    place = 0
    while place < len(content):
        char = content[place]
        following = content[place + 1 : place + 2]
        if quote == '"':
            _refuse_substitution(char, following)
            if char == "\\" and following and following in '"\\$`':
                place += 1
                char = following
        word.text += char
        word.wild.append(False)
        place += 1


def _refuse_substitution(char: str, following: str) -> None:
    is_variable = char == "$" and (following in ("(", "{", "_") or following.isalpha())
    if char == "`" or is_variable:
        raise ShellError("variables and substitutions are not supported in this shell")


def expand(files: Files, word: Word) -> list[str]:
    """Return the paths that a word with ``*``, ``?`` or ``[`` matches, or else the word itself."""
    is_wild = [char in "*?[" and wild for char, wild in zip(word.text, word.wild, strict=True)]
    if not any(is_wild):
        return [word.text]
    pattern = "".join(
        f"[{char}]" if char in "*?[" and not wild else char
        for char, wild in zip(word.text, is_wild, strict=True)
    )
    names = pattern.split("/")
    found: list[tuple[str, Path]] = [("", files.cwd)]
    if pattern.startswith("/"):
        names, found = names[1:], [("/", ())]
    for number, name in enumerate(names):
        is_last = number == len(names) - 1
        found = [
            (f"{shown}{entry}" + ("" if is_last else "/"), path)
            for shown, directory in found
            for entry, path in _entries(files, directory, name)
        ]
    return sorted(shown for shown, _ in found) or [word.text]


def _entries(files: Files, directory: Path, pattern: str) -> list[tuple[str, Path]]:
    node = files.find(directory)
    if not isinstance(node, dict):
        return []
    if pattern in ("", ".", ".."):
        return [(pattern, directory[:-1] if pattern == ".." else directory)]
    files.spend(1 + len(node) * len(pattern))
    return [
        (name, (*directory, name))
        for name in node
        if fnmatch.fnmatchcase(name, pattern)
        and (not name.startswith(".") or pattern.startswith("."))
    ]
