"""``rllm/KnightsKnaves-v0``: who tells the truth, who lies."""

from collections.abc import Sequence
from itertools import product
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_pairs
from rllm_envs.reasoning.draws import draw_flag, draw_integer, draw_item, draw_items
from rllm_envs.reasoning.fields import integer_argument, list_field, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.words import NAMES
from rllm_envs.tasks import Task

MAX_PEOPLE = 8
KINDS = ("knave", "knight")
Statement = list[Any]
"""``["is", i, kind]``, ``["same", i, j]``, ``["differ", i, j]``, ``["if", i, kind, j, kind]``,
``["and", i, kind, j, kind]``, ``["or", i, kind, j, kind]``, ``["least", k]``, ``["exactly", k]``;
i and j are the numbers of people, k counts knights."""

_FORMS = {
    **{"is": "ik", "same": "ii", "differ": "ii", "if": "ikik", "and": "ikik", "or": "ikik"},
    **{"least": "c", "exactly": "c"},
}


class KnightsKnavesEnv(SolvedEnv):
    r"""Find out who is a knight and who is a knave from what they say.

    ## Description
    Knights always tell the truth, knaves always lie. Each person says one thing about some of them:
    what kind somebody is, that two are of the same kind or not, an "if", "and" or "or" of two
    such claims, or how many of them are knights. Exactly one assignment fits.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    ``Ana: knight, Ben: knave``, in any order.

    ## Observation Space
    The rules, what each person says, and how to answer. The last observation is empty.

    ## Starting State
    Random people, kinds and statements that agree with the kinds, drawn until they fit no other
    assignment.

    ## Rewards
    1 for the right kind of every person, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_people`` (2 to 8, default 3), ``split`` ("train", "test" or "all").
    ``rllm/KnightsKnavesHard-v0`` has six people.
    Task: ``{"people": ["Ana", "Ben"], "statements": [["is", 1, "knave"], ["same", 0, 1]]}``, one
    statement a person, people by number from 0 (see ``Statement``); ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self, *, num_people: int = 3, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_people = integer_argument("num_people", num_people, 2, MAX_PEOPLE)

    def draw(self) -> Task:
        """Return people and statements that fit one assignment."""
        people = draw_items(self.np_random, NAMES, self.num_people)
        while True:
            kinds = [draw_flag(self.np_random) for _ in people]
            statements = [self._statement(person, kinds) for person in range(len(people))]
            if len(fitting_kinds(statements)) == 1:
                return {"people": people, "statements": statements}

    def _statement(self, speaker: int, kinds: Sequence[bool]) -> Statement:
        """Return a random statement that is true just where the speaker is a knight."""
        rng = self.np_random
        others = [person for person in range(len(kinds)) if person != speaker]
        while True:
            form = draw_item(rng, ("is", "same", "differ", "if", "and", "or", "least", "exactly"))
            if form in ("least", "exactly"):
                statement: Statement = [form, draw_integer(rng, 1, len(kinds))]
            elif form == "is":
                statement = [form, draw_item(rng, others), draw_item(rng, KINDS)]
            elif form in ("same", "differ"):
                statement = [form, speaker, draw_item(rng, others)]
                if len(others) > 1 and draw_flag(rng):
                    statement = [form, *draw_items(rng, others, 2)]
            else:
                first, second = draw_items(rng, range(len(kinds)), 2)
                statement = [form, first, draw_item(rng, KINDS), second, draw_item(rng, KINDS)]
            if is_true(statement, kinds) == kinds[speaker]:
                return statement

    def check(self, task: Task) -> None:
        """Check the names and the form of each statement."""
        people = words_field(task, "people", (2, MAX_PEOPLE))
        statements = list_field(task, "statements", len(people), len(people))
        for statement in statements:
            if not _is_statement(statement, len(people)):
                raise TaskError(
                    f"'statements' holds {excerpt(statement)}; the forms are those of "
                    f"{', '.join(_FORMS)}, with people from 0 to {len(people) - 1}"
                )

    def question(self, task: Task) -> str:
        """Return the rules and what is said."""
        people = task["people"]
        lines = [
            f'{name} says: "{_sentence(statement, people, speaker)}"'
            for speaker, (name, statement) in enumerate(
                zip(people, task["statements"], strict=True)
            )
        ]
        example = ", ".join(f"{name}: ..." for name in people)
        return (
            "Each person is a knight or a knave. Knights always tell the truth, knaves always "
            "lie.\n" + "\n".join(lines) + "\nWho is a knight and who is a knave? Give the answer "
            f"as \\boxed{{{example}}} with knight or knave for each."
        )

    def solve(self, task: Task) -> str:
        """Return the one assignment that fits, found by trying all.

        Raises:
            TaskError: None fits, or more than one.
        """
        fitting = fitting_kinds(task["statements"])
        if len(fitting) != 1:
            raise TaskError(f"{len(fitting)} assignments fit the statements; exactly one must")
        pairs = zip(task["people"], fitting[0], strict=True)
        return ", ".join(f"{name}: {KINDS[is_knight]}" for name, is_knight in pairs)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer gives every person the right kind."""
        given = read_pairs(answer)
        return given is not None and given == read_pairs(task["answer"])


def is_true(statement: Statement, kinds: Sequence[bool]) -> bool:
    """Return whether a statement is true where ``kinds`` says who is a knight."""
    form, *rest = statement
    if form in ("least", "exactly"):
        return sum(kinds) >= rest[0] if form == "least" else sum(kinds) == rest[0]
    if form in ("same", "differ"):
        return (kinds[rest[0]] == kinds[rest[1]]) == (form == "same")
    claims = [
        kinds[person] == (kind == "knight")
        for person, kind in zip(rest[::2], rest[1::2], strict=True)
    ]
    if form == "is":
        return claims[0]
    if form == "if":
        return not claims[0] or claims[1]
    return all(claims) if form == "and" else any(claims)


def fitting_kinds(statements: Sequence[Statement]) -> list[tuple[bool, ...]]:
    """Return every assignment under which just the knights' statements are true."""
    return [
        kinds
        for kinds in product((False, True), repeat=len(statements))
        if all(
            is_true(statement, kinds) == is_knight
            for statement, is_knight in zip(statements, kinds, strict=True)
        )
    ]


def _is_statement(value: Any, num_people: int) -> bool:
    if not isinstance(value, list) or not value or not isinstance(value[0], str):
        return False
    form = _FORMS.get(value[0])
    if form is None or len(value) != 1 + len(form):
        return False
    for place, item in zip(form, value[1:], strict=True):
        if place == "k":
            is_good = item in KINDS
        else:
            low, high = (0, num_people - 1) if place == "i" else (0, num_people)
            is_good = type(item) is int and low <= item <= high
        if not is_good:
            return False
    return True


def _sentence(statement: Statement, people: Sequence[str], speaker: int) -> str:
    """Return a statement as the speaker says it."""
    form, *rest = statement
    if form in ("least", "exactly"):
        count = "at least" if form == "least" else "exactly"
        verb = "is a knight" if rest[0] == 1 else "are knights"
        return f"{count.capitalize()} {rest[0]} of us {verb}."
    if form in ("same", "differ"):
        # "Ben and I": whoever speaks comes last.
        last_self = sorted(rest, key=lambda person: person == speaker)
        first, second = ("I" if person == speaker else people[person] for person in last_self)
        kinds = "the same kind" if form == "same" else "different kinds"
        return f"{first} and {second} are of {kinds}."
    claims = [
        f"{'I am' if person == speaker else f'{people[person]} is'} a {kind}"
        for person, kind in zip(rest[::2], rest[1::2], strict=True)
    ]
    if form == "is":
        return f"{claims[0]}."
    if form == "if":
        return f"If {claims[0]}, then {claims[1]}."
    return f"{claims[0]} {form} {claims[1]}."
