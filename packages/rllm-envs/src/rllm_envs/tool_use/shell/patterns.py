r"""``Pattern``: the regular expressions of the shell, matched in bounded time.

A set of states is followed along the line (Thompson 1968, "Regular expression search algorithm"),
so no pattern makes a match explode. There are no groups and no counts in braces.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rllm_envs.tool_use.shell.files import ShellError

_CLASSES = {
    "d": frozenset("0123456789"),
    "s": frozenset(" \t"),
    "w": frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
}
_NAMED = {
    "[:digit:]": "0-9",
    "[:alpha:]": "a-zA-Z",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:space:]": " \t",
}
MAX_PATTERN_LENGTH = 200


@dataclass(frozen=True, slots=True)
class _Item:
    """One character of a match, maybe optional or repeated."""

    chars: frozenset[str]
    is_negated: bool
    quantifier: str = ""

    def hits(self, char: str) -> bool:
        return (char in self.chars) != self.is_negated


@dataclass(frozen=True, slots=True)
class _Branch:
    """One alternative: items, and whether it is tied to the ends of the line."""

    items: tuple[_Item, ...]
    is_at_start: bool
    is_at_end: bool


class Pattern:
    r"""A pattern over one line.

    Known are ``.``, ``[abc]``, ``[^a-z]``, ``[[:digit:]]``, ``\d``, ``\w``, ``\s``, ``*``, ``^``,
    ``$``, and ``+``, ``?``, ``|``, which need a backslash unless ``extended``.

    Args:
        text: The pattern.
        extended: Whether ``+ ? |`` are special as they are.
        fixed: Whether every character stands for itself.
        ignore_case: Whether upper and lower case are the same.
        word: Whether a match must have no word character beside it.

    Raises:
        ShellError: The pattern is malformed, too long, or uses what is not known.
    """

    def __init__(
        self,
        text: str,
        *,
        extended: bool = False,
        fixed: bool = False,
        ignore_case: bool = False,
        word: bool = False,
    ) -> None:
        if len(text) > MAX_PATTERN_LENGTH:
            raise ShellError(f"a pattern has at most {MAX_PATTERN_LENGTH} characters")
        self._word = word
        if fixed:
            items = tuple(_Item(frozenset(char), False) for char in text)
            self._branches = [_Branch(items, False, False)]
        else:
            self._branches = _Reader(text, extended).branches()
        if ignore_case:
            self._branches = [
                _Branch(tuple(map(_both_cases, b.items)), b.is_at_start, b.is_at_end)
                for b in self._branches
            ]

    def find(
        self, line: str, spend: Callable[[int], None], begin: int = 0
    ) -> tuple[int, int] | None:
        """Return start and end of the leftmost longest match from ``begin`` on, or None.

        Args:
            line: The text to search.
            spend: Called with the amount of work of each character.
            begin: Where a match may start at the earliest.
        """
        best: tuple[int, int] | None = None
        active: dict[tuple[int, int], int] = {}
        for place in range(begin, len(line) + 1):
            if best is None:
                self._start(line, place, active)
            for (number, position), start in active.items():
                branch = self._branches[number]
                is_done = position == len(branch.items) and self._may_end(line, place, branch)
                if is_done and (best is None or start <= best[0]):
                    best = (start, place)
            if place == len(line) or (best is not None and not active):
                break
            spend(1 + len(active))
            following: dict[tuple[int, int], int] = {}
            for (number, position), start in active.items():
                items = self._branches[number].items
                is_late = best is not None and start > best[0]
                if not is_late and position < len(items) and items[position].hits(line[place]):
                    is_repeated = items[position].quantifier == "*"
                    self._add(following, number, position + (not is_repeated), start)
            active = following
        return best

    def _start(self, line: str, place: int, active: dict[tuple[int, int], int]) -> None:
        if self._word and place > 0 and line[place - 1] in _CLASSES["w"]:
            return
        for number, branch in enumerate(self._branches):
            if place == 0 or not branch.is_at_start:
                self._add(active, number, 0, place)

    def _may_end(self, line: str, place: int, branch: _Branch) -> bool:
        is_last = place == len(line)
        if self._word and not is_last and line[place] in _CLASSES["w"]:
            return False
        return is_last or not branch.is_at_end

    def _add(
        self, states: dict[tuple[int, int], int], number: int, position: int, start: int
    ) -> None:
        items = self._branches[number].items
        while True:
            key = (number, position)
            if key in states and states[key] <= start:
                return
            states[key] = start
            if position == len(items) or items[position].quantifier == "":
                return
            position += 1


class _Reader:
    """Reads a pattern; ``+ ? |`` are special with a backslash exactly if not extended."""

    def __init__(self, text: str, extended: bool) -> None:
        self._text = text
        self._extended = extended
        self._place = 0

    def branches(self) -> list[_Branch]:
        branches = [self._branch()]
        while self._place < len(self._text):
            self._place += 1 if self._extended else 2
            branches.append(self._branch())
        return branches

    def _special(self) -> str:
        """Return the operator at this place ("" for none), without moving."""
        char = self._text[self._place]
        if char == "\\":
            escaped = self._text[self._place + 1 : self._place + 2]
            if not self._extended and escaped in ("(", ")", "{", "}"):
                raise ShellError("groups and counts are not supported in patterns")
            return escaped if escaped and not self._extended and escaped in "+?|" else ""
        if self._extended and char in "(){}":
            raise ShellError("groups and counts are not supported in patterns")
        return char if char == "*" or (self._extended and char in "+?|") else ""

    def _branch(self) -> _Branch:
        items: list[_Item] = []
        is_at_start = self._text.startswith("^", self._place)
        self._place += is_at_start
        is_at_end = False
        while self._place < len(self._text):
            special = self._special()
            if special == "|":
                break
            if special and items:
                self._place += 1 if self._text[self._place] != "\\" else 2
                _quantify(items, special)
            elif self._is_end_mark():
                is_at_end = True
                self._place += 1
            else:
                items.append(self._item())
        return _Branch(tuple(items), is_at_start, is_at_end)

    def _is_end_mark(self) -> bool:
        rest = self._text[self._place :]
        return rest == "$" or rest.startswith("$|" if self._extended else "$\\|")

    def _item(self) -> _Item:
        char = self._text[self._place]
        self._place += 1
        if char == ".":
            return _Item(frozenset(), True)
        if char == "[":
            return self._set()
        if char == "\\":
            if self._place == len(self._text):
                raise ShellError("trailing backslash in the pattern")
            char = self._text[self._place]
            self._place += 1
            if char.lower() in _CLASSES:
                return _Item(_CLASSES[char.lower()], char.isupper())
            if char in "bB<>123456789":
                raise ShellError(f"\\{char} is not supported in patterns; -w finds whole words")
        return _Item(frozenset(char), False)

    def _set(self) -> _Item:
        is_negated = self._text.startswith("^", self._place)
        begin = self._place + is_negated
        end = self._text.find("]", begin + 1)
        while (
            end > 0 and self._text[end - 1] == ":" and self._text.rfind("[:", begin, end) >= begin
        ):
            end = self._text.find("]", end + 1)
        if end < 0:
            raise ShellError("unmatched [ in the pattern")
        self._place = end + 1
        body = self._text[begin:end]
        for name, letters in _NAMED.items():
            body = body.replace(name, letters)
        chars: set[str] = set()
        place = 0
        while place < len(body):
            if body[place + 1 : place + 2] == "-" and place + 2 < len(body):
                low, high = ord(body[place]), ord(body[place + 2])
                if not 0 <= high - low <= 256:
                    raise ShellError("invalid range in the pattern")
                chars.update(map(chr, range(low, high + 1)))
                place += 3
            else:
                chars.add(body[place])
                place += 1
        return _Item(frozenset(chars), is_negated)


def _quantify(items: list[_Item], quantifier: str) -> None:
    last = items.pop()
    if last.quantifier:
        quantifier = "*"
    elif quantifier == "+":
        items.append(last)
        quantifier = "*"
    items.append(_Item(last.chars, last.is_negated, quantifier))


def _both_cases(item: _Item) -> _Item:
    chars = {case for char in item.chars for case in (char.lower(), char.upper())}
    return _Item(frozenset(chars), item.is_negated, item.quantifier)
