"""Formulas of propositional logic as nested lists, and clauses as lists of signed integers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rllm_envs.reasoning.draws import draw_flag, draw_integer, draw_item, draw_items

Formula = str | list[Any]
"""A variable, ``["not", f]``, or ``[operator, f, g]`` with an operator of ``OPERATORS``."""
Clause = list[int]
"""A disjunction: 2 is the second variable, -2 its negation."""

OPERATORS = ("and", "or", "xor", "implies")
MAX_DEPTH = 6


def draw_formula(rng: np.random.Generator, variables: Sequence[str], depth: int) -> Formula:
    """Return a random formula of exactly this depth, negations not counted."""
    if depth == 0:
        variable = draw_item(rng, variables)
        return ["not", variable] if draw_flag(rng, 0.3) else variable
    parts = [
        draw_formula(rng, variables, depth - 1),
        draw_formula(rng, variables, draw_integer(rng, 0, depth - 1)),
    ]
    if draw_flag(rng):
        parts.reverse()
    formula = [draw_item(rng, OPERATORS), *parts]
    return ["not", formula] if draw_flag(rng, 0.2) else formula


def is_formula(value: Any, variables: Sequence[str], depth: int = 2 * MAX_DEPTH) -> bool:
    """Return whether a value is a formula over ``variables``, nested at most ``depth`` deep."""
    if isinstance(value, str):
        return value in variables
    if not isinstance(value, list) or not value or depth == 0:
        return False
    length = 2 if value[0] == "not" else 3 if value[0] in list(OPERATORS) else 0
    return len(value) == length and all(
        is_formula(part, variables, depth - 1) for part in value[1:]
    )


def evaluate_formula(formula: Formula, values: Mapping[str, bool]) -> bool:
    """Return the truth value of a formula."""
    if isinstance(formula, str):
        return values[formula]
    operator, *parts = formula
    truths = [evaluate_formula(part, values) for part in parts]
    if operator == "not":
        return not truths[0]
    if operator == "and":
        return truths[0] and truths[1]
    if operator == "or":
        return truths[0] or truths[1]
    return truths[0] != truths[1] if operator == "xor" else not truths[0] or truths[1]


def write_formula(formula: Formula, *, is_outermost: bool = True) -> str:
    """Return a formula in words, such as ``(A and not B) implies C``."""
    if isinstance(formula, str):
        return formula
    operator, *parts = formula
    texts = [write_formula(part, is_outermost=False) for part in parts]
    if operator == "not":
        return f"not {texts[0]}"
    text = f"{texts[0]} {operator} {texts[1]}"
    return text if is_outermost else f"({text})"


def draw_clauses(rng: np.random.Generator, num_variables: int, num_clauses: int) -> list[Clause]:
    """Return distinct clauses of three variables each that one random assignment fulfils."""
    hidden = [draw_flag(rng) for _ in range(num_variables)]
    clauses: list[Clause] = []
    while len(clauses) < num_clauses:
        chosen = sorted(draw_items(rng, range(1, num_variables + 1), 3))
        clause = [number if draw_flag(rng) else -number for number in chosen]
        if clause not in clauses and any((n > 0) == hidden[abs(n) - 1] for n in clause):
            clauses.append(clause)
    return clauses


def satisfying_values(clauses: Sequence[Clause], num_variables: int) -> list[bool] | None:
    """Return the first assignment, in binary order, that fulfils all clauses; None if none does."""
    masks = [
        (
            sum(1 << (n - 1) for n in clause if n > 0),
            sum(1 << (-n - 1) for n in clause if n < 0),
        )
        for clause in clauses
    ]
    for bits in range(1 << num_variables):
        if all(bits & positive or ~bits & negative for positive, negative in masks):
            return [bool(bits >> place & 1) for place in range(num_variables)]
    return None
