r"""``rllm/WebWiki-v0``: follow links from page to page, to a page or to an answer."""

from collections import deque

from rllm_envs.core import Response
from rllm_envs.errors import TaskError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.bm25 import words_of
from rllm_envs.tool_use.command_env import CommandEnv
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import check_choice, check_integer, is_integer, need
from rllm_envs.tool_use.knowledge_world import (
    KINDS,
    RELATIONS,
    Entity,
    World,
    article,
    check_chain,
    check_world,
    entities,
    follow,
    name_of,
    question_of,
    random_chain,
    random_world,
    value_of,
)

GOALS = ("reach", "answer", "mixed")


class WebWikiEnv(CommandEnv):
    r"""Walk through a generated wiki by its links.

    ## Description
    Each page is the article of an invented person, company, town or book, with links to the records
    that it names. There is no search. Either a named page is to be reached ("reach"), or a question
    is to be answered whose facts are on pages that lead to each other ("answer").

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<command>click Ada Bell</command>`` follows a
    link, ``<command>back</command>`` returns to the page before; the last complete command counts.
    With the goal "answer", ``\boxed{...}`` answers and ends the episode; a box counts before a
    command.

    ## Observation Space
    First the goal, how to act, and the first page. A command is answered with a page: its text and,
    in square brackets, its links.

    ## Starting State
    A world of ``num_pages`` records. "reach": a start from which the target is exactly ``hops``
    clicks away. "answer": a chain of ``hops`` facts from the start. "mixed" draws one of both.

    ## Rewards
    1 for opening the target page, or for the right name or year; 0 otherwise.

    ## Episode End
    Terminates at the target page or with an answer. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no command, or no such link on the page), ``turn``, ``turns_left``.

    ## Arguments
    ``goal`` ("reach", "answer" or "mixed", default "mixed"), ``hops`` (1 to 6, default 3),
    ``num_pages`` (30 to 400, default 80), ``max_turns`` (default 20, more than ``hops``), ``split``
    ("train", "test" or "all").
    Task: ``{"world": {kind: [[name, value, ...], ...]}, "start": [kind, index]}`` with either
    ``"target": [kind, index]`` or ``"chain": ["employer", "founder"]``; see
    ``knowledge_world.RELATIONS``.
    ``rllm/WebWikiHard-v0`` has 5 hops in 200 pages and 40 turns.

    ## Version History
    * v0: Initial version
    """

    hint = (
        "Write <command>click NAME</command> with a link of the page, or <command>back</command>."
    )

    def __init__(
        self,
        *,
        goal: str = "mixed",
        hops: int = 3,
        num_pages: int = 80,
        max_turns: int = 20,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_choice("goal", goal, GOALS)
        check_integer("hops", hops, 1, 6)
        check_integer("num_pages", num_pages, 30, 400)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        check_integer("max_turns", max_turns, hops + 1, 1000)
        self.goal = goal
        self.hops = hops
        self.num_pages = num_pages
        self._world: World = {}
        self._page: Entity = ("town", 0)
        self._before: list[Entity] = []
        self._target: Entity | None = None
        self._start: Entity = ("town", 0)
        self._chain: list[str] = []

    def generate_task(self) -> Task:
        """Return a random world with a start, and a target page or a chain of facts."""
        draws = Draws(self.np_random)
        while True:
            world = random_world(draws, self.num_pages)
            goal = draws.pick(GOALS[:2]) if self.goal == "mixed" else self.goal
            if goal == "answer":
                start, chain, _ = random_chain(draws, world, self.hops)
                return {"world": world, "start": list(start), "chain": chain}
            start = draws.pick(entities(world))
            far = [page for page, path in _paths(world, start).items() if len(path) == self.hops]
            if far:
                return {"world": world, "start": list(start), "target": list(draws.pick(far))}

    def validate_task(self, task: Task) -> Task:
        """Check the world, and that the target can be reached or the chain be followed."""
        world = check_world(task.get("world"))
        need(
            ("chain" in task) != ("target" in task),
            "a task needs either 'target' or 'chain'",
            sorted(map(str, task)),
        )
        if "chain" in task:
            check_chain(world, task.get("start"), task["chain"])
            return task
        pages = []
        for field in ("start", "target"):
            page = task.get(field)
            is_pair = isinstance(page, list) and len(page) == 2 and page[0] in KINDS
            need(
                is_pair and is_integer(page[1], 0, len(world[page[0]]) - 1),  # type: ignore[index]
                f"task[{field!r}] must be [kind, index] of a record",
                page,
            )
            pages.append(tuple(page))  # type: ignore[arg-type]
        path = _paths(world, pages[0]).get(pages[1], [])
        if not path:
            raise TaskError("no links lead from task['start'] to task['target'], or they are equal")
        return task

    def begin(self, task: Task) -> str:
        """Return the goal, the rules and the first page."""
        self._world = task["world"]
        self._page = self._start = (task["start"][0], task["start"][1])
        self._before = []
        self._chain = task.get("chain", [])
        self._target = None if self._chain else (task["target"][0], task["target"][1])
        self.takes_answer = self._target is None
        if self._target is None:
            goal = question_of(self._world, self._start, self._chain)
            ending = "Give the final answer, a name or a year, in \\boxed{}."
        else:
            goal = f"Find the page of the {self._target[0]} {name_of(self._world, self._target)}."
            ending = "The task ends when you open that page."
        return (
            f"{goal}\nYou are in a wiki without a search. Write <command>click NAME</command> to "
            "follow a link of the page, or <command>back</command> to return to the page before. "
            f"{ending} You have {self.max_turns} turns.\n{self._text()}"
        )

    def run_command(self, command: str) -> Response:
        """Follow a link or go back."""
        verb, _, rest = command.strip().partition(" ")
        if verb.lower() == "back" and not rest:
            if not self._before:
                return Response(f"There is no page before this one.\n{self._text()}")
            self._page = self._before.pop()
            return Response(self._text())
        links = {
            tuple(words_of(name_of(self._world, e))): e for e in _links(self._world, self._page)
        }
        page = links.get(tuple(words_of(rest)))
        if verb.lower() != "click" or page is None:
            answer = "There is no such link on this page." if verb.lower() == "click" else self.hint
            return Response(f"{answer}\n{self._text()}", info={"invalid": True})
        self._before.append(self._page)
        self._page = page
        is_solved = page == self._target
        return Response(self._text(), float(is_solved), terminated=is_solved)

    def is_correct(self, answer: str) -> bool:
        """Return whether an answer has the words of the right name, or is the right year."""
        wanted = words_of(str(follow(self._world, self._start, self._chain)))
        given = words_of(answer)
        return wanted in (given, given[1:] if given[:1] == ["the"] else given)

    def oracle_action(self) -> str:
        """Click along the shortest path to the target, or along the chain, and then answer."""
        if self._target is not None:
            path = _paths(self._world, self._page).get(self._target)
            return self.tagged(f"click {name_of(self._world, path[0])}" if path else "back")
        position: Entity | int = self._start
        places = [self._start]
        for relation in self._chain:
            assert not isinstance(position, int)
            position = value_of(self._world, position, relation)
            if not isinstance(position, int):
                places.append(position)
        if self._page == places[-1] or (self._page in places and len(places) == 1):
            return f"\\boxed{{{follow(self._world, self._start, self._chain)}}}"
        if self._page in places:
            following = places[places.index(self._page) + 1]
            return self.tagged(f"click {name_of(self._world, following)}")
        return self.tagged("back")

    def _text(self) -> str:
        links = " ".join(f"[{name_of(self._world, e)}]" for e in _links(self._world, self._page))
        return f"{article(self._world, self._page)}\nLinks: {links}"


def _links(world: World, page: Entity) -> list[Entity]:
    """Return the records that an article names, each once."""
    values = [value_of(world, page, relation.name) for relation in RELATIONS[page[0]]]
    return list(dict.fromkeys(value for value in values if not isinstance(value, int)))


def _paths(world: World, start: Entity) -> dict[Entity, list[Entity]]:
    """Return the shortest list of pages to open for each page that can be reached."""
    paths: dict[Entity, list[Entity]] = {start: []}
    queue = deque([start])
    while queue:
        page = queue.popleft()
        for link in _links(world, page):
            if link not in paths:
                paths[link] = [*paths[page], link]
                queue.append(link)
    return paths
