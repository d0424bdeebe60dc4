"""``rllm/BooleanLogic-v0``: evaluate formulas, or find an assignment that makes one true."""

from collections.abc import Sequence

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_items, read_pairs
from rllm_envs.reasoning.boolean_formulas import (
    MAX_DEPTH,
    draw_clauses,
    draw_formula,
    evaluate_formula,
    is_formula,
    satisfying_values,
    write_formula,
)
from rllm_envs.reasoning.draws import draw_flag, draw_item
from rllm_envs.reasoning.fields import (
    choice_field,
    integer_argument,
    integers_field,
    list_field,
    names_argument,
    words_field,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

KINDS = ("satisfy", "evaluate")
VARIABLES = "ABCDEFGHIJ"
NUM_FORMULAS = 5
MAX_CLAUSES = 60
CLAUSES_PER_VARIABLE = 4

_TRUTHS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class BooleanLogicEnv(SolvedEnv):
    r"""Evaluate formulas of propositional logic, or find values that make a formula true.

    ## Description
    ``evaluate``: the values of some variables are given, and five formulas with "and", "or", "xor",
    "implies" and "not" are to be evaluated. ``satisfy``: values are to be found under which a
    number of clauses, disjunctions of three variables or negations, are all true.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    ``true, false, false, true, true`` (evaluate) or ``A = true, B = false, C = true`` (satisfy). T,
    F, 1 and 0 are understood too.

    ## Observation Space
    The values and numbered formulas, or the clauses. The last observation is empty.

    ## Starting State
    A uniform kind. Formulas are random, of depth ``depth``. Four random clauses for each variable
    that a hidden random assignment fulfils, so that few assignments do.

    ## Rewards
    1 for all truth values right, or for any values that fulfil all clauses; 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``kinds`` (list of kinds, default all), ``num_variables`` (3 to 10, default 5), ``depth`` (1 to
    6, default 3), ``split`` ("train", "test" or "all").
    Task: ``{"kind": "evaluate", "variables": ["A", "B"], "values": [true, false], "formulas":
    [["and", "A", ["not", "B"]]]}`` or ``{"kind": "satisfy", "variables": ["A", "B", "C"],
    "clauses": [[1, -2, 3]]}``, where -2 is the negation of the second variable; ``answer``
    optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        kinds: Sequence[str] | None = None,
        num_variables: int = 5,
        depth: int = 3,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.kinds = names_argument("kinds", kinds, KINDS)
        self.num_variables = integer_argument("num_variables", num_variables, 3, len(VARIABLES))
        self.depth = integer_argument("depth", depth, 1, MAX_DEPTH)

    def draw(self) -> Task:
        """Return random formulas with values, or clauses that can be fulfilled."""
        rng = self.np_random
        kind = draw_item(rng, self.kinds)
        variables = list(VARIABLES[: self.num_variables])
        task: Task = {"kind": kind, "variables": variables}
        if kind == "satisfy":
            # Three variables admit no more than seven clauses that one assignment fulfils.
            most = 7 if len(variables) == 3 else MAX_CLAUSES
            number = min(most, CLAUSES_PER_VARIABLE * len(variables))
            return {**task, "clauses": draw_clauses(rng, len(variables), number)}
        values = [draw_flag(rng) for _ in variables]
        formulas = [draw_formula(rng, variables, self.depth) for _ in range(NUM_FORMULAS)]
        return {**task, "values": values, "formulas": formulas}

    def check(self, task: Task) -> None:
        """Check the variables and the formulas or clauses."""
        kind = choice_field(task, "kind", KINDS)
        variables = words_field(task, "variables", (1, len(VARIABLES)))
        if kind == "satisfy":
            for clause in list_field(task, "clauses", 1, MAX_CLAUSES):
                limits = (-len(variables), len(variables))
                integers_field({"clauses": clause}, "clauses", limits, (1, 10))
                if 0 in clause:
                    raise TaskError(f"a clause names variables from 1, got {excerpt(clause)}")
            return
        values = list_field(task, "values", len(variables), len(variables))
        if not all(isinstance(value, bool) for value in values):
            raise TaskError(f"'values' must hold true and false, got {excerpt(values)}")
        for formula in list_field(task, "formulas", 1, 20):
            if not is_formula(formula, variables):
                raise TaskError(
                    f"'formulas' must hold variables, ['not', f] or [operator, f, g] with and, or, "
                    f"xor or implies, got {excerpt(formula)}"
                )

    def question(self, task: Task) -> str:
        """Return the formulas or clauses and what to do."""
        variables = task["variables"]
        if task["kind"] == "satisfy":
            lines = [
                " or ".join(
                    variables[n - 1] if n > 0 else f"not {variables[-n - 1]}" for n in clause
                )
                for clause in task["clauses"]
            ]
            example = ", ".join(f"{name} = ..." for name in variables)
            return (
                "Find values, true or false, that make all of these lines true.\n"
                + "\n".join(lines)
                + f"\nGive them as \\boxed{{{example}}}."
            )
        pairs = zip(variables, task["values"], strict=True)
        given = ", ".join(f"{name} is {str(value).lower()}" for name, value in pairs)
        lines = [f"{n}. {write_formula(f)}" for n, f in enumerate(task["formulas"], start=1)]
        return (
            f"{given[0].upper()}{given[1:]}. Evaluate these formulas (X xor Y is true if exactly "
            "one of them is; X implies Y is false only if X is true and Y false; not belongs to "
            "the variable or parenthesis directly after it).\n"
            + "\n".join(lines)
            + "\nGive their values, true or false, in order in \\boxed{}, separated by commas."
        )

    def solve(self, task: Task) -> str:
        """Return the truth values, or the first assignment that fulfils all clauses.

        Raises:
            TaskError: No assignment does.
        """
        if task["kind"] == "evaluate":
            return ", ".join(str(truth).lower() for truth in _truths(task))
        values = satisfying_values(task["clauses"], len(task["variables"]))
        if values is None:
            raise TaskError("no assignment fulfils all clauses")
        pairs = zip(task["variables"], values, strict=True)
        return ", ".join(f"{name} = {str(value).lower()}" for name, value in pairs)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether all values are right, or fulfil all clauses."""
        if task["kind"] == "evaluate":
            items = read_items(answer)
            if len(items) == 1:
                items = items[0].split()
            return [_TRUTHS.get(item.lower()) for item in items] == _truths(task)
        pairs = read_pairs(answer) or {}
        if {*pairs} != {name.lower() for name in task["variables"]}:
            return False
        values = [_TRUTHS.get(pairs[name.lower()]) for name in task["variables"]]
        if None in values:
            return False
        return all(any((n > 0) == values[abs(n) - 1] for n in c) for c in task["clauses"])


def _truths(task: Task) -> list[bool]:
    values = dict(zip(task["variables"], task["values"], strict=True))
    return [evaluate_formula(formula, values) for formula in task["formulas"]]
