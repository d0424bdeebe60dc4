"""Commands with patterns: ``grep`` and ``sed``."""

import re
from collections.abc import Callable

from rllm_envs.tool_use.shell.files import Files, ShellError, lines_of, text_of, walk
from rllm_envs.tool_use.shell.options import Options, read_options
from rllm_envs.tool_use.shell.patterns import Pattern
from rllm_envs.tool_use.shell.text import inputs

Edit = Callable[[int, int, str], tuple[str | None, bool]]
"""From line number, number of lines and line to the line (None: deleted), and whether to print."""


def grep(files: Files, arguments: list[str], stdin: str) -> str:
    """Print the lines that match a pattern.

    ``-r`` below directories, ``-i`` whatever the case, ``-n`` with numbers, ``-c`` only counts,
    ``-l`` only names, ``-v`` those that do not match, ``-w`` whole words, ``-o`` only the matches,
    ``-h`` without names, ``-H`` with names, ``-E`` extended, ``-F`` fixed, ``-e`` pattern.
    """
    options = read_options(arguments, "rRinclvwohHEFsq", "e")
    operands = list(options.operands)
    if "e" not in options.values and not operands:
        raise ShellError("give a pattern, as in grep word file")
    text = options.values["e"] if "e" in options.values else operands.pop(0)
    flags = options.flags
    pattern = Pattern(
        text, extended="E" in flags, fixed="F" in flags, ignore_case="i" in flags, word="w" in flags
    )
    is_deep = bool(flags & {"r", "R"})
    names = _files_below(files, operands or ["."]) if is_deep else operands
    is_named = (is_deep or len(names) > 1 or "H" in flags) and "h" not in flags
    found: list[str] = []
    has_match = False
    for name, content in inputs(files, names, stdin) if names or not is_deep else ():
        lines = _matching(files, pattern, content, options)
        has_match = has_match or bool(lines)
        if "l" in flags:
            found += [name] if lines else []
        elif "c" in flags:
            count = len({number for number, _ in lines})
            found.append(f"{name}:{count}" if is_named else str(count))
        else:
            found += [
                (f"{name}:" if is_named else "") + (f"{number}:" if "n" in flags else "") + line
                for number, line in lines
            ]
    if not has_match and "c" not in flags:
        # As in any shell, "no line" is a failure without a message: && stops, || goes on.
        raise ShellError("")
    return "" if "q" in flags else text_of(found)


def _files_below(files: Files, operands: list[str]) -> list[str]:
    names = []
    for operand in operands:
        node = files.node(operand)
        if isinstance(node, str):
            names.append(operand)
            continue
        base = "" if operand == "." else f"{operand.rstrip('/')}/"
        entries = list(walk(node))
        files.spend(len(entries))
        names += [base + "/".join(path) for path, entry in entries if isinstance(entry, str)]
    return names


def _matching(
    files: Files, pattern: Pattern, content: str, options: Options
) -> list[tuple[int, str]]:
    """Return number and text of the matching lines, or of the matches if only those are wanted."""
    is_inverted = "v" in options.flags
    found = []
    for number, line in enumerate(lines_of(content), 1):
        span = pattern.find(line, files.spend)
        if "o" in options.flags and not is_inverted:
            while span is not None:
                if span[1] > span[0]:
                    found.append((number, line[slice(*span)]))
                begin = max(span[1], span[0] + 1)
                span = pattern.find(line, files.spend, begin) if begin <= len(line) else None
        elif (span is None) == is_inverted:
            found.append((number, line))
    return found


def sed(files: Files, arguments: list[str], stdin: str) -> str:
    """Edit lines: ``s/old/new/g``, ``3d``, ``/word/d``, ``2,4p`` with ``-n``; ``-i`` in place."""
    options = read_options(arguments, "niEr", "e")
    operands = list(options.operands)
    if "e" not in options.values and not operands:
        raise ShellError("give a script, as in sed s/old/new/ file")
    script = options.values["e"] if "e" in options.values else operands.pop(0)
    edit = _read_edit(files, script, bool(options.flags & {"E", "r"}))
    is_quiet = "n" in options.flags
    if "i" not in options.flags:
        text = "".join(content for _, content in inputs(files, operands, stdin))
        return _edited(text, edit, is_quiet)
    if not files.is_writable:
        raise ShellError("-i: the file system is read-only")
    if not operands:
        raise ShellError("no input files")
    for name in operands:
        files.write(name, _edited(files.read(name), edit, is_quiet))
    return ""


def _edited(text: str, edit: Edit, is_quiet: bool) -> str:
    lines = lines_of(text)
    result = []
    for number, line in enumerate(lines, 1):
        edited, is_printed = edit(number, len(lines), line)
        if edited is not None:
            result += [edited] * (is_printed + (not is_quiet))
    return text_of(result)


def _read_edit(files: Files, script: str, extended: bool) -> Edit:
    """Return the one edit of a script: an address (maybe none), and ``s``, ``d`` or ``p``."""
    script = script.strip()
    address, rest = _read_address(files, script, extended)
    if rest in ("d", "p"):

        def delete_or_print(number: int, total: int, line: str) -> tuple[str | None, bool]:
            is_meant = address(number, total, line)
            return (None if is_meant and rest == "d" else line), is_meant and rest == "p"

        return delete_or_print
    if len(rest) < 2 or rest[0] != "s" or rest[1].isalnum() or rest[1] in "\\ ":
        raise ShellError(
            f"cannot read the script '{script[:60]}' (known: s/old/new/g, 3d, /word/d)"
        )
    parts = re.split(rf"(?<!\\){re.escape(rest[1])}", rest[2:])
    if len(parts) != 3 or parts[2].strip("gIip"):
        raise ShellError(f"unterminated or unknown s command '{script[:60]}'")
    old, new = (part.replace("\\" + rest[1], rest[1]) for part in parts[:2])
    pattern = Pattern(old, extended=extended, ignore_case=bool(set(parts[2]) & {"I", "i"}))

    def substitute(number: int, total: int, line: str) -> tuple[str | None, bool]:
        if not address(number, total, line):
            return line, False
        text, has_changed = _substituted(files, pattern, line, new, "g" in parts[2])
        return text, has_changed and "p" in parts[2]

    return substitute


def _substituted(
    files: Files, pattern: Pattern, line: str, new: str, is_global: bool
) -> tuple[str, bool]:
    pieces: list[str] = []
    place, has_changed = 0, False
    span = pattern.find(line, files.spend)
    while span is not None:
        has_changed = True
        match = line[slice(*span)]
        # A sign of text: "&" is the match, "\&" is itself.
        filled = re.sub(r"\\(.)|&", lambda m, match=match: m[1] if m[1] else match, new)
        files.spend(len(filled))
        pieces += [line[place : span[0]], filled]
        place = span[1]
        if match == "" and place < len(line):
            pieces.append(line[place])
            place += 1
        elif match == "":
            break
        span = pattern.find(line, files.spend, place) if is_global and place < len(line) else None
    return "".join((*pieces, line[place:])), has_changed


def _read_address(
    files: Files, script: str, extended: bool
) -> tuple[Callable[[int, int, str], bool], str]:
    """Return whether a line is meant, as a function, and the script after the address."""
    match = re.match(r"(\d{1,6}|\$)(?:,(\d{1,6}|\$))?\s*", script, re.ASCII)
    if match:
        low, high = match[1], match[2] or match[1]

        def is_in_range(number: int, total: int, line: str) -> bool:
            first, last = (total if end == "$" else int(end) for end in (low, high))
            return first <= number <= max(first, last)

        return is_in_range, script[match.end() :]
    if script.startswith("/"):
        end = script.find("/", 1)
        while end > 0 and script[end - 1] == "\\":
            end = script.find("/", end + 1)
        if end < 0:
            raise ShellError(f"unterminated address in '{script[:60]}'")
        pattern = Pattern(script[1:end].replace("\\/", "/"), extended=extended)

        def is_matched(number: int, total: int, line: str) -> bool:
            return pattern.find(line, files.spend) is not None

        return is_matched, script[end + 1 :].lstrip()
    return (lambda number, total, line: True), script
