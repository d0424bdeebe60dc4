"""``rllm/Knapsack-v0``: the most valuable things that can be carried."""

from collections.abc import Sequence

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_items
from rllm_envs.reasoning.draws import draw_integer, draw_items
from rllm_envs.reasoning.fields import (
    integer_argument,
    integer_field,
    integers_field,
    words_field,
)
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.reasoning.words import THINGS
from rllm_envs.tasks import Task

MAX_ITEMS = 20
MAX_NUMBER = 1000
MAX_CAPACITY = 5000


class KnapsackEnv(SolvedEnv):
    r"""Choose things of the greatest total value within a weight limit.

    ## Description
    Each thing has a weight and a value and can be taken once. The agent names those that it takes.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: the
    names, separated by commas, in any order.

    ## Observation Space
    The things, one a line, the limit and the question. The last observation is empty.

    ## Starting State
    Uniform weights and values from 1 to ``max_weight`` and ``max_value``; the limit is between 35 %
    and 65 % of the total weight, and at least the lightest weight.

    ## Rewards
    1 for any choice within the limit of the greatest possible value, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_items`` (3 to 20, default 6), ``max_weight`` (5 to 100, default 20), ``max_value`` (5 to
    1,000, default 50), ``split`` ("train", "test" or "all").
    ``rllm/KnapsackHard-v0`` has 14 things.
    Task: ``{"names": ["cup", "hat"], "weights": [3, 4], "values": [10, 7], "capacity": 5}``;
    ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_items: int = 6,
        max_weight: int = 20,
        max_value: int = 50,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_items = integer_argument("num_items", num_items, 3, MAX_ITEMS)
        self.max_weight = integer_argument("max_weight", max_weight, 5, 100)
        self.max_value = integer_argument("max_value", max_value, 5, 1000)

    def draw(self) -> Task:
        """Return random things and a limit."""
        rng, count = self.np_random, self.num_items
        weights = [draw_integer(rng, 1, self.max_weight) for _ in range(count)]
        values = [draw_integer(rng, 1, self.max_value) for _ in range(count)]
        share = draw_integer(rng, 35, 65)
        capacity = max(min(weights), sum(weights) * share // 100)
        names = draw_items(rng, THINGS, count)
        return {"names": names, "weights": weights, "values": values, "capacity": capacity}

    def check(self, task: Task) -> None:
        """Check names, weights and values, and that something fits within the limit."""
        count = len(words_field(task, "names", (1, MAX_ITEMS)))
        weights = integers_field(task, "weights", (1, MAX_NUMBER), (count, count))
        integers_field(task, "values", (1, MAX_NUMBER), (count, count))
        if integer_field(task, "capacity", 1, MAX_CAPACITY) < min(weights):
            raise TaskError(f"nothing fits within the capacity, {excerpt(task['capacity'])}")

    def question(self, task: Task) -> str:
        """Return the things and the question."""
        lines = [
            f"{name}: weight {weight}, value {value}"
            for name, weight, value in zip(
                task["names"], task["weights"], task["values"], strict=True
            )
        ]
        return (
            "\n".join(lines)
            + f"\nTake things with a total weight of at most {task['capacity']} and the greatest "
            "possible total value, each at most once. Give their names in \\boxed{}, separated by "
            "commas."
        )

    def solve(self, task: Task) -> str:
        """Return a best choice, by dynamic programming over the weight."""
        chosen = best_choice(task["weights"], task["values"], task["capacity"])
        return ", ".join(task["names"][place] for place in chosen)

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer names things of the greatest value within the limit."""
        places = {name.lower(): place for place, name in enumerate(task["names"])}
        names = [name.lower().removeprefix("the ") for name in read_items(answer)]
        if not names or len({*names}) < len(names) or {*names} - {*places}:
            return False
        chosen = [places[name] for name in names]
        if sum(task["weights"][place] for place in chosen) > task["capacity"]:
            return False
        best = best_choice(task["weights"], task["values"], task["capacity"])
        return _total(task["values"], chosen) == _total(task["values"], best)


def best_choice(weights: Sequence[int], values: Sequence[int], capacity: int) -> list[int]:
    """Return the places of things of the greatest total value within a capacity, ascending."""
    best = {0: (0, [])}
    for place, (weight, value) in enumerate(zip(weights, values, strict=True)):
        for used, (total, chosen) in list(best.items()):
            heavier = used + weight
            if heavier <= capacity and best.get(heavier, (-1, []))[0] < total + value:
                best[heavier] = (total + value, [*chosen, place])
    return max(best.values(), key=lambda found: found[0])[1]


def _total(values: Sequence[int], chosen: Sequence[int]) -> int:
    return sum(values[place] for place in chosen)
