"""``rllm/Syllogism-v0``: which conclusions follow from premises about groups."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_integers, read_word
from rllm_envs.reasoning.draws import draw_item, draw_items, shuffled
from rllm_envs.reasoning.fields import integer_argument, list_field, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

NUM_CONCLUSIONS = 5
MAX_TERMS = 6
FORMS = {
    "all": "All {} are {}.",
    "no": "No {} are {}.",
    "some": "Some {} are {}.",
    "some_not": "Some {} are not {}.",
}
Statement = list[Any]
"""A form and the numbers of two terms: ``["all", 0, 1]``."""

_STARTS = ("bl", "br", "cr", "dr", "fl", "gl", "gr", "pl", "sn", "tr", "v", "w", "z")
_MIDDLES = ("a", "e", "i", "o", "u")
_ENDS = ("ckets", "gles", "mpers", "nkles", "ppets", "rbles", "sters", "tterns", "vets", "zzles")


class SyllogismEnv(SolvedEnv):
    r"""Say which conclusions follow from premises about made-up groups.

    ## Description
    Premises and conclusions have the forms "All X are Y", "No X are Y", "Some X are Y" and "Some X
    are not Y". A conclusion follows if it is true in every situation in which all premises are;
    "some" means at least one, and a group may be empty.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: the
    numbers of the conclusions that follow, such as ``1, 4``, or ``none``.

    ## Observation Space
    The premises, five numbered conclusions and the question. The last observation is empty.

    ## Starting State
    Premises join the groups in a chain, in random directions and forms, and never contradict each
    other. Of the conclusions at most three follow; none repeats a premise.

    ## Rewards
    1 for exactly the conclusions that follow, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_terms`` (3 to 6, default 4: the number of groups; there is one premise fewer), ``split``
    ("train", "test" or "all").
    Task: ``{"terms": ["blackets", "vuzzles", "grimpers"], "premises": [["all", 0, 1], ["no", 1,
    2]], "conclusions": [["no", 0, 2]]}``, terms by number from 0; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self, *, num_terms: int = 4, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_terms = integer_argument("num_terms", num_terms, 3, MAX_TERMS)

    def draw(self) -> Task:
        """Return premises and conclusions."""
        rng, size = self.np_random, self.num_terms
        words: list[str] = []
        while len(words) < size:
            word = "".join(draw_item(rng, part) for part in (_STARTS, _MIDDLES, _ENDS))
            if word not in words:
                words.append(word)
        while True:
            premises: list[Statement] = []
            for first in range(size - 1):
                pair = shuffled(rng, [first, first + 1])
                # Universal premises chain; particular ones seldom allow a conclusion.
                form = draw_item(rng, ("all", "all", "all", "no", "some", "some_not"))
                premises.append([form, *pair])
            if not is_consistent(premises, size):
                continue
            others = [
                [form, a, b]
                for form, a, b in product(FORMS, range(size), range(size))
                if a != b
                and [form, a, b] not in premises
                and (form in ("all", "some_not") or a < b)
            ]
            # "No X are Y" and "Some X are Y" say the same both ways round.
            both = [[form, b, a] for form, a, b in premises if form in ("no", "some")]
            others = [statement for statement in others if statement not in both]
            valid = [statement for statement in others if follows(statement, premises, size)]
            rest = [statement for statement in others if statement not in valid]
            wanted = draw_item(rng, (0, 1, 1, 2, 2, 2, 3, 3))
            if valid:
                chosen = draw_items(rng, valid, wanted)
                chosen += draw_items(rng, rest, NUM_CONCLUSIONS - len(chosen))
                conclusions = shuffled(rng, chosen)
                return {"terms": words, "premises": premises, "conclusions": conclusions}

    def check(self, task: Task) -> None:
        """Check the terms and the form of the statements, and that the premises can be true."""
        size = len(words_field(task, "terms", (2, MAX_TERMS)))
        for field, longest in (("premises", 12), ("conclusions", 12)):
            for statement in list_field(task, field, 1, longest):
                if not _is_statement(statement, size):
                    raise TaskError(
                        f"{field!r} must hold lists of {', '.join(FORMS)} and two different terms "
                        f"from 0 to {size - 1}, got {excerpt(statement)}"
                    )
        if not is_consistent(task["premises"], size):
            raise TaskError("the premises contradict each other")

    def question(self, task: Task) -> str:
        """Return the premises, the conclusions and the question."""
        terms = task["terms"]
        premises = "\n".join(_sentence(statement, terms) for statement in task["premises"])
        conclusions = "\n".join(
            f"{number}. {_sentence(statement, terms)}"
            for number, statement in enumerate(task["conclusions"], start=1)
        )
        return (
            f"Premises:\n{premises}\nConclusions:\n{conclusions}\nWhich conclusions follow "
            '("some" means at least one, and there may be none of a kind unless the premises say '
            "otherwise)? Give their numbers in \\boxed{}, separated by commas, or \\boxed{none}."
        )

    def solve(self, task: Task) -> str:
        """Return the numbers of the conclusions that follow, or ``none``."""
        size = len(task["terms"])
        numbers = [
            str(number)
            for number, statement in enumerate(task["conclusions"], start=1)
            if follows(statement, task["premises"], size)
        ]
        return ", ".join(numbers) or "none"

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer names exactly the conclusions that follow."""
        right = {int(number) for number in task["answer"].split(", ") if number != "none"}
        if read_word(answer) == "none":
            return not right
        numbers = read_integers(answer)
        return bool(numbers) and {*(numbers or [])} == right


def is_consistent(premises: Sequence[Statement], num_terms: int) -> bool:
    """Return whether all premises can be true together."""
    allowed = _allowed_kinds(premises, num_terms)
    return all(
        any(_is_example(kind, statement) for kind in allowed)
        for statement in premises
        if statement[0] in ("some", "some_not")
    )


def follows(conclusion: Statement, premises: Sequence[Statement], num_terms: int) -> bool:
    """Return whether a conclusion is true in every model of consistent premises.

    A model says which kinds of things exist, a kind being the terms that a thing falls under. A
    universal conclusion fails in the model with all kinds that the universal premises allow, if
    anywhere. A particular one fails in the models with one example for each particular premise, if
    anywhere; so it holds only if all examples that one premise allows are examples of it.
    """
    allowed = _allowed_kinds(premises, num_terms)
    form, first, second = conclusion
    if form in ("all", "no"):
        denial = ["some_not" if form == "all" else "some", first, second]
        return not any(_is_example(kind, denial) for kind in allowed)
    return any(
        all(_is_example(kind, conclusion) for kind in allowed if _is_example(kind, premise))
        for premise in premises
        if premise[0] in ("some", "some_not")
    )


def _allowed_kinds(premises: Sequence[Statement], num_terms: int) -> list[int]:
    """Return the kinds, as bits of terms, that no universal premise rules out."""
    denials = [
        ["some_not" if form == "all" else "some", first, second]
        for form, first, second in premises
        if form in ("all", "no")
    ]
    return [
        kind
        for kind in range(1 << num_terms)
        if not any(_is_example(kind, denial) for denial in denials)
    ]


def _is_example(kind: int, statement: Statement) -> bool:
    """Return whether a thing of a kind makes a particular statement true."""
    form, first, second = statement
    return bool(kind >> first & 1) and bool(kind >> second & 1) == (form == "some")


def _is_statement(value: Any, size: int) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and value[0] in [*FORMS]
        and all(type(term) is int and 0 <= term < size for term in value[1:])
        and value[1] != value[2]
    )


def _sentence(statement: Statement, terms: Sequence[str]) -> str:
    form, first, second = statement
    return FORMS[form].format(terms[first], terms[second])
