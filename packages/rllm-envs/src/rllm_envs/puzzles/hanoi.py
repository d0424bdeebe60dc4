"""``rllm/TowerOfHanoi-v0``: move disks from peg to peg into a given arrangement."""

import re

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.puzzles.checks import check_int, check_turns, task_integers
from rllm_envs.puzzles.moves import MoveEnv, split_moves
from rllm_envs.tasks import Task

PEGS = "ABC"
MAX_DISKS = 10
_MOVE = re.compile(r"(?:move |from )?([abc])(?: ?(?:->|-|>|to|,)? ?)([abc])")


class TowerOfHanoiEnv(MoveEnv):
    r"""Move disks from peg to peg into a given arrangement.

    ## Description
    Disks of different size lie on three pegs. A move takes the top disk of a peg to another peg; no
    disk may lie on a smaller one. The goal is a stated arrangement.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one or
    several moves such as ``AC, AB`` (``A->C`` and ``A to C`` do), made in order up to the first
    that is not allowed.

    ## Observation Space
    The rules, then both arrangements with the disks of each peg from bottom to top, such as
    ``A: 3 2``. After an action the present one, behind the reason where a move was not allowed.

    ## Starting State
    Each disk is on a uniform peg at the start, and at the goal; the two arrangements differ.

    ## Rewards
    1 for the arrangement, 0 otherwise.

    ## Episode End
    Terminates with the arrangement. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no moves in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``disks`` (2 to 10, default 4), ``max_turns`` (actions, and moves; 2^(disks + 1) by default,
    about twice the most that an arrangement needs, 2^disks - 1), ``split`` ("train", "test" or
    "all"). ``rllm/TowerOfHanoiHard-v0``: ``disks=6``.
    Task: ``{"start": [0, 0, 0], "goal": [2, 2, 2]}``, the peg of each disk, smallest disk first,
    pegs numbered 0 to 2.

    ## Version History
    * v0: Initial version
    """

    hint = "Write moves in a box, such as \\boxed{AC, AB}: from which peg to which."

    def __init__(
        self,
        *,
        disks: int = 4,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.disks = check_int("disks", disks, 2, MAX_DISKS)
        turns = check_turns(max_turns, 2 ** (disks + 1))
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._pegs: list[int] = []
        self._goal: list[int] = []

    def generate_task(self) -> Task:
        """Return two random arrangements."""
        while True:
            start, goal = self.np_random.integers(3, size=(2, self.disks)).tolist()
            if start != goal:
                return {"start": start, "goal": goal}

    def validate_task(self, task: Task) -> Task:
        """Check both arrangements, and that the budget is enough."""
        start, goal = (task_integers(task, field, 0, 2) for field in ("start", "goal"))
        if len(start) != len(goal) or not 1 <= len(start) <= MAX_DISKS or start == goal:
            raise TaskError(
                f"'start' and 'goal' must differ and hold one peg for each of 1 to {MAX_DISKS} "
                f"disks, got {excerpt(start)} and {excerpt(goal)}"
            )
        needed = len(shortest_moves(start, goal))
        if needed > self.max_turns:
            raise TaskError(f"the task needs {needed} moves, and max_turns is {self.max_turns}")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and both arrangements."""
        self._pegs, self._goal = task["start"], task["goal"]
        self.start_moves()
        return (
            f"Disks 1 (smallest) to {len(self._pegs)} (largest) lie on the pegs A, B and C. A move "
            "takes the top disk of one peg to another peg, where no smaller disk may lie. Write "
            "moves in a box: \\boxed{AC, AB} moves from A to C, then from A to B. "
            f"{self.budget_text()}\nGoal, from bottom to top:\n{_picture(self._goal)}\n"
            f"{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return moves such as "AC"."""
        matches = [_MOVE.fullmatch(part) for part in split_moves(text)]
        found = [(match[1] + match[2]).upper() for match in matches if match is not None]
        return found if len(found) == len(matches) else None

    def play(self, move: str) -> str:
        """Take the top disk of a peg to another, where the rules allow it."""
        source, target = (PEGS.index(peg) for peg in move)
        if source == target:
            return f"The move {move} is not allowed: it names one peg twice."
        if source not in self._pegs:
            return f"The move {move} is not allowed: there is no disk on {move[0]}."
        disk = self._pegs.index(source)
        if target in self._pegs[:disk]:
            return f"The move {move} is not allowed: a smaller disk lies on {move[1]}."
        self._pegs[disk] = target
        return ""

    def board(self) -> str:
        """Return the present arrangement."""
        return f"Disks now:\n{_picture(self._pegs)}"

    def is_solved(self) -> bool:
        """Return whether the arrangement is the goal."""
        return self._pegs == self._goal

    def plan(self) -> list[str]:
        """Return a shortest list of moves."""
        return shortest_moves(self._pegs, self._goal)


def shortest_moves(start: list[int], goal: list[int]) -> list[str]:
    """Return a shortest list of moves between two arrangements.

    The largest disk that lies wrong moves once or, by the third peg, twice: both plans are made by
    the recursion for a tower, and the shorter one counts.

    Args:
        start: Peg of each disk, smallest first.
        goal: Same form.
    """
    wrong = [disk for disk, peg in enumerate(start) if peg != goal[disk]]
    if not wrong:
        return []
    largest = wrong[-1]
    source, target = start[largest], goal[largest]
    third = 3 - source - target
    small_start, small_goal = start[:largest], goal[:largest]
    once = [
        *_gather(small_start, third),
        PEGS[source] + PEGS[target],
        *_spread(third, small_goal),
    ]
    twice = [
        *_gather(small_start, target),
        PEGS[source] + PEGS[third],
        *_gather([target] * largest, source),
        PEGS[third] + PEGS[target],
        *_spread(source, small_goal),
    ]
    return min(once, twice, key=len)


def _gather(pegs: list[int], target: int) -> list[str]:
    """Return the shortest moves that bring all disks onto one peg."""
    if not pegs:
        return []
    *smaller, source = pegs
    if source == target:
        return _gather(smaller, target)
    third = 3 - source - target
    move = PEGS[source] + PEGS[target]
    return [*_gather(smaller, third), move, *_gather([third] * len(smaller), target)]


def _spread(source: int, goal: list[int]) -> list[str]:
    """Return the shortest moves from one peg to an arrangement: those of gathering, backwards."""
    return [move[::-1] for move in reversed(_gather(goal, source))]


def _picture(pegs: list[int]) -> str:
    lines = []
    for peg, name in enumerate(PEGS):
        disks = [str(disk + 1) for disk in range(len(pegs) - 1, -1, -1) if pegs[disk] == peg]
        lines.append(f"{name}: {' '.join(disks) or '-'}")
    return "\n".join(lines)
