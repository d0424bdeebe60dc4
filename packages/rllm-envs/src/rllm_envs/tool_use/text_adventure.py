"""``rllm/TextAdventure-v0``: explore rooms, find keys, and bring a treasure where it is wanted."""

from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import TaskError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.adventure_world import (
    COLOURS,
    OPPOSITES,
    STEPS,
    Adventure,
    plan_length,
    random_adventure,
)
from rllm_envs.tool_use.command_env import CommandEnv
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import (
    check_integer,
    integer_field,
    is_integer,
    is_name,
    list_field,
    need,
    object_field,
    text_field,
)


class TextAdventureEnv(CommandEnv):
    r"""Explore a house of unknown plan, open locked doors, and deliver a treasure.

    ## Description
    Rooms lie on a grid and are joined by passages and locked doors. A coloured key opens the door
    of its colour; keys and the treasure lie about or in chests. The quest is to find the treasure
    and to drop it in a named room. The agent sees only the room it is in.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<command>go north</command>`` acts; the last
    complete command counts. Verbs: go, take, drop, open chest, unlock ... with, look, inventory.
    Case, articles and spaces do not matter.

    ## Observation Space
    First the quest, the verbs and the first room. A command is answered with what happens; a room
    is described by its exits (with their locks) and by what lies in it.

    ## Starting State
    ``num_rooms`` rooms, ``num_locks`` locked doors, each key before its door, the treasure behind
    the last door, some things of no use. A plan of at most ``max_turns`` commands exists.

    ## Rewards
    1 when the treasure lies in the room where it is wanted, 0 otherwise.

    ## Episode End
    Terminates when the treasure is delivered. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no command, or one with an unknown verb), ``turn``, ``turns_left``.

    ## Arguments
    ``num_rooms`` (4 to 24, default 9), ``num_locks`` (0 to 6, fewer than rooms - 2; default 2),
    ``max_turns`` (from ``num_rooms`` * (``num_locks`` + 2) to 1000, default 60), ``split``
    ("train", "test" or "all").
    Task: ``{"rooms": [name, ...], "exits": [[room, "north", room, "red" or ""], ...], "items":
    {"red key": [room, is_in_chest], ...}, "start": room, "treasure": item, "target": room}``; rooms
    are indices of ``rooms``.
    ``rllm/TextAdventureHard-v0`` has 20 rooms, 5 locks and 150 turns.

    ## Version History
    * v0: Initial version
    """

    hint = "Write one command, such as <command>go north</command>."

    def __init__(
        self,
        *,
        num_rooms: int = 9,
        num_locks: int = 2,
        max_turns: int = 60,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_rooms", num_rooms, 4, 24)
        check_integer("num_locks", num_locks, 0, min(6, num_rooms - 3))
        # Fewer would leave hardly any adventure that can be solved in time.
        check_integer("max_turns", max_turns, num_rooms * (num_locks + 2), 1000)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_rooms = num_rooms
        self.num_locks = num_locks
        self._world = Adventure(
            {"rooms": [""], "exits": [], "items": {"": [0, False]}, "start": 0, "treasure": "",
             "target": 0}
        )  # fmt: skip

    def generate_task(self) -> Task:
        """Return a random adventure that can be solved within the turns."""
        draws = Draws(self.np_random)
        while True:
            task = random_adventure(draws, self.num_rooms, self.num_locks)
            if plan_length(task, self.max_turns) <= self.max_turns:
                return task

    def validate_task(self, task: Task) -> Task:
        """Check rooms, exits and items, and that the quest can be solved within the turns."""
        rooms = list_field(task, "rooms", 2, 100)
        is_named = all(is_name(name, 40) for name in rooms) and len(set(rooms)) == len(rooms)
        need(is_named, "task['rooms'] must hold different names", rooms)
        high = len(rooms) - 1
        used: set[tuple[int, str]] = set()
        for exit_ in list_field(task, "exits", 1, 400):
            _check_exit(exit_, high, used)
        items = object_field(task, "items", 1, 100)
        for name, place in items.items():
            is_place = isinstance(place, list) and len(place) == 2 and isinstance(place[1], bool)
            need(
                is_name(name, 40) and name == name.lower() and is_place,
                "an item must be a lower-case name and [room, is_in_chest]",
                [name, place],
            )
            need(is_integer(place[0], 0, high), f"the room of {name!r} must exist", place[0])
        integer_field(task, "start", 0, high)
        target = integer_field(task, "target", 0, high)
        treasure = text_field(task, "treasure")
        need(treasure in items, "task['treasure'] must be an item", treasure)
        need(items[treasure][0] != target, "the treasure must not lie in the target room", target)
        if plan_length(task, self.max_turns) > self.max_turns:
            raise TaskError(
                f"the quest is not solved within {self.max_turns} turns: a key is out of reach, or "
                "max_turns is too low"
            )
        return task

    def begin(self, task: Task) -> str:
        """Return the quest, the verbs and the first room."""
        self._world = Adventure(task)
        target = self._world.names[self._world.target]
        return (
            f"Your quest: find the {self._world.treasure} and drop it in the {target}.\n"
            "Write one command per turn, such as <command>go north</command>. Commands: go north "
            "(east, south, west), take THING, drop THING, open chest, unlock north with red key, "
            "look, inventory. A key opens the doors of its colour; you may carry many things. You "
            f"have {self.max_turns} turns.\n{self._world.describe()}"
        )

    def run_command(self, command: str) -> Response:
        """Act and look whether the treasure is delivered."""
        result = self._world.do(command)
        if result is None:
            return Response(f"That is no command. {self.hint}", info={"invalid": True})
        is_solved = self._world.is_solved
        return Response(result, float(is_solved), terminated=is_solved)

    def oracle_action(self) -> str:
        """Return the next command of a plan that knows where everything is."""
        return self.tagged(self._world.next_command() or "look")


def _check_exit(exit_: Any, high: int, used: set[tuple[int, str]]) -> None:
    is_exit = (
        isinstance(exit_, list)
        and len(exit_) == 4
        and exit_[1] in tuple(STEPS)
        and is_integer(exit_[0], 0, high)
        and is_integer(exit_[2], 0, high)
        and exit_[3] in ("", *COLOURS)
    )
    need(is_exit, "an exit must be [room, direction, room, colour or '']", exit_)
    for side in ((exit_[0], exit_[1]), (exit_[2], OPPOSITES[exit_[1]])):
        need(side not in used, "a room has one exit in each direction", exit_)
        used.add(side)
