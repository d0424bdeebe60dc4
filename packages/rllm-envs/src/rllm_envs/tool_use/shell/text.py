"""Commands that read text: cat, echo, wc, head, tail, sort, uniq, cut and tr."""

import re
from collections.abc import Iterator

from rllm_envs.tool_use.shell.files import Files, ShellError, lines_of, text_of
from rllm_envs.tool_use.shell.options import Options, read_options

_NUMBER = re.compile(r"\s*(-?\d{0,18}(?:\.\d{1,18})?)", re.ASCII)


def inputs(files: Files, names: list[str], stdin: str) -> Iterator[tuple[str, str]]:
    """Yield name and content of each file, or of the standard input under the name "-"."""
    for name in names or ["-"]:
        yield name, stdin if name == "-" else files.read(name)


def cat(files: Files, arguments: list[str], stdin: str) -> str:
    """Print files one after another; ``-n`` with line numbers."""
    options = read_options(arguments, "n")
    text = "".join(content for _, content in inputs(files, options.operands, stdin))
    if "n" not in options.flags:
        return text
    return text_of([f"{number:6d}\t{line}" for number, line in enumerate(lines_of(text), 1)])


def echo(files: Files, arguments: list[str], stdin: str) -> str:
    r"""Print the arguments; ``-n`` without a newline, ``-e`` with ``\n`` and ``\t``."""
    words, flags = list(arguments), set()
    while words and words[0] in ("-n", "-e", "-ne", "-en"):
        flags |= set(words.pop(0)[1:])
    text = " ".join(words)
    if "e" in flags:
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    return text if "n" in flags else text + "\n"


def wc(files: Files, arguments: list[str], stdin: str) -> str:
    """Count lines, words and characters; ``-l``, ``-w``, ``-c``, ``-m`` choose."""
    options = read_options(arguments, "lwcm")
    rows: list[tuple[list[int], str]] = []
    for name, text in inputs(files, options.operands, stdin):
        counts = {"l": text.count("\n"), "w": len(text.split())}
        counts |= {"c": len(text.encode("utf-8", "replace")), "m": len(text)}
        chosen = [letter for letter in "lwmc" if letter in (options.flags or set("lwc"))]
        rows.append(([counts[letter] for letter in chosen], "" if name == "-" else name))
    if len(rows) > 1:
        rows.append(
            ([sum(column) for column in zip(*(row[0] for row in rows), strict=True)], "total")
        )
    return text_of([" ".join((*map(str, counts), name)).rstrip() for counts, name in rows])


def head(files: Files, arguments: list[str], stdin: str) -> str:
    """Print the first lines: 10, or as many as ``-n`` says."""
    return _part(files, arguments, stdin, is_head=True)


def tail(files: Files, arguments: list[str], stdin: str) -> str:
    """Print the last lines: 10, or as many as ``-n`` says; ``-n +3`` all from the third on."""
    return _part(files, arguments, stdin, is_head=False)


def _part(files: Files, arguments: list[str], stdin: str, *, is_head: bool) -> str:
    words = [f"-n{word[1:]}" if re.fullmatch(r"-\d{1,6}", word) else word for word in arguments]
    options = read_options(words, "q", "n")
    value = options.values.get("n", "10")
    starts_at = value.startswith("+") and not is_head
    if starts_at:
        options.values["n"] = value[1:]
    count = options.number("n", 10)
    blocks = []
    for name, text in inputs(files, options.operands, stdin):
        lines = lines_of(text)
        if is_head:
            lines = lines[:count]
        elif starts_at:
            lines = lines[max(count - 1, 0) :]
        else:
            lines = lines[len(lines) - min(count, len(lines)) :]
        is_titled = len(options.operands) > 1 and "q" not in options.flags
        blocks.append((f"==> {name} <==\n" if is_titled else "") + text_of(lines))
    return "\n".join(blocks)


def sort(files: Files, arguments: list[str], stdin: str) -> str:
    """Sort lines; ``-n`` by number, ``-r`` backwards, ``-u`` once each, ``-k``, ``-t``, ``-f``."""
    options = read_options(arguments, "nruf", "kt")
    match = re.fullmatch(r"(\d{1,4})([nrf]*)(?:,(\d{1,4})([nrf]*))?", options.values.get("k", "1"))
    if not match or int(match[1]) < 1:
        raise ShellError(f"invalid key '{options.values['k'][:40]}' (known: -k 2, -k 2,2, -k 2nr)")
    options.flags |= set(match[2] + (match[4] or ""))
    fields = slice(int(match[1]) - 1, int(match[3]) if match[3] else None)
    lines = [line for _, text in inputs(files, options.operands, stdin) for line in lines_of(text)]
    files.spend(sum(map(len, lines)) + 10 * len(lines))
    keys = {line: _sort_key(line, options, fields) for line in lines}
    if "u" in options.flags:
        first_with: dict[object, str] = {}
        for line in lines:
            first_with.setdefault(keys[line], line)
        lines = list(first_with.values())
    lines.sort(key=lambda line: (keys[line], line), reverse="r" in options.flags)
    return text_of(lines)


def _sort_key(line: str, options: Options, fields: slice) -> tuple[float, str]:
    if "k" in options.values:
        separator = options.values.get("t")
        line = (separator or " ").join(line.split(separator or None)[fields])
    if "n" not in options.flags:
        return (0.0, line.lower() if "f" in options.flags else line)
    match = _NUMBER.match(line)
    number = match.group(1) if match else ""
    return (float(number) if any(map(str.isdigit, number)) else 0.0, "")


def uniq(files: Files, arguments: list[str], stdin: str) -> str:
    """Print each line once of those that follow each other; ``-c`` counts, ``-d``, ``-u``."""
    options = read_options(arguments, "cdu")
    runs: list[tuple[str, int]] = []
    for _, text in inputs(files, options.operands[:1], stdin):
        for line in lines_of(text):
            if runs and runs[-1][0] == line:
                runs[-1] = (line, runs[-1][1] + 1)
            else:
                runs.append((line, 1))
    if "d" in options.flags:
        runs = [run for run in runs if run[1] > 1]
    if "u" in options.flags:
        runs = [run for run in runs if run[1] == 1]
    is_counted = "c" in options.flags
    return text_of([f"{count:7d} {line}" if is_counted else line for line, count in runs])


def cut(files: Files, arguments: list[str], stdin: str) -> str:
    """Print fields of each line: ``-d ,`` is the separator, ``-f 1,3-4`` the fields."""
    options = read_options(arguments, "", "df")
    separator = options.values.get("d", "\t")
    if "f" not in options.values or len(separator) != 1:
        raise ShellError("give -f with the fields and -d with one separator, as in cut -d , -f 2")
    wanted = _ranges(options.values["f"])
    lines = []
    for _, text in inputs(files, options.operands, stdin):
        for line in lines_of(text):
            fields = line.split(separator)
            files.spend(len(line) + len(fields) * len(wanted))
            chosen = [
                value
                for number, value in enumerate(fields, 1)
                if any(low <= number <= high for low, high in wanted)
            ]
            lines.append(separator.join(chosen) if len(fields) > 1 else line)
    return text_of(lines)


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d{0,4})(-?)(\d{0,4})", part, re.ASCII)
        if not match or part in ("", "-"):
            raise ShellError(f"invalid field list '{text[:40]}'")
        low, dash, high = match.groups()
        end = int(high) if high else 9999 if dash else int(low)
        ranges.append((int(low) if low else 1, end))
    return ranges


def tr(files: Files, arguments: list[str], stdin: str) -> str:
    """Replace characters of the first set by those of the second; ``-d`` deletes them."""
    options = read_options(arguments, "d")
    sets = [_characters(operand) for operand in options.operands]
    if len(sets) != 2 - ("d" in options.flags) or not sets[0] or not sets[-1]:
        raise ShellError("give two sets, as in tr a-z A-Z, or -d and one set")
    if "d" in options.flags:
        return stdin.translate({ord(char): None for char in sets[0]})
    padded = sets[1] + sets[1][-1] * len(sets[0])
    return stdin.translate({ord(a): b for a, b in zip(sets[0], padded, strict=False)})


def _characters(text: str) -> str:
    text = text.replace("\\n", "\n").replace("\\t", "\t")
    text = re.sub(r"\[:(upper|lower):\]", lambda m: "A-Z" if m[1] == "upper" else "a-z", text)

    def run(match: re.Match[str]) -> str:
        low, high = ord(match[1]), ord(match[2])
        if not 0 <= high - low <= 256:
            raise ShellError("invalid range")
        return "".join(map(chr, range(low, high + 1)))

    return re.sub(r"(\w)-(\w)", run, text[:200])
