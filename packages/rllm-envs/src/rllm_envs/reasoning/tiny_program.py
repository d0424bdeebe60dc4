"""A tiny language that is written as Python: programs as nested lists, and their interpreter.

Expressions are integers, names, ``["+", e, f]`` (also "-", "*", "//", "%"), ``["len", xs]``,
``["sum", xs]`` and ``["at", xs, e]``. Conditions are ``["<", e, f]`` (also "<=", ">", ">=", "==",
"!="). Statements are::

    ["set", name, e]            name = e
    ["list", name, [3, 1]]      name = [3, 1]
    ["update", name, "+", e]    name += e
    ["append", name, e]         name.append(e)
    ["range", name, e, body]    for name in range(e): ...
    ["each", name, xs, body]    for name in xs: ...
    ["if", c, body, body]       if c: ... else: ...   (the second body may be empty)
    ["print", [names]]          print(names, ...)

``//`` and ``%`` round down, as in Python.
"""

from collections.abc import Callable, Mapping, Sequence
from operator import add as plus
from operator import eq, floordiv, ge, gt, le, lt, mod, mul, ne, sub
from typing import Any

from rllm_envs.errors import TaskError, excerpt

Expression = int | str | list[Any]
Statement = list[Any]
Program = list[Statement]
Value = int | list[int]

NUMBER_NAMES = ("a", "b", "c", "d", "i", "j", "k", "n", "x", "y")
LIST_NAMES = ("xs", "ys")
OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "+": plus,
    "-": sub,
    "*": mul,
    "//": floordiv,
    "%": mod,
}
COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
    "==": eq,
    "!=": ne,
}
MAX_ACTIONS = 2000
"""Statements that a run may carry out."""
MAX_VALUE = 10**9
MAX_LIST = 100
MAX_STATEMENTS = 60
MAX_NESTING = 5

_BINARY_STRENGTH = {"+": 1, "-": 1, "*": 2, "//": 2, "%": 2}


def check_program(program: Any) -> None:
    """Raise TaskError unless a value is a program, of bounded size and nesting."""
    if not _is_body(program, MAX_NESTING) or not program:
        raise TaskError(
            f"'program' must be a list of statements such as ['set', 'a', 3], got "
            f"{excerpt(program)}"
        )
    if _size(program) > MAX_STATEMENTS:
        raise TaskError(f"the program has more than {MAX_STATEMENTS} statements")


def write_program(program: Sequence[Statement], indent: str = "") -> str:
    """Return the Python source of a program."""
    return "\n".join(indent + line for statement in program for line in _lines(statement))


def run_program(program: Sequence[Statement]) -> str:
    """Return what a program prints.

    Raises:
        TaskError: It uses an unknown name, divides by zero, reads outside of a list, changes the
            list that it goes through, runs for too long, or a value becomes too large.
    """
    run = _Run()
    run.carry_out(program)
    return "\n".join(run.printed)


class _Run:
    """The values of the names, and what has been printed."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._actions = 0
        self._gone_through: list[str] = []
        self.printed: list[str] = []

    def carry_out(self, body: Sequence[Statement]) -> None:
        for statement in body:
            self._actions += 1
            if self._actions > MAX_ACTIONS:
                raise TaskError(f"the program carries out more than {MAX_ACTIONS} statements")
            self._one(statement)

    def _one(self, statement: Statement) -> None:
        kind, *parts = statement
        if kind == "set":
            self._values[parts[0]] = self._number(parts[1])
        elif kind == "list":
            self._change_list(parts[0])
            self._values[parts[0]] = list(parts[1])
        elif kind == "update":
            self._values[parts[0]] = self._number([parts[1], parts[0], parts[2]])
        elif kind == "append":
            self._change_list(parts[0])
            items = self._list(parts[0])
            items.append(self._number(parts[1]))
            if len(items) > MAX_LIST:
                raise TaskError(f"a list has more than {MAX_LIST} items")
        elif kind == "if":
            comparison, left, right = parts[0]
            is_true = COMPARISONS[comparison](self._number(left), self._number(right))
            self.carry_out(parts[1] if is_true else parts[2])
        elif kind == "print":
            self.printed.append(" ".join(str(self._value(name)) for name in parts[0]))
        else:
            self._loop(kind, *parts)

    def _loop(self, kind: str, name: str, over: Expression, body: Sequence[Statement]) -> None:
        if kind == "range":
            count = self._number(over)
            if count > MAX_ACTIONS:
                raise TaskError(f"a loop runs {count} times, more than {MAX_ACTIONS}")
            items: Sequence[int] = range(count)
        else:
            items = self._list(str(over))
            self._gone_through.append(str(over))
        for item in items:
            self._values[name] = item
            self.carry_out(body)
        if kind == "each":
            self._gone_through.pop()

    def _change_list(self, name: str) -> None:
        if name in self._gone_through:
            raise TaskError(f"the program changes {name} while it goes through it")

    def _value(self, name: str) -> Value:
        if name not in self._values:
            raise TaskError(f"the program uses {name} before it has a value")
        return self._values[name]

    def _list(self, name: str) -> list[int]:
        value = self._value(name)
        if not isinstance(value, list):
            raise TaskError(f"{name} is no list")
        return value

    def _number(self, expression: Expression) -> int:
        if isinstance(expression, int):
            return expression
        if isinstance(expression, str):
            value = self._value(expression)
            if isinstance(value, list):
                raise TaskError(f"{expression} is a list, where a number is needed")
            return value
        kind, *parts = expression
        if kind == "len":
            return len(self._list(parts[0]))
        if kind == "sum":
            return sum(self._list(parts[0]))
        if kind == "at":
            items, place = self._list(parts[0]), self._number(parts[1])
            if not 0 <= place < len(items):
                raise TaskError(f"{parts[0]}[{place}] is outside of the list")
            return items[place]
        left, right = self._number(parts[0]), self._number(parts[1])
        if right == 0 and kind in ("//", "%"):
            raise TaskError("the program divides by zero")
        result = OPERATORS[kind](left, right)
        if abs(result) > MAX_VALUE:
            raise TaskError(f"a value exceeds {MAX_VALUE}")
        return result


def _lines(statement: Statement) -> list[str]:
    kind, *parts = statement
    if kind == "set":
        return [f"{parts[0]} = {_written(parts[1])}"]
    if kind == "list":
        return [f"{parts[0]} = {parts[1]}"]
    if kind == "update":
        return [f"{parts[0]} {parts[1]}= {_written(parts[2])}"]
    if kind == "append":
        return [f"{parts[0]}.append({_written(parts[1])})"]
    if kind == "print":
        return [f"print({', '.join(parts[0])})"]
    if kind == "if":
        (comparison, left, right), body, other = parts
        head = [f"if {_written(left)} {comparison} {_written(right)}:", *_block(body)]
        return [*head, "else:", *_block(other)] if other else head
    name, over, body = parts
    source = over if kind == "each" else f"range({_written(over)})"
    return [f"for {name} in {source}:", *_block(body)]


def _block(body: Sequence[Statement]) -> list[str]:
    return write_program(body, indent="    ").splitlines()


def _written(expression: Expression, strength: int = 0) -> str:
    """Return an expression, in parentheses where its context binds at least as strongly."""
    if not isinstance(expression, list):
        return str(expression)
    kind, *parts = expression
    if kind in ("len", "sum"):
        return f"{kind}({parts[0]})"
    if kind == "at":
        return f"{parts[0]}[{_written(parts[1])}]"
    own = _BINARY_STRENGTH[kind]
    # Operators associate to the left, so the right part needs more.
    text = f"{_written(parts[0], own - 1)} {kind} {_written(parts[1], own)}"
    return f"({text})" if strength >= own else text


def _size(body: Sequence[Statement]) -> int:
    total = 0
    for statement in body:
        bodies = statement[2:] if statement[0] == "if" else statement[3:]
        nested = bodies if statement[0] in ("if", "range", "each") else []
        total += 1 + sum(_size(inner) for inner in nested)
    return total


def _is_body(value: Any, depth: int) -> bool:
    if not isinstance(value, list) or len(value) > MAX_STATEMENTS or depth == 0:
        return False
    return all(_is_statement(statement, depth) for statement in value)


def _is_statement(value: Any, depth: int) -> bool:
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        return False
    forms: dict[str, tuple[Callable[[Any], bool], ...]] = {
        "set": (_is_number_name, _is_expression),
        "list": (_is_list_name, _is_literal_list),
        "update": (_is_number_name, lambda part: part in [*OPERATORS], _is_expression),
        "append": (_is_list_name, _is_expression),
        "range": (_is_number_name, _is_expression, lambda part: _is_filled(part, depth)),
        "each": (_is_number_name, _is_list_name, lambda part: _is_filled(part, depth)),
        "if": (
            _is_condition,
            lambda part: _is_filled(part, depth),
            lambda part: _is_body(part, depth - 1),
        ),
        "print": (_is_name_list,),
    }
    form = forms.get(value[0])
    if form is None or len(value) != 1 + len(form):
        return False
    return all(is_good(part) for is_good, part in zip(form, value[1:], strict=True))


def _is_filled(value: Any, depth: int) -> bool:
    return bool(value) and _is_body(value, depth - 1)


def _is_number_name(value: Any) -> bool:
    return value in [*NUMBER_NAMES]


def _is_list_name(value: Any) -> bool:
    return value in [*LIST_NAMES]


def _is_name_list(value: Any) -> bool:
    is_list = isinstance(value, list) and 0 < len(value) <= 10
    return is_list and all(_is_number_name(name) or _is_list_name(name) for name in value)


def _is_literal_list(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 20 and all(map(_is_literal, value))


def _is_literal(value: Any) -> bool:
    return type(value) is int and abs(value) <= MAX_VALUE


def _is_condition(value: Any) -> bool:
    is_list = isinstance(value, list) and len(value) == 3 and value[0] in [*COMPARISONS]
    return is_list and all(_is_expression(part) for part in value[1:])


def _is_expression(value: Any, depth: int = MAX_NESTING) -> bool:
    if not isinstance(value, list):
        return _is_literal(value) or _is_number_name(value)
    if not value or depth == 0:
        return False
    kind, *parts = value
    if kind in ["len", "sum"]:
        return len(parts) == 1 and _is_list_name(parts[0])
    if len(parts) != 2:
        return False
    if kind == "at":
        return _is_list_name(parts[0]) and _is_expression(parts[1], depth - 1)
    return kind in [*OPERATORS] and all(_is_expression(part, depth - 1) for part in parts)
