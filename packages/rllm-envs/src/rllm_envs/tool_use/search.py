r"""``rllm/Search-v0``: answer a question by several searches, each of which finds one link."""

from rllm_envs.core import Response
from rllm_envs.tasks import Task
from rllm_envs.tool_use.bm25 import Bm25, words_of
from rllm_envs.tool_use.command_env import CommandEnv
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import check_integer
from rllm_envs.tool_use.knowledge_world import (
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


class SearchEnv(CommandEnv):
    r"""Answer a question that needs several facts, by searching a few hundred short documents.

    ## Description
    The documents are articles about invented people, companies, towns and books, so that no answer
    is known beforehand. The question chains facts: "What is the town where the founder of the
    company that employs Alma Brest was born?" Each fact is in another document.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<search>Alma Brest</search>`` searches; the last
    complete call counts. ``\boxed{...}`` answers and ends the episode; a box counts before a
    search.

    ## Observation Space
    First the question and how to act. A search is answered with the best ``num_results`` documents,
    numbered, or with ``No document has any of these words.`` Ranking is BM25; a document whose
    title is the query comes first.

    ## Starting State
    A world of ``num_documents`` records with random names and facts; a chain of ``hops`` relations
    that passes no record twice.

    ## Rewards
    1 for the name or the year at the end of the chain (case, articles and punctuation do not
    count), 0 otherwise. Searches are free.

    ## Episode End
    Terminates with an answer. Truncates after ``max_turns`` actions without one.

    ## Information
    ``success``, ``invalid`` (neither a search nor an answer), ``turn``, ``turns_left``.

    ## Arguments
    ``hops`` (1 to 6, default 3), ``num_documents`` (20 to 600, default 200), ``num_results`` (1 to
    10, default 3), ``max_turns`` (default 10), ``split`` ("train", "test" or "all").
    Task: ``{"world": {kind: [[name, value, ...], ...]}, "start": [kind, index], "chain":
    ["employer", "founder"]}``; kinds and relations are those of ``knowledge_world.RELATIONS``.
    ``rllm/SearchHard-v0`` has 5 hops in 300 documents and 16 turns.

    ## Version History
    * v0: Initial version
    """

    tag = "search"
    takes_answer = True
    hint = "Write <search>words</search> to search, or give the answer in \\boxed{}."

    def __init__(
        self,
        *,
        hops: int = 3,
        num_documents: int = 200,
        num_results: int = 3,
        max_turns: int = 10,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("hops", hops, 1, 6)
        check_integer("num_documents", num_documents, 20, 600)
        check_integer("num_results", num_results, 1, 10)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.hops = hops
        self.num_documents = num_documents
        self.num_results = num_results
        self._world: World = {}
        self._entities: list[Entity] = []
        self._titles: dict[tuple[str, ...], int] = {}
        self._documents: list[str] = []
        self._index: Bm25 | None = None
        self._chain: list[str] = []
        self._answer = ""
        self._reached: Entity | int = 0
        self._has_read = False

    def generate_task(self) -> Task:
        """Return a random world and a chain of relations in it."""
        draws = Draws(self.np_random)
        world = random_world(draws, self.num_documents)
        start, chain, _ = random_chain(draws, world, self.hops)
        return {"world": world, "start": list(start), "chain": chain}

    def validate_task(self, task: Task) -> Task:
        """Check that the world is complete and that the chain can be followed."""
        check_chain(check_world(task.get("world")), task.get("start"), task.get("chain"))
        return task

    def begin(self, task: Task) -> str:
        """Write the documents and return the question."""
        self._world, start = task["world"], (task["start"][0], task["start"][1])
        self._chain = list(task["chain"])
        self._answer = str(follow(self._world, start, self._chain))
        self._entities = entities(self._world)
        names = [name_of(self._world, entity) for entity in self._entities]
        self._titles = {tuple(words_of(name)): i for i, name in enumerate(names)}
        texts = [article(self._world, entity) for entity in self._entities]
        self._documents = [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
        self._index = None
        self._reached, self._has_read = start, False
        return (
            f"{question_of(self._world, start, task['chain'])}\n"
            f"The facts are in {len(names)} short documents about invented people, companies, "
            "towns and books. Write <search>words</search> to read the best "
            f"{self.num_results} for these words, for example <search>Ann Bell</search>. One "
            "document may not be enough. Give the final answer, a name or a year, in \\boxed{}. "
            f"You have {self.max_turns} turns."
        )

    def run_command(self, command: str) -> Response:
        """Search and show the best documents."""
        if self._index is None:
            self._index = Bm25(self._documents)
        found = self._index.search(command, self.num_results)
        title = self._titles.get(tuple(words_of(command)))
        if title is not None:
            found = [title, *(number for number in found if number != title)][: self.num_results]
        # What the oracle knows is only what it has read.
        self._has_read = self._reached in [self._entities[number] for number in found]
        if not found:
            return Response("No document has any of these words.")
        lines = [f"[{rank}] {self._documents[number]}" for rank, number in enumerate(found, 1)]
        return Response("\n".join(lines))

    def is_correct(self, answer: str) -> bool:
        """Return whether an answer has the words of the right name, or is the right year."""
        return _bare_words(answer) == _bare_words(self._answer)

    def oracle_action(self) -> str:
        """Search for the record reached, then follow the next relation; at the end, answer."""
        while self._has_read and self._chain and not isinstance(self._reached, int):
            self._reached = value_of(self._world, self._reached, self._chain.pop(0))
            self._has_read = False
        if isinstance(self._reached, int):
            return f"\\boxed{{{self._reached}}}"
        name = name_of(self._world, self._reached)
        return self.tagged(name) if self._chain else f"\\boxed{{{name}}}"


def _bare_words(text: str) -> list[str]:
    words = words_of(text)
    return words[1:] if words[:1] == ["the"] else words
