"""Random programs of the tiny language of ``tiny_program``."""

from typing import Any

import numpy as np

from rllm_envs.errors import TaskError
from rllm_envs.reasoning.draws import draw_flag, draw_integer, draw_item, draw_items
from rllm_envs.reasoning.tiny_program import (
    COMPARISONS,
    Expression,
    Program,
    Statement,
    run_program,
)

VARIABLES = ("a", "b", "c")
MAX_SHOWN_VALUE = 9999


def draw_program(rng: np.random.Generator, num_blocks: int) -> Program:
    """Return a random program that sets some variables, works on them and prints them.

    Args:
        rng: Source of randomness.
        num_blocks: Statements between the first assignments and the last line; loops and
            conditions count as one.
    """
    while True:
        program: Program = [["set", name, draw_integer(rng, 1, 9)] for name in VARIABLES]
        program.append(["list", "xs", [draw_integer(rng, 1, 9) for _ in range(4)]])
        program += [_block(rng) for _ in range(num_blocks)]
        shown = draw_items(rng, VARIABLES, 2)
        program.append(["print", [*sorted(shown), "xs"]])
        try:
            printed = run_program(program)
        except TaskError:
            continue
        numbers = printed.replace("[", " ").replace("]", " ").replace(",", " ").split()
        if max(abs(int(number)) for number in numbers) <= MAX_SHOWN_VALUE:
            return program


def _block(rng: np.random.Generator) -> Statement:
    kind = draw_item(rng, ("update", "range", "range", "each", "if", "append"))
    if kind == "update":
        return _update(rng)
    if kind == "append":
        return ["append", "xs", _expression(rng, (*VARIABLES, ["len", "xs"]))]
    if kind == "if":
        names = VARIABLES
        other = [_update(rng)] if draw_flag(rng) else []
        return ["if", _condition(rng, names), [_update(rng)], other]
    if kind == "range":
        counter = draw_item(rng, ("i", "j"))
        count = draw_integer(rng, 2, 5)
        body = _body(rng, counter)
        if draw_flag(rng, 0.3):
            body.append(["append", "xs", _expression(rng, (*VARIABLES, counter))])
        return [kind, counter, count, body]
    return [kind, "x", "xs", _body(rng, "x")]


def _body(rng: np.random.Generator, counter: str) -> list[Statement]:
    """Return the body of a loop, in which its variable occurs."""
    names = (*VARIABLES, counter)
    if draw_flag(rng):
        update = _update(rng, (counter, counter, *VARIABLES))
        other = [_update(rng)] if draw_flag(rng) else []
        return [["if", _condition(rng, (counter, *names)), [update], other]]
    target = draw_item(rng, VARIABLES)
    body = [["update", target, draw_item(rng, ("+", "-", "+")), counter]]
    if draw_flag(rng):
        body.append(_update(rng, names))
    return body


def _update(rng: np.random.Generator, names: tuple[str, ...] = VARIABLES) -> Statement:
    target = draw_item(rng, VARIABLES)
    operator = draw_item(rng, ("+", "+", "-", "*", "//", "%"))
    if operator in ("*", "//", "%"):
        # Constants, so that nothing is divided by zero and values stay small.
        return ["update", target, operator, draw_integer(rng, 2, 3 if operator == "*" else 7)]
    return ["update", target, operator, _expression(rng, names)]


def _expression(rng: np.random.Generator, names: tuple[Any, ...]) -> Expression:
    name = draw_item(rng, names)
    form = draw_integer(rng, 0, 3)
    if form == 0:
        return name
    if form == 1:
        return [draw_item(rng, ("+", "-", "*")), name, draw_integer(rng, 2, 5)]
    if form == 2:
        return ["%", [draw_item(rng, ("+", "*")), name, draw_item(rng, names)], 10]
    return ["at", "xs", draw_integer(rng, 0, 3)]


def _condition(rng: np.random.Generator, names: tuple[str, ...]) -> list[Any]:
    name = draw_item(rng, names)
    if draw_flag(rng, 0.4):
        return ["==", ["%", name, draw_integer(rng, 2, 3)], draw_integer(rng, 0, 1)]
    return [draw_item(rng, tuple(COMPARISONS)[:4]), name, draw_integer(rng, 2, 8)]
