"""A person at a terminal: text is wrapped for reading, and lines are read as actions."""

import contextlib
import sys
import textwrap
import unicodedata
from collections.abc import Callable
from typing import TextIO

QUOTES = '"""'
HELP = (
    "/hint shows what the oracle would do, /quit ends. "
    f"A line {QUOTES} begins a text of several lines, another one ends it."
)
MIN_WIDTH = 20


class Console:
    """Shows texts to a person and asks for actions.

    Args:
        source: Where lines come from. The standard input of a terminal is read with the editing
            keys of ``readline``.
        sink: Where text goes.
        width: Columns of the terminal.
    """

    def __init__(self, source: TextIO, sink: TextIO, width: int = 80) -> None:
        self._source = source
        self._sink = sink
        self._width = max(MIN_WIDTH, width)
        self._is_edited = source is sys.stdin and sink is sys.stdout and source.isatty()
        if self._is_edited:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # importing it is what gives input() its keys

    def say(self, text: str) -> None:
        """Show a text; lines that are too long are wrapped between words."""
        self._write(wrapped(text, self._width) + "\n")

    def ask_action(self, prompt: str, hint: Callable[[], str]) -> str | None:
        """Return what the person writes as an action; None where the person or the input ends.

        Args:
            prompt: What stands before the cursor.
            hint: Returns what ``/hint`` shows.
        """
        while True:
            # Not a part of the prompt, whose width the editing keys rely on.
            self._write("\n")
            line = self._read(prompt)
            word = "" if line is None else line.strip()
            if line is None or word == "/quit":
                return None
            if word == QUOTES:
                return self._read_block()
            if word == "/hint":
                self.say(hint())
            elif word.startswith("//"):
                return line.replace("//", "/", 1)
            elif word.startswith("/"):
                self.say(
                    f"There is no command {word}; there are /hint and /quit. "
                    "Begin with // to send a text that begins with /."
                )
            else:
                return line

    def _read_block(self) -> str | None:
        lines: list[str] = []
        while (line := self._read("")) is not None:
            if line.strip() == QUOTES:
                return "\n".join(lines)
            lines.append(line)
        return None

    def _read(self, prompt: str) -> str | None:
        if self._is_edited:
            try:
                return input(prompt)
            except EOFError:
                self._write("\n")
                return None
        self._write(prompt)
        line = self._source.readline()
        if not self._source.isatty():
            # No terminal echoes what a file or a pipe says.
            self._write(line.removesuffix("\n") + "\n")
        return line.removesuffix("\n") if line else None

    def _write(self, text: str) -> None:
        encoding = getattr(self._sink, "encoding", None) or "utf-8"
        self._sink.write(text.encode(encoding, "replace").decode(encoding))
        self._sink.flush()


def wrapped(text: str, width: int) -> str:
    """Return a text with lines of at most ``width`` characters where words allow it.

    Lines that are short enough stay as they are, so that boards and tables keep their form. The
    indent of a line is that of its continuation. Control characters are shown as ``?``, because
    a terminal would obey them.
    """
    lines: list[str] = []
    for line in _printable(text).split("\n"):
        indent = line[: len(line) - len(line.lstrip(" "))]
        pieces = textwrap.wrap(
            line,
            width,
            subsequent_indent=indent if len(indent) < width // 2 else "",
            break_long_words=False,
            break_on_hyphens=False,
        )
        lines += [line] if len(line) <= width else pieces
    return "\n".join(lines)


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        "?" if unicodedata.category(char) == "Cc" and char not in "\n\t" else char for char in text
    )
