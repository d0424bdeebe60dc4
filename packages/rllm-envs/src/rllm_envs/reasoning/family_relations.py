"""``rllm/FamilyRelations-v0``: how two members of a family are related."""

from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_word
from rllm_envs.reasoning.draws import draw_flag, draw_item, shuffled
from rllm_envs.reasoning.family_tree import GIVEN, WORDINGS, Family, draw_family
from rllm_envs.reasoning.fields import integer_argument, is_word, list_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

MAX_PEOPLE = 60
MAX_FACTS = 200
SEXES = ("woman", "man")


class FamilyRelationsEnv(SolvedEnv):
    r"""Work out how one person is related to another from facts about a family.

    ## Description
    The facts say who is whose parent or child and who is married to whom. The relation asked for
    is never stated itself: sibling, grandparent, aunt, cousin, mother-in-law and the like.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer, one
    word such as ``grandmother``, ``uncle``, ``cousin`` or ``sister-in-law``.

    ## Observation Space
    Who is a woman and who a man, the facts in random order, the question. The last observation is
    empty.

    ## Starting State
    A random family of ``num_generations`` generations that descends from one couple; a uniform
    relation among those that occur in it, and a uniform pair of people who stand in it.

    ## Rewards
    1 for the right word, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_generations`` (3 or 4, default 3), ``split`` ("train", "test" or "all").
    ``rllm/FamilyRelationsHard-v0`` has four generations.
    Task: ``{"people": {"Ada": "woman", "Carl": "man", "Tom": "man"}, "facts": [["mother", "Ada",
    "Carl"], ["son", "Tom", "Carl"]], "first": "Tom", "second": "Ada"}``; a fact holds "mother",
    "father", "daughter", "son" or "married" and two people; asked is what ``first`` is to
    ``second``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self, *, num_generations: int = 3, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_generations = integer_argument("num_generations", num_generations, 3, 4)

    def draw(self) -> Task:
        """Return a random family and two people whose relation is not stated."""
        rng = self.np_random
        people, facts = draw_family(rng, self.num_generations)
        pairs: dict[str, list[tuple[str, str]]] = {}
        for pair, kinds in Family(facts).pairs(list(people)).items():
            if len(kinds) == 1 and kinds[0] not in GIVEN:
                pairs.setdefault(kinds[0], []).append(pair)
        first, second = draw_item(rng, pairs[draw_item(rng, sorted(pairs))])
        stated = []
        for kind, one, other in shuffled(rng, facts):
            if kind == "married":
                stated.append([kind, *shuffled(rng, [one, other])])
            elif draw_flag(rng):
                stated.append([_word("parent", people[one]), one, other])
            else:
                stated.append([_word("child", people[other]), other, one])
        listed = {name: people[name] for name in shuffled(rng, list(people))}
        return {"people": listed, "facts": stated, "first": first, "second": second}

    def check(self, task: Task) -> None:
        """Check the people, the facts and the two people asked about."""
        people: Any = task.get("people")
        is_dict = isinstance(people, dict) and 2 <= len(people) <= MAX_PEOPLE
        if not is_dict or not all(is_word(n) and s in SEXES for n, s in people.items()):
            raise TaskError(
                f"'people' must hold 2 to {MAX_PEOPLE} names with 'woman' or 'man', got "
                f"{excerpt(people)}"
            )
        for fact in list_field(task, "facts", 1, MAX_FACTS):
            if not _is_fact(fact, people):
                raise TaskError(
                    "'facts' must hold lists of mother, father, daughter, son or married and two "
                    f"different people, of the sex that the word says; got {excerpt(fact)}"
                )
        ends = [task.get("first"), task.get("second")]
        if ends[0] == ends[1] or not all(name in [*people] for name in ends):
            raise TaskError(f"'first' and 'second' must be two of the people, got {excerpt(ends)}")

    def question(self, task: Task) -> str:
        """Return the facts and the question."""
        by_sex = {
            sex: ", ".join(name for name, other in task["people"].items() if other == sex)
            for sex in SEXES
        }
        facts = (
            " ".join(
                f"{one} is married to {other}."
                if word == "married"
                else f"{one} is the {word} of {other}."
                for word, one, other in task["facts"]
            )
            .replace("is the son of", "is a son of")
            .replace("is the daughter of", "is a daughter of")
        )
        return (
            f"Women: {by_sex['woman'] or 'none'}. Men: {by_sex['man'] or 'none'}. {facts} What is "
            f"{task['first']} to {task['second']}? Give one word in \\boxed{{}}, such as mother, "
            "grandson, aunt, cousin or sister-in-law."
        )

    def solve(self, task: Task) -> str:
        """Return the word for what the first person is to the second.

        Raises:
            TaskError: They are not related in a way that has a word here, or in several.
        """
        facts = []
        for word, one, other in task["facts"]:
            if word == "married":
                facts.append([word, one, other])
            else:
                is_parent = word in WORDINGS["parent"]
                facts.append(["parent", *((one, other) if is_parent else (other, one))])
        kinds = Family(facts).relations(task["first"], task["second"])
        if len(kinds) != 1:
            raise TaskError(
                f"{task['first']} and {task['second']} have {len(kinds)} relations of "
                f"{', '.join(WORDINGS)}; exactly one is needed"
            )
        return _word(kinds[0], task["people"][task["first"]])

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the right word; hyphens and spaces do not matter."""
        given = read_word(answer).removeprefix("the ").removeprefix("a ").removeprefix("an ")
        return _joined(given) == _joined(task["answer"])


def _word(kind: str, sex: str) -> str:
    return WORDINGS[kind][SEXES.index(sex)]


def _joined(word: str) -> str:
    return word.lower().replace("-", "").replace(" ", "")


def _is_fact(fact: Any, people: dict[str, str]) -> bool:
    if not isinstance(fact, list) or len(fact) != 3:
        return False
    word, one, other = fact
    if not all(name in [*people] for name in (one, other)) or one == other:
        return False
    words = {_word(kind, people[one]) for kind in ("parent", "child")}
    return word in ["married", *words]
