"""``rllm/SpatialReasoning-v0``: follow a walk on a grid."""

from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_items
from rllm_envs.reasoning.draws import draw_flag, draw_integer, draw_item
from rllm_envs.reasoning.fields import choice_field, integer_argument, list_field
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

DIRECTIONS = ("north", "east", "south", "west")
"""Clockwise."""
TURNS = {"right": 1, "around": 2, "left": 3}
"""Quarter turns clockwise."""
MAX_STEPS = 50
MAX_DISTANCE = 1000

_OFFSETS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}


class SpatialReasoningEnv(SolvedEnv):
    r"""Say where a walk ends and which way the walker faces.

    ## Description
    The walker turns, goes forward or backward, and takes steps to a compass direction without
    turning. The agent gives the place relative to the start, and the direction faced.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer:
    steps to the east, steps to the north (negative for west and south) and the direction, such as
    ``3, -2, west``.

    ## Observation Space
    The walk and the question. The last observation is empty.

    ## Starting State
    A uniform direction; turns and moves alternate at random, with distances uniform from 1 to
    ``max_distance``.

    ## Rewards
    1 if both numbers and the direction are right, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``num_steps`` (2 to 50, default 6), ``max_distance`` (1 to 100, default 9), ``split`` ("train",
    "test" or "all"). ``rllm/SpatialReasoningHard-v0`` has twenty steps.
    Task: ``{"facing": "north", "steps": [["turn", "left"], ["forward", 3], ["backward", 1],
    ["east", 2]]}``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_steps: int = 6,
        max_distance: int = 9,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.num_steps = integer_argument("num_steps", num_steps, 2, MAX_STEPS)
        self.max_distance = integer_argument("max_distance", max_distance, 1, 100)

    def draw(self) -> Task:
        """Return a random walk."""
        rng = self.np_random
        steps: list[list[Any]] = []
        while len(steps) < self.num_steps:
            after_turn = bool(steps) and steps[-1][0] == "turn"
            if not after_turn and draw_flag(rng):
                steps.append(["turn", draw_item(rng, tuple(TURNS))])
            else:
                # Mostly relative moves, for which the turns matter.
                move = draw_item(
                    rng, ("forward", "forward", "forward", "backward", *DIRECTIONS[:2])
                )
                if move in DIRECTIONS:
                    move = draw_item(rng, DIRECTIONS)
                steps.append([move, draw_integer(rng, 1, self.max_distance)])
        return {"facing": draw_item(rng, DIRECTIONS), "steps": steps}

    def check(self, task: Task) -> None:
        """Check the direction and the steps."""
        choice_field(task, "facing", DIRECTIONS)
        for step in list_field(task, "steps", 1, MAX_STEPS):
            if not _is_step(step):
                raise TaskError(
                    "'steps' must hold ['turn', 'left' | 'right' | 'around'] or [move, distance] "
                    f"with a move of forward, backward, {', '.join(DIRECTIONS)} and a distance "
                    f"from 1 to {MAX_DISTANCE}, got {excerpt(step)}"
                )

    def question(self, task: Task) -> str:
        """Return the walk and the question."""
        walk = " ".join(_sentence(step) for step in task["steps"])
        return (
            f"You face {task['facing']}. {walk} Steps to a compass direction do not change the way "
            "you face. How far are you from the start, and which way do you face? Answer as "
            "\\boxed{steps east, steps north, direction}, negative numbers for west and south, "
            "such as 3, -2, west."
        )

    def solve(self, task: Task) -> str:
        """Return the place and the direction at the end."""
        facing = DIRECTIONS.index(task["facing"])
        east = north = 0
        for move, amount in task["steps"]:
            if move == "turn":
                facing = (facing + TURNS[amount]) % 4
                continue
            x, y = _OFFSETS[move if move in DIRECTIONS else DIRECTIONS[facing]]
            distance = -amount if move == "backward" else amount
            east, north = east + distance * x, north + distance * y
        return f"{east}, {north}, {DIRECTIONS[facing]}"

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer has both numbers and the direction right."""
        items = [item.replace(" ", "").removeprefix("+").lower() for item in read_items(answer)]
        return items == task["answer"].split(", ")


def _is_step(step: Any) -> bool:
    if not isinstance(step, list) or len(step) != 2:
        return False
    move, amount = step
    if move == "turn":
        return amount in [*TURNS]
    is_move = move in ["forward", "backward", *DIRECTIONS]
    return is_move and type(amount) is int and 1 <= amount <= MAX_DISTANCE


def _sentence(step: list[Any]) -> str:
    move, amount = step
    if move == "turn":
        return f"Turn {amount}."
    unit = "step" if amount == 1 else "steps"
    where = f"to the {move}" if move in DIRECTIONS else move
    return f"Take {amount} {unit} {where}."
