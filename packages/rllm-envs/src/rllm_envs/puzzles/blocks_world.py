"""``rllm/BlocksWorld-v0``: rebuild stacks of blocks, one block at a time."""

import re

import numpy as np

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.puzzles.checks import check_int, check_turns
from rllm_envs.puzzles.moves import MoveEnv, split_moves
from rllm_envs.tasks import Task

LETTERS = "ABCDEFGHIJKLMNOPQRST"
TABLE = "table"
_MOVE = re.compile(
    r"(?:move |put |stack |unstack |place )?(?:block )?([a-t]) ?(?:onto|on|to|->|>) ?"
    r"(?:the |block )?(table|[a-t])"
)


class BlocksWorldEnv(MoveEnv):
    r"""Rebuild stacks of blocks, one block at a time.

    ## Description
    Blocks named by letters stand in stacks on a table. A move takes a block with nothing on it and
    puts it on another such block or on the table, which has room for all. The goal is a stated set
    of stacks.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one or
    several moves such as ``A on B, C on table``, made in order up to the first that is not
    possible.

    ## Observation Space
    The rules, then the goal and the present stacks, each from bottom to top, such as ``A B | C``.
    After an action the present stacks, behind the reason where a move was not possible.

    ## Starting State
    The blocks in random order, cut into stacks at each gap with probability 1/2; the goal alike,
    but different.

    ## Rewards
    1 for the stacks of the goal, 0 otherwise; the order of stacks does not count.

    ## Episode End
    Terminates with the goal. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no moves in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``blocks`` (2 to 20, default 4), ``max_turns`` (actions, and moves; 4 per block by default; two
    per block are always enough), ``split`` ("train", "test" or "all").
    ``rllm/BlocksWorldHard-v0``: ``blocks=8``. The oracle puts a block in its final place where it
    can, and else a block that is in the way on the table; that is near the fewest moves.
    Task: ``{"start": ["AB", "C"], "goal": ["CBA"]}``, each stack from bottom to top.

    ## References
    Slaney and Thiébaux, "Blocks World revisited" (2001), for the strategy and its bound.

    ## Version History
    * v0: Initial version
    """

    hint = "Write moves in a box, such as \\boxed{A on B} or \\boxed{A on table, B on C}."

    def __init__(
        self,
        *,
        blocks: int = 4,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.blocks = check_int("blocks", blocks, 2, len(LETTERS))
        turns = check_turns(max_turns, 4 * blocks)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._stacks: list[str] = []
        self._goal: list[str] = []

    def generate_task(self) -> Task:
        """Return two random sets of stacks."""
        while True:
            start, goal = (random_stacks(self.np_random, self.blocks) for _ in range(2))
            if start != goal:
                return {"start": start, "goal": goal}

    def validate_task(self, task: Task) -> Task:
        """Check that both sets of stacks hold the same blocks, and that they differ."""
        start, goal = (task_stacks(task, field) for field in ("start", "goal"))
        if sorted("".join(start)) != sorted("".join(goal)) or sorted(start) == sorted(goal):
            raise TaskError(
                f"'start' and 'goal' must differ and hold the same blocks, got {excerpt(task)}"
            )
        needed = len(stacking_moves(start, goal))
        if needed > self.max_turns:
            raise TaskError(f"{needed} moves are planned, and max_turns is {self.max_turns}")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules, the goal and the stacks."""
        self._stacks, self._goal = task["start"], sorted(task["goal"])
        self.start_moves()
        return (
            "Blocks named by letters stand in stacks on a table. A move takes a block that has "
            "nothing on it and puts it on another block that has nothing on it, or on the table. "
            "Stacks are listed from bottom to top, with | between them; their order does not "
            "count. Write moves in a box, such as \\boxed{A on B} or \\boxed{A on table, B on C}. "
            f"{self.budget_text()}\nGoal: {_words(self._goal)}\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return moves such as "A B" or "A table"."""
        matches = [_MOVE.fullmatch(part) for part in split_moves(text, r"[,;\n]|\bthen\b|\band\b")]
        moves = [
            f"{match[1].upper()} {match[2] if match[2] == TABLE else match[2].upper()}"
            for match in matches
            if match is not None
        ]
        return moves if len(moves) == len(matches) else None

    def play(self, move: str) -> str:
        """Put a block on another or on the table, if both have nothing on them."""
        block, target = move.split()
        names = "".join(self._stacks)
        unknown = [name for name in (block, target) if name != TABLE and name not in names]
        if unknown:
            return f"There is no block {unknown[0]}."
        tops = [stack[-1] for stack in self._stacks]
        if block not in tops or (target != TABLE and target not in tops):
            covered = block if block not in tops else target
            return f"Something stands on block {covered}."
        if block == target:
            return f"Block {block} cannot stand on itself."
        self._stacks = move_block(self._stacks, block, target)
        return ""

    def board(self) -> str:
        """Return the present stacks."""
        return f"Stacks: {_words(sorted(self._stacks))}"

    def is_solved(self) -> bool:
        """Return whether the stacks are those of the goal."""
        return sorted(self._stacks) == self._goal

    def plan(self) -> list[str]:
        """Return moves that reach the goal, at most two per block."""
        moves = (move.split() for move in stacking_moves(self._stacks, self._goal))
        return [f"{block} on {target}" for block, target in moves]


def random_stacks(np_random: np.random.Generator, num_blocks: int) -> list[str]:
    """Return stacks of the first ``num_blocks`` letters, in alphabetical order."""
    order = "".join(LETTERS[i] for i in np_random.permutation(num_blocks))
    cuts = np_random.random(num_blocks - 1) < 0.5
    marked = order[0] + "".join(
        f" {block}" if cut else block for block, cut in zip(order[1:], cuts, strict=True)
    )
    return sorted(marked.split())


def task_stacks(task: Task, field: str) -> list[str]:
    """Return the stacks of a given task.

    Raises:
        TaskError: The field is no list of texts of different letters A to T.
    """
    stacks = task.get(field)
    is_right = isinstance(stacks, list) and all(isinstance(s, str) and s for s in stacks)
    names = "".join(stacks) if is_right and isinstance(stacks, list) else ""
    if len(names) < 2 or len(set(names)) < len(names) or set(names) - set(LETTERS):
        raise TaskError(
            f"the task needs {field!r}, a list of stacks of different letters from {LETTERS[0]} to "
            f"{LETTERS[-1]}, got {excerpt(stacks)}"
        )
    return task[field]


def move_block(stacks: list[str], block: str, target: str) -> list[str]:
    """Return the stacks after a top block has gone onto another top block or the table."""
    rest = [stack.removesuffix(block) for stack in stacks]
    rest = [stack + block if stack.endswith(target) else stack for stack in rest if stack]
    return [*rest, block] if target == TABLE else rest


def stacking_moves(stacks: list[str], goal: list[str]) -> list[str]:
    """Return moves "A B" or "A table" that lead from some stacks to others.

    A block is at rest if all from the table up to it is as in the goal. As long as a top block can
    come to rest by one move, it does; otherwise the top of a stack that is not at rest goes to the
    table. Each block moves at most twice, so there are at most twice as many moves as needed.

    Args:
        stacks: From bottom to top.
        goal: Stacks of the same blocks.
    """
    pairs = (pair for stack in goal for pair in zip("." + stack, stack, strict=False))
    below = {block: under for under, block in pairs}
    moves: list[str] = []
    while sorted(stacks) != sorted(goal):
        resting = [_num_resting(stack, below) for stack in stacks]
        free = {stack[-1] for stack, n in zip(stacks, resting, strict=True) if n == len(stack)}
        tops = sorted(stack[-1] for stack, n in zip(stacks, resting, strict=True) if n < len(stack))
        ready = [block for block in tops if below[block] in free or below[block] == "."]
        if ready:
            block, under = ready[0], below[ready[0]]
            target = TABLE if under == "." else under
        else:
            # A block that stands alone on the table gains nothing by moving there.
            high = {stack[-1] for stack in stacks if len(stack) > 1}
            block, target = next(block for block in tops if block in high), TABLE
        moves.append(f"{block} {target}")
        stacks = move_block(stacks, block, target)
    return moves


def _num_resting(stack: str, below: dict[str, str]) -> int:
    count = 0
    for under, block in zip("." + stack, stack, strict=False):
        if below[block] != under:
            break
        count += 1
    return count


def _words(stacks: list[str]) -> str:
    return " | ".join(" ".join(stack) for stack in stacks)
