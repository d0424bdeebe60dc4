"""``rllm/Household-v0``: find things in a house, treat them, and put them where they belong."""

from rllm_envs.core import Response
from rllm_envs.tasks import Task
from rllm_envs.tool_use.command_env import CommandEnv
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import (
    check_integer,
    integer_field,
    list_field,
    need,
    object_field,
    text_field,
)
from rllm_envs.tool_use.household_world import (
    PLACE_KINDS,
    ROOMS,
    THING_KINDS,
    TOOLS,
    House,
    kind_of,
    random_house,
)


class HouseholdEnv(CommandEnv):
    r"""Do a household task in a small text world: find, carry, clean, heat, cool.

    ## Description
    A house has four rooms with about 25 places, some behind doors. The agent sees only the place
    it stands at, carries one thing at a time, and is asked to bring one or two things of a kind,
    maybe clean, hot or cold, to a place: "Put a clean mug on shelf 2."

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<command>go to fridge 1</command>`` acts; the last
    complete command counts. Verbs: go to, open, close, take ... from, put ... in (or on), clean
    ... with (a sink), heat ... with (a microwave), cool ... with (a fridge), look, inventory.
    Case, articles and spaces do not matter.

    ## Observation Space
    First the rooms with their places, the task, and the verbs. A command is answered with one or
    two sentences: what happens, and what is seen.

    ## Starting State
    ``num_things`` things of twenty kinds at random places, doors closed, hands empty, the agent in
    the hall. The goal does not hold yet.

    ## Rewards
    1 when the goal holds, 0 otherwise.

    ## Episode End
    Terminates when the goal holds. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no command, or one with an unknown verb), ``turn``, ``turns_left``.

    ## Arguments
    ``num_things`` (5 to 60, default 20), ``num_wanted`` (1 or 2 things, default 1), ``max_turns``
    (16 to 1000, default 50), ``split`` ("train", "test" or "all").
    Task: ``{"places": ["fridge 1", ...], "things": {"mug 1": "shelf 2", ...}, "wanted": "mug",
    "state": "clean" or "", "target": "shelf 1", "count": 1}``.
    ``rllm/HouseholdHard-v0`` wants two things among 40 and has 80 turns.

    ## Version History
    * v0: Initial version
    """

    hint = "Write one command, such as <command>go to fridge 1</command>."

    def __init__(
        self,
        *,
        num_things: int = 20,
        num_wanted: int = 1,
        max_turns: int = 50,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_things", num_things, 5, 60)
        check_integer("num_wanted", num_wanted, 1, 2)
        # Two things take up to 15 turns even for one who knows where they are.
        check_integer("max_turns", max_turns, 16, 1000)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_things = num_things
        self.num_wanted = num_wanted
        self._house = House([], {})
        self._wanted = self._state = self._target = ""
        self._count = 1

    def generate_task(self) -> Task:
        """Return a random house and a goal that does not hold yet."""
        draws = Draws(self.np_random)
        while True:
            places, things = random_house(draws, self.num_things)
            kinds = [kind_of(thing) for thing in things]
            wanted = draws.pick(kinds)
            target = draws.pick(places)
            state = draws.pick(("", *THING_KINDS[wanted]))
            at_target = [t for t, p in things.items() if p == target and kind_of(t) == wanted]
            if kinds.count(wanted) >= self.num_wanted and (state or not at_target):
                return {
                    "places": places,
                    "things": things,
                    "wanted": wanted,
                    "state": state,
                    "target": target,
                    "count": self.num_wanted,
                }

    def validate_task(self, task: Task) -> Task:
        """Check places, things, and that the goal can be reached but does not hold yet."""
        places = list_field(task, "places", 1, 60)
        for place in places:
            is_known = isinstance(place, str) and kind_of(place) in PLACE_KINDS
            need(is_known, f"a place must be one of {', '.join(PLACE_KINDS)} and a number", place)
        need(len(set(places)) == len(places), "task['places'] must be different", places)
        things = object_field(task, "things", 1, 100)
        for thing, place in things.items():
            is_known, kinds = kind_of(thing) in THING_KINDS, ", ".join(THING_KINDS)
            need(is_known, f"a thing must be of {kinds} and a number", thing)
            need(place in places, f"{thing!r} must be at a place of the task", place)
        wanted, target = text_field(task, "wanted"), text_field(task, "target")
        count, state = integer_field(task, "count", 1, 2), task.get("state")
        fitting = [thing for thing in things if kind_of(thing) == wanted]
        need(len(fitting) >= count, f"task['things'] must hold {count} of {wanted!r}", fitting)
        need(target in places, "task['target'] must be a place of the task", target)
        need(
            state in ("", *THING_KINDS[wanted]),
            f"task['state'] must be '' or a state of {wanted}: {', '.join(THING_KINDS[wanted])}",
            state,
        )
        has_tool = not state or f"{TOOLS[str(state)]} 1" in places
        need(has_tool, "task['places'] must hold what gives the state (sink 1, ...)", places)
        there = [thing for thing in fitting if things[thing] == target]
        need(state or len(there) < count, "the goal must not hold at the start", there)
        return task

    def begin(self, task: Task) -> str:
        """Return rooms, goal and verbs."""
        self._house = House(list(task["places"]), dict(task["things"]))
        self._wanted, self._state = task["wanted"], task["state"]
        self._target, self._count = task["target"], task["count"]
        lines = ["You are in the hall of a house. Its rooms and what is in them:"]
        for room in ROOMS:
            names = [p for p in self._house.places if PLACE_KINDS[kind_of(p)].room == room]
            if names:
                lines.append(f"{room}: {', '.join(names)}")
        what = f"a {self._state} {self._wanted}".replace("  ", " ")
        if self._count == 2:
            state = f", both {self._state}," if self._state else ""
            what = f"two things of the kind {self._wanted}{state}"
        preposition = PLACE_KINDS[kind_of(self._target)].preposition
        return "\n".join(
            (
                *lines,
                f"Your task: put {what} {preposition} the {self._target}.",
                "Write one command per turn, such as <command>go to fridge 1</command>. Commands: "
                "go to PLACE, open PLACE, close PLACE, take THING from PLACE, put THING in PLACE, "
                "clean THING with sink 1, heat THING with microwave 1, cool THING with fridge 1, "
                "look, inventory. Things have numbers too, as in book 3. You must stand at a place "
                "to use it, and you carry one thing at a time; clean, heat or cool what is in your "
                f"hands. You have {self.max_turns} turns.",
            )
        )

    def run_command(self, command: str) -> Response:
        """Act in the house and look whether the goal holds."""
        result = self._house.do(command)
        if result is None:
            return Response(f"That is no command. {self.hint}", info={"invalid": True})
        is_solved = len(self._done()) >= self._count
        return Response(result, float(is_solved), terminated=is_solved)

    def oracle_action(self) -> str:
        """Fetch the next thing of the kind, treat it, and bring it to the target."""
        return self.tagged(self._next_command())

    def _done(self) -> list[str]:
        house = self._house
        return [
            thing
            for thing, place in house.where.items()
            if kind_of(thing) == self._wanted
            and place == self._target
            and (not self._state or self._state in house.states.get(thing, ()))
        ]

    def _next_command(self) -> str:
        house, held = self._house, self._house.held()
        if held and kind_of(held) != self._wanted:
            # Something is in the way: leave it wherever that is possible.
            place = house.position or house.places[0]
            return self._at(place, f"put {held} in {place}")
        if held:
            if self._state and self._state not in house.states.get(held, ()):
                verb = {"clean": "clean", "hot": "heat", "cold": "cool"}[self._state]
                tool = f"{TOOLS[self._state]} 1"
                if house.position != tool:
                    return f"go to {tool}"
                return f"{verb} {held} with {tool}"
            return self._at(self._target, f"put {held} in {self._target}")
        done = self._done()
        rest = [t for t in house.where if kind_of(t) == self._wanted and t not in done]
        place = house.where[rest[0]]
        return self._at(place, f"take {rest[0]} from {place}")

    def _at(self, place: str, command: str) -> str:
        """Return a command that needs an open place, or what must come before it."""
        if self._house.position != place:
            return f"go to {place}"
        return f"open {place}" if self._house.is_closed(place) else command
