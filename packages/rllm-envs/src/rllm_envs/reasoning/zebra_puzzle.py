"""``rllm/ZebraPuzzle-v0``: who lives where, with which colour, animal and drink."""

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import plain_text
from rllm_envs.reasoning.draws import draw_items
from rllm_envs.reasoning.fields import integer_argument, integer_field, list_field, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.words import NAMES
from rllm_envs.reasoning.zebra_solver import RELATIONS, Clue, arrangements, draw_clues
from rllm_envs.tasks import Task

MAX_HOUSES = 5
MAX_ATTRIBUTES = 5
MAX_CLUES = 100
ATTRIBUTES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "name": ("{}", NAMES),
    "colour": (
        "the person in the {} house",
        ("red", "blue", "green", "yellow", "white", "brown", "orange", "purple"),
    ),
    "animal": (
        "the owner of the {}",
        ("cat", "dog", "horse", "parrot", "rabbit", "snake", "turtle", "zebra"),
    ),
    "drink": (
        "the person who drinks {}",
        ("beer", "cocoa", "coffee", "juice", "lemonade", "milk", "tea", "water"),
    ),
    "job": (
        "the {}",
        ("baker", "doctor", "driver", "farmer", "nurse", "painter", "pilot", "teacher"),
    ),
    "sport": (
        "the person who likes {}",
        ("chess", "football", "golf", "hockey", "rowing", "running", "swimming", "tennis"),
    ),
}
"""How each attribute is worded, and its values."""

_SENTENCES = {
    "at": "{0} lives in house {1}.",
    "not_at": "{0} does not live in house {1}.",
    "same": "{0} is {1}.",
    "not_same": "{0} is not {1}.",
    "left": "{0} lives directly to the left of {1}.",
    "next": "{0} lives next to {1}.",
    "before": "{0} lives somewhere to the left of {1}.",
}
_HOUSE = re.compile(r"(?:house\s*)?(\d)(?!\d)(.*)", re.DOTALL)


class ZebraPuzzleEnv(SolvedEnv):
    r"""Find who lives in which house, and with what, from clues (an "Einstein puzzle").

    ## Description
    Houses stand in a row. Each has one inhabitant with a name, and one value of each further
    attribute (colour, animal, drink, job, sport). The clues admit one arrangement, and none of them
    can be left out.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer, all
    values house by house: ``1: Ana, red, cat; 2: Ben, blue, dog``. Within a house the order does
    not matter.

    ## Observation Space
    The rules, all values, the numbered clues and how to answer. The last observation is empty.

    ## Starting State
    A random arrangement of random values. Clues that it fulfils are added at random until no other
    arrangement fulfils them, and superfluous ones are taken away. At most one clue names the house
    of a value.

    ## Rewards
    1 for the whole arrangement, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_houses`` (2 to 5, default 3), ``num_attributes`` (2 to 5, names included, default 3),
    ``split`` ("train", "test" or "all"). ``rllm/ZebraPuzzleHard-v0`` has five houses and four
    attributes.
    Task: ``{"houses": 2, "attributes": {"name": ["Ana", "Ben"], "colour": ["red", "blue"]},
    "clues": [["same", "Ana", "red"], ["at", "red", 1]]}``; a clue holds a relation ("at", "not_at",
    "same", "not_same", "left", "next" or "before"), a value, and another value or a house from 1;
    ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_houses: int = 3,
        num_attributes: int = 3,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_houses = integer_argument("num_houses", num_houses, 2, MAX_HOUSES)
        self.num_attributes = integer_argument("num_attributes", num_attributes, 2, MAX_ATTRIBUTES)

    def draw(self) -> Task:
        """Return random values and clues with one arrangement."""
        rng = self.np_random
        others = draw_items(rng, tuple(ATTRIBUTES)[1:], self.num_attributes - 1)
        attributes = {
            attribute: draw_items(rng, ATTRIBUTES[attribute][1], self.num_houses)
            for attribute in ("name", *others)
        }
        clues = draw_clues(rng, list(attributes.values()))
        return {
            "houses": self.num_houses,
            "attributes": attributes,
            "clues": [list(clue) for clue in clues],
        }

    def check(self, task: Task) -> None:
        """Check the values and the form of the clues."""
        houses = integer_field(task, "houses", 2, MAX_HOUSES)
        attributes = task.get("attributes")
        if not isinstance(attributes, dict) or not 1 <= len(attributes) <= MAX_ATTRIBUTES:
            raise TaskError(
                f"'attributes' must be a dict of 1 to {MAX_ATTRIBUTES} lists, got "
                f"{excerpt(attributes)}"
            )
        if {*attributes} - {*ATTRIBUTES}:
            raise TaskError(
                f"'attributes' must hold lists under names of {', '.join(ATTRIBUTES)}; got "
                f"{excerpt(attributes)}"
            )
        for attribute in attributes:
            words_field(attributes, attribute, (houses, houses))
        values = [value for group in attributes.values() for value in group]
        words_field({"attributes": values}, "attributes", (1, len(values)))
        for clue in list_field(task, "clues", 1, MAX_CLUES):
            if not _is_clue(clue, values, houses):
                raise TaskError(
                    f"'clues' must hold lists of a relation ({', '.join(RELATIONS)}), a value and "
                    f"another value or a house, got {excerpt(clue)}"
                )

    def question(self, task: Task) -> str:
        """Return the rules, the values and the clues."""
        houses, attributes = task["houses"], task["attributes"]
        listed = "\n".join(f"{key}: {', '.join(sorted(v))}" for key, v in attributes.items())
        phrases = {
            value: ATTRIBUTES[key][0].format(value) for key, v in attributes.items() for value in v
        }
        lines = []
        for number, (relation, first, second) in enumerate(task["clues"], start=1):
            other = phrases[second] if isinstance(second, str) else second
            sentence = _SENTENCES[relation].format(phrases[first], other)
            lines.append(f"{number}. {sentence[0].upper()}{sentence[1:]}")
        example = "; ".join(f"{n}: {', '.join(attributes)}" for n in range(1, houses + 1))
        return (
            f"{houses} houses stand in a row, numbered 1 to {houses} from left to right. One "
            f"person lives in each. Each of these values belongs to exactly one house.\n{listed}\n"
            + "\n".join(lines)
            + f"\nWhich values belong to which house? Answer as \\boxed{{{example}}} with the "
            "values in place of their kinds."
        )

    def solve(self, task: Task) -> str:
        """Return the one arrangement.

        Raises:
            TaskError: No arrangement fulfils the clues, or more than one.
        """
        groups = list(task["attributes"].values())
        clues: list[Clue] = [(clue[0], clue[1], clue[2]) for clue in task["clues"]]
        found = list(islice(arrangements(groups, clues), 2))
        if len(found) != 1:
            count = "more than one arrangement fulfils" if found else "no arrangement fulfils"
            raise TaskError(f"{count} the clues; exactly one must")
        rows = []
        for house in range(task["houses"]):
            row = [value for group in groups for value in group if found[0][value] == house]
            rows.append(f"{house + 1}: {', '.join(row)}")
        return "; ".join(rows)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer puts every value into its house."""
        values = {value.lower() for group in task["attributes"].values() for value in group}
        given = _read_houses(answer, values)
        return given is not None and given == _read_houses(task["answer"], values)


def _read_houses(answer: str, values: set[str]) -> dict[int, list[str]] | None:
    """Return the sorted values of each house, or None where a part names no house."""
    houses: dict[int, list[str]] = {}
    for part in plain_text(answer).lower().split(";"):
        if not part.strip():
            continue
        match = _HOUSE.fullmatch(part.strip())
        if match is None or int(match.group(1)) in houses:
            return None
        words = re.findall(r"[a-z]+", match.group(2))
        houses[int(match.group(1))] = sorted(word for word in words if word in values)
    return houses


def _is_clue(clue: Any, values: list[str], houses: int) -> bool:
    if not isinstance(clue, list) or len(clue) != 3 or clue[0] not in [*RELATIONS]:
        return False
    relation, first, second = clue
    if first not in values:
        return False
    if relation in ("at", "not_at"):
        return type(second) is int and 1 <= second <= houses
    return second in values and second != first
