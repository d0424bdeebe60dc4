"""``rllm/WaterJugs-v0``: measure an amount of water with jugs of given sizes."""

import re
from collections import deque
from itertools import permutations
from math import gcd

from rllm_envs.errors import EnvArgumentError, TaskError, excerpt
from rllm_envs.puzzles.checks import check_int, check_turns, task_int, task_integers
from rllm_envs.puzzles.moves import MoveEnv, split_moves
from rllm_envs.tasks import Task

NAMES = "ABC"
MAX_DRAWS = 2000
_MOVE = re.compile(
    r"(fill|empty|pour) (?:jug )?([abc])(?: ?(?:into|in|to|->|>)? ?(?:jug )?([abc]))?"
)


class WaterJugsEnv(MoveEnv):
    r"""Measure an amount of water with jugs of given sizes.

    ## Description
    Empty jugs of known size stand at a tap. A move fills a jug at the tap, empties it, or pours it
    into another jug until the one is empty or the other full. The goal is a stated amount in any
    one jug.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds one or
    several moves such as ``fill A, pour A B, empty B`` (``pour A into B`` does), made in order up
    to the first that is not possible.

    ## Observation Space
    The rules, then the jugs, such as ``A: 3 of 5 | B: 0 of 7``. After an action the jugs again.

    ## Starting State
    Sizes are different and uniform from 2 to ``max_size``, the amount is uniform from 1 to the
    largest size; draws that are impossible or need fewer than ``min_moves`` are drawn again.

    ## Rewards
    1 for the amount, 0 otherwise.

    ## Episode End
    Terminates with the amount. Truncates when the budget of moves or of actions is spent.

    ## Information
    ``success``, ``invalid`` (no moves in a box), ``turn``, ``turns_left``, ``moves_left``.

    ## Arguments
    ``jugs`` (2 or 3, default 3), ``max_size`` (5 to 30, default 12), ``min_moves`` (1 to 12,
    default 3), ``max_turns`` (actions, and moves; default 30), ``split`` ("train", "test" or
    "all"). ``rllm/WaterJugsHard-v0``: ``max_size=24, min_moves=8``.
    Task: ``{"sizes": [3, 5], "amount": 4}``.

    ## Version History
    * v0: Initial version
    """

    hint = "Write moves in a box, such as \\boxed{fill A, pour A B}: fill, empty, pour."

    def __init__(
        self,
        *,
        jugs: int = 3,
        max_size: int = 12,
        min_moves: int = 3,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        self.jugs = check_int("jugs", jugs, 2, 3)
        self.max_size = check_int("max_size", max_size, 5, 30)
        self.min_moves = check_int("min_moves", min_moves, 1, 12)
        turns = check_turns(max_turns, 30)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self._sizes: tuple[int, ...] = ()
        self._amounts: tuple[int, ...] = ()
        self._amount = 0

    def generate_task(self) -> Task:
        """Return random sizes and an amount that can be measured.

        Raises:
            EnvArgumentError: No draw needs as many moves as ``min_moves`` within ``max_turns``.
        """
        for _ in range(MAX_DRAWS):
            choice = self.np_random.choice(self.max_size - 1, self.jugs, replace=False)
            sizes = sorted(int(size) + 2 for size in choice)
            amount = int(self.np_random.integers(1, sizes[-1] + 1))
            moves = fewest_moves(tuple(sizes), (0,) * self.jugs, amount)
            if moves is not None and self.min_moves <= len(moves) <= self.max_turns:
                return {"sizes": sizes, "amount": amount}
        raise EnvArgumentError(
            f"none of {MAX_DRAWS} draws with jugs={self.jugs} and max_size={self.max_size} needs "
            f"from min_moves={self.min_moves} to max_turns={self.max_turns} moves; widen them"
        )

    def validate_task(self, task: Task) -> Task:
        """Check that the amount can be measured within the budget."""
        sizes = task_integers(task, "sizes", 1, 100)
        if not 2 <= len(sizes) <= 3:
            raise TaskError(f"'sizes' must hold 2 or 3 sizes, got {excerpt(sizes)}")
        amount = task_int(task, "amount", 1, max(sizes))
        # Three jugs of these sizes have at most six million states, too many to search.
        if len(sizes) == 3 and max(sizes) > 30:
            raise TaskError(f"three jugs may hold at most 30 each, got {sizes}")
        moves = fewest_moves(tuple(sizes), (0,) * len(sizes), amount)
        if moves is None or len(moves) > self.max_turns:
            raise TaskError(f"{amount} cannot be measured with {sizes} in {self.max_turns} moves")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the jugs."""
        self._sizes, self._amount = tuple(task["sizes"]), task["amount"]
        self._amounts = (0,) * len(self._sizes)
        self.start_moves()
        return (
            f"Measure exactly {self._amount} litres in one jug. You have a tap and "
            f"{len(self._sizes)} empty jugs, listed with the litres they hold. A move fills a jug "
            "at the tap, empties it, or pours it into another jug until the one is empty or the "
            "other is full. Write moves in a box, such as \\boxed{fill A, pour A B, empty B}. "
            f"{self.budget_text()}\n{self.board()}"
        )

    def parse_moves(self, text: str) -> list[str] | None:
        """Return moves such as "fill A" or "pour A B"."""
        names = NAMES[: len(self._sizes)]
        moves = []
        for part in split_moves(text, r"[,;\n]|\bthen\b|\band\b"):
            match = _MOVE.fullmatch(part)
            if match is None or (match[1] == "pour") != (match[3] is not None):
                return None
            jugs = [jug.upper() for jug in match.groups()[1:] if jug is not None]
            if len(set(jugs)) < len(jugs) or not all(jug in names for jug in jugs):
                return None
            moves.append(" ".join([match[1], *jugs]))
        return moves

    def play(self, move: str) -> str:
        """Fill, empty or pour."""
        verb, *jugs = move.split()
        numbers = [NAMES.index(jug) for jug in jugs]
        self._amounts = after_move(self._sizes, self._amounts, (verb, numbers[0], numbers[-1]))
        return ""

    def board(self) -> str:
        """Return the jugs."""
        jugs = zip(NAMES, self._amounts, self._sizes, strict=False)
        return " | ".join(f"{name}: {amount} of {size}" for name, amount, size in jugs)

    def is_solved(self) -> bool:
        """Return whether a jug holds the amount."""
        return self._amount in self._amounts

    def plan(self) -> list[str]:
        """Return the fewest moves."""
        return fewest_moves(self._sizes, self._amounts, self._amount) or ["empty A"]


def all_moves(num_jugs: int) -> list[tuple[str, int, int]]:
    """Return all moves as verb, jug and jug poured into; -1 where the verb names one jug."""
    lone = [(verb, jug, -1) for verb in ("fill", "empty") for jug in range(num_jugs)]
    return lone + [("pour", one, other) for one, other in permutations(range(num_jugs), 2)]


def after_move(
    sizes: tuple[int, ...], amounts: tuple[int, ...], move: tuple[str, int, int]
) -> tuple[int, ...]:
    """Return what the jugs hold after a move of ``all_moves``."""
    verb, jug, other = move
    held = list(amounts)
    if verb == "pour":
        poured = min(held[jug], sizes[other] - held[other])
        held[jug] -= poured
        held[other] += poured
    else:
        held[jug] = sizes[jug] if verb == "fill" else 0
    return tuple(held)


def fewest_moves(sizes: tuple[int, ...], amounts: tuple[int, ...], amount: int) -> list[str] | None:
    """Return the fewest moves after which a jug holds ``amount``; None where there are none."""
    # Pouring and filling keep all amounts multiples of what divides sizes and amounts.
    if amount % gcd(*sizes, *amounts):
        return None
    moves = all_moves(len(sizes))
    came: dict[tuple[int, ...], tuple[tuple[int, ...], int]] = {amounts: (amounts, -1)}
    queue = deque([amounts])
    while queue:
        held = queue.popleft()
        if amount in held:
            return _trace(came, amounts, held, [_words(move) for move in moves])
        for index, move in enumerate(moves):
            after = after_move(sizes, held, move)
            if after not in came:
                came[after] = (held, index)
                queue.append(after)
    return None


def _trace(came: dict, start: tuple[int, ...], end: tuple[int, ...], words: list[str]) -> list[str]:
    plan = []
    while end != start:
        end, index = came[end]
        plan.append(words[index])
    return plan[::-1]


def _words(move: tuple[str, int, int]) -> str:
    verb, jug, other = move
    return f"{verb} {NAMES[jug]}" + (f" {NAMES[other]}" if other >= 0 else "")
