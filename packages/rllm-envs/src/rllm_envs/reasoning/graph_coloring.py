"""``rllm/GraphColoring-v0``: colour regions so that neighbours differ."""

from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_pairs
from rllm_envs.reasoning.draws import draw_items, shuffled
from rllm_envs.reasoning.fields import integer_argument, list_field, words_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

REGIONS = "ABCDEFGHIJKLMNOP"
COLOURS = ("red", "green", "blue", "yellow", "purple")
MAX_BORDERS = 120


class GraphColoringEnv(SolvedEnv):
    r"""Colour regions with a few colours so that no two neighbours have the same.

    ## Description
    The agent reads which regions are neighbours and gives each region one of the colours.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    ``A: red, B: blue, C: red``, in any order.

    ## Observation Space
    The regions, the pairs of neighbours, the colours. The last observation is empty.

    ## Starting State
    A hidden random colouring and uniform pairs among the regions that it colours differently, so
    that there is a solution; every region has a neighbour.

    ## Rewards
    1 for any colouring of all regions without equal neighbours, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_regions`` (4 to 16, default 7), ``num_borders`` (at least ``num_regions - 1``; default
    None: twice ``num_regions``; at most two thirds of all pairs), ``num_colours`` (3 to 5, default
    3), ``split`` ("train", "test" or "all").
    ``rllm/GraphColoringHard-v0`` has 14 regions and 32 borders.
    Task: ``{"regions": ["A", "B", "C"], "borders": [["A", "B"], ["B", "C"]], "colours": ["red",
    "blue"]}``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_regions: int = 7,
        num_borders: int | None = None,
        num_colours: int = 3,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_regions = integer_argument("num_regions", num_regions, 4, len(REGIONS))
        self.num_colours = integer_argument("num_colours", num_colours, 3, len(COLOURS))
        # Equal shares of the colours leave about 1 - 1 / colours of the pairs for borders.
        most = num_regions * (num_regions - 1) // 3
        wanted = min(most, 2 * num_regions) if num_borders is None else num_borders
        self.num_borders = integer_argument("num_borders", wanted, num_regions - 1, most)

    def draw(self) -> Task:
        """Return regions and borders that admit a colouring."""
        rng = self.np_random
        regions = list(REGIONS[: self.num_regions])
        while True:
            # As equal numbers of regions of each colour as possible, in random places.
            hidden = [place % self.num_colours for place in range(self.num_regions)]
            colours = dict(zip(shuffled(rng, regions), hidden, strict=True))
            pairs = [[a, b] for a in regions for b in regions if a < b and colours[a] != colours[b]]
            borders = draw_items(rng, pairs, self.num_borders)
            if {region for pair in borders for region in pair} == {*regions}:
                chosen = list(COLOURS[: self.num_colours])
                return {"regions": regions, "borders": borders, "colours": chosen}

    def check(self, task: Task) -> None:
        """Check the names and that borders join two different regions."""
        regions = words_field(task, "regions", (2, len(REGIONS)))
        words_field(task, "colours", (2, len(COLOURS)))
        for border in list_field(task, "borders", 1, MAX_BORDERS):
            if not _is_border(border, regions):
                raise TaskError(
                    f"'borders' must hold pairs of two different regions, got {excerpt(border)}"
                )

    def question(self, task: Task) -> str:
        """Return the map and the question."""
        borders = ", ".join(f"{a}-{b}" for a, b in task["borders"])
        example = ", ".join(f"{region}: ..." for region in task["regions"])
        return (
            f"These pairs of regions are neighbours: {borders}. Colour each region with one of "
            f"{', '.join(task['colours'])} so that neighbours have different colours. Answer as "
            f"\\boxed{{{example}}}."
        )

    def solve(self, task: Task) -> str:
        """Return a colouring found by backtracking.

        Raises:
            TaskError: There is none.
        """
        colouring = _colouring(task, {})
        if colouring is None:
            raise TaskError("there is no colouring in which all neighbours differ")
        return ", ".join(f"{region}: {colouring[region]}" for region in task["regions"])

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer colours all regions and no two neighbours equally."""
        given = read_pairs(answer) or {}
        if {*given} != {region.lower() for region in task["regions"]}:
            return False
        if {*given.values()} - {colour.lower() for colour in task["colours"]}:
            return False
        return all(given[a.lower()] != given[b.lower()] for a, b in task["borders"])


def _colouring(task: Task, done: dict[str, str]) -> dict[str, str] | None:
    """Extend a partial colouring, always at the region with the fewest colours left."""
    left: dict[str, list[str]] = {}
    for region in task["regions"]:
        if region not in done:
            near = [b if a == region else a for a, b in task["borders"] if region in (a, b)]
            taken = {done.get(neighbour) for neighbour in near}
            left[region] = [colour for colour in task["colours"] if colour not in taken]
    if not left:
        return done
    region = min(left, key=lambda name: len(left[name]))
    for colour in left[region]:
        found = _colouring(task, {**done, region: colour})
        if found is not None:
            return found
    return None


def _is_border(border: Any, regions: list[str]) -> bool:
    return (
        isinstance(border, list)
        and len(border) == 2
        and all(region in regions for region in border)
        and border[0] != border[1]
    )
