"""``rllm/ObjectTracking-v0``: who holds what after a series of swaps."""

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_pairs
from rllm_envs.reasoning.draws import draw_items
from rllm_envs.reasoning.fields import integer_argument, list_field, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.words import NAMES, THINGS
from rllm_envs.tasks import Task

MAX_PEOPLE = 10
MAX_SWAPS = 50


class ObjectTrackingEnv(SolvedEnv):
    r"""Follow things that people swap.

    ## Description
    Each person holds one thing. Pairs of people swap what they hold, one pair after the other. The
    agent says who holds what in the end.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    ``Ana: ball, Ben: key``, in any order.

    ## Observation Space
    What each person holds at first, the swaps, the question. The last observation is empty.

    ## Starting State
    Random people and things, and uniform pairs of people; no pair swaps twice in a row.

    ## Rewards
    1 if every person's thing is right, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_people`` (3 to 10, default 4), ``num_swaps`` (1 to 50, default 5), ``split`` ("train",
    "test" or "all"). ``rllm/ObjectTrackingHard-v0`` has eight people and twenty swaps.
    Task: ``{"people": ["Ana", "Ben"], "things": ["ball", "key"], "swaps": [[0, 1]]}``, people by
    number from 0; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_people: int = 4,
        num_swaps: int = 5,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_people = integer_argument("num_people", num_people, 3, MAX_PEOPLE)
        self.num_swaps = integer_argument("num_swaps", num_swaps, 1, MAX_SWAPS)

    def draw(self) -> Task:
        """Return random people, things and swaps."""
        rng, count = self.np_random, self.num_people
        swaps: list[list[int]] = []
        while len(swaps) < self.num_swaps:
            pair = draw_items(rng, range(count), 2)
            if not swaps or {*pair} != {*swaps[-1]}:
                swaps.append(pair)
        people, things = draw_items(rng, NAMES, count), draw_items(rng, THINGS, count)
        return {"people": people, "things": things, "swaps": swaps}

    def check(self, task: Task) -> None:
        """Check names, things and swaps."""
        count = len(words_field(task, "people", (2, MAX_PEOPLE)))
        words_field(task, "things", (count, count))
        for swap in list_field(task, "swaps", 1, MAX_SWAPS):
            is_pair = isinstance(swap, list) and len(swap) == 2 and swap[0] != swap[1]
            if not is_pair or not all(type(one) is int and 0 <= one < count for one in swap):
                raise TaskError(
                    f"'swaps' must hold pairs of two different people from 0 to {count - 1}, got "
                    f"{excerpt(swap)}"
                )

    def question(self, task: Task) -> str:
        """Return the story and the question."""
        people = task["people"]
        held = ", ".join(
            f"{name} holds the {thing}" for name, thing in zip(people, task["things"], strict=True)
        )
        swaps = " ".join(f"{people[a]} and {people[b]} swap." for a, b in task["swaps"])
        example = ", ".join(f"{name}: ..." for name in people)
        return (
            f"{held}. Then pairs of them swap what they hold. {swaps} Who holds what in the end? "
            f"Answer as \\boxed{{{example}}}."
        )

    def solve(self, task: Task) -> str:
        """Return what each person holds after the swaps."""
        held = list(task["things"])
        for a, b in task["swaps"]:
            held[a], held[b] = held[b], held[a]
        return ", ".join(f"{n}: {thing}" for n, thing in zip(task["people"], held, strict=True))

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer gives every person the right thing."""
        given = read_pairs(answer)
        return given is not None and given == read_pairs(task["answer"])
