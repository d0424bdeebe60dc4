"""``rllm/SearchQA-v0``: questions whose answer has to be searched in a corpus."""

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import DatasetError, EnvArgumentError, TaskError, excerpt
from rllm_envs.language.short_answers import (
    check_metric,
    check_whole,
    checked_task,
    judge,
    tasks_of,
)
from rllm_envs.language.worlds import MAX_HOPS, passages_of, random_question, random_world
from rllm_envs.parsing import boxed_answer, strip_thoughts
from rllm_envs.registry import load_rows
from rllm_envs.tasks import Dataset, Task
from rllm_envs.tool_use.bm25 import Bm25
from rllm_envs.tools import LocalRetrievalTool

HINT = "Write <search>words</search> to search, or give the answer in \\boxed{}."
NOTHING = "No passage has any of these words."
TEXT_SUFFIXES = (".txt", ".md")
NUM_PEOPLE = 40
"""People of a made-up world: with companies and towns it has 73 passages."""
MAX_SHOWN = 2000
MAX_QUERY = 2000
MAX_STATIONS = 16

_SEARCH = re.compile(r"<search>([^<]*)</search>", re.IGNORECASE)
_NO_INFO = {"outcome": "", "f1": 0.0, "tool_call": False}


class SearchQAEnv(TextEnv):
    r"""Answer a question in a few words, after searching a corpus for it.

    ## Description
    Without ``dataset=`` the corpus is made up: short passages about invented people, companies and
    towns; the question chains some of their facts. With it the questions are the rows of a file, of
    a registered data set or of a public one, such as HotpotQA or Bamboogle, and the corpus is
    ``corpus=``, or the passages that each row brings.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<search>words</search>`` searches; the last
    complete one counts. ``\boxed{...}`` answers and ends the episode; a box counts before a search.

    ## Observation Space
    First the question and how to act. A search is answered with the best ``num_results`` passages,
    numbered, or with ``No passage has any of these words.`` Ranking is BM25. Anything else is
    answered with a hint. The last observation is empty, unless the turns run out.

    ## Starting State
    A world of 40 people, 20 towns and 13 companies; a chain of ``hops`` facts that passes no record
    twice. Or a row of the data set. All uniform.

    ## Rewards
    With ``metric="exact"`` 1 where the answer equals a reference but for case, punctuation and
    articles, 0 otherwise. With ``metric="f1"`` the F1 over words, the best over the references.
    Searches are free.

    ## Episode End
    Terminates with an answer. Truncates after ``max_turns`` actions without one (terminates instead
    if ``max_turns`` is 1).

    ## Information
    ``success`` (an exact match), ``invalid`` (neither a search nor a box), ``outcome`` ("", then
    "correct", "partial" from an F1 of 0.3 on, or "wrong"), ``f1``, ``tool_call`` (bool), ``turn``,
    ``turns_left``.

    ## Arguments
    ``dataset`` (a JSONL or JSON file, a registered name, or one of ``rllm_envs.datasets``; default
    None), ``corpus`` (a JSONL file of rows with ``text`` or ``contents`` and maybe ``title``, or a
    folder of such, .txt and .md files; needs ``pip install "rllm-envs[search]"``), ``num_results``
    (1 to 20, default 3), ``metric`` ("exact" or "f1"), ``hops`` (1 to 4, of made-up questions;
    default 2), ``max_turns`` (default 8), ``split`` ("train", "test" or "all": of the made-up
    worlds, or the split of a data set; a file is used whole).
    Task: ``{"question": ..., "answer": ..., "passages": [{"title": ..., "text": ...}]}``, where the
    answer is text or a list of equally right ones; ``passages`` may be left out with ``corpus``;
    ``stations`` are titles that lead to the answer, for the oracle.

    ## References
    Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework: BM25 and Beyond".

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        dataset: str | Path | None = None,
        corpus: str | Path | None = None,
        num_results: int = 3,
        metric: str = "exact",
        hops: int | None = None,
        max_turns: int = 8,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        check_metric(metric)
        check_whole("num_results", num_results, 1, 20)
        if dataset is not None and hops is not None:
            raise EnvArgumentError("give dataset or hops, not both: hops is for made-up questions")
        if dataset is None and corpus is not None:
            raise EnvArgumentError("corpus is for dataset: made-up questions have their own")
        self.metric = metric
        self.num_results = num_results
        self.hops = 2 if hops is None else hops
        check_whole("hops", self.hops, 1, MAX_HOPS)
        self._tool = None if corpus is None else tool_over(Path(corpus).expanduser(), num_results)
        self._tasks: tuple[Task, ...] = ()
        if dataset is not None:
            self._tasks = tasks_of(load_rows(dataset, split))
            _require_passages(self._tasks, self._tool)
            self.is_generated = False
        self._current: Task = {}
        self._search: Callable[[str], str] = lambda _: NOTHING
        self._plan: list[str] = []

    def generate_task(self) -> Task:
        """Return a made-up corpus with a question, or a row of the data set."""
        if self._tasks:
            return self._tasks[int(self.np_random.integers(len(self._tasks)))]
        world = random_world(self.np_random, NUM_PEOPLE)
        asked = random_question(self.np_random, world, self.hops)
        return {
            "question": asked.question,
            "answer": [asked.answer],
            "passages": passages_of(world),
            "stations": list(asked.stations),
        }

    def validate_task(self, task: Task) -> Task:
        """Check question, answer, passages and stations.

        Raises:
            TaskError: One of them is missing or wrong.
        """
        checked = checked_task(task)
        if "passages" not in checked and self._tool is None:
            raise TaskError("needs 'passages', or an environment with corpus=")
        if task.get("stations") is not None:
            stations = task["stations"]
            is_texts = isinstance(stations, list) and all(isinstance(s, str) for s in stations)
            if not is_texts or len(stations) > MAX_STATIONS:
                raise TaskError(
                    f"'stations' must be at most {MAX_STATIONS} texts, got {excerpt(stations)}"
                )
            checked["stations"] = stations
        return checked

    def begin(self, task: Task) -> str:
        """Return the question and how to act."""
        self._current = task
        if "passages" in task:
            self._search = _search_over(task["passages"], self.num_results)
        elif self._tool is not None:
            self._search = self._tool.forward
        self._plan = list(task.get("stations", [task["question"]]))
        return (
            f"{task['question']}\n"
            f"The facts are in a collection of passages. Write <search>words</search> to read the "
            f"{self.num_results} best for these words; one search may not be enough. Give the "
            "answer, as few words as possible, in \\boxed{}. "
            f"You have {self.max_turns} turns."
        )

    def respond(self, action: str) -> Response:
        """Grade a boxed answer, or search, or give a hint."""
        if boxed_answer(action) is not None:
            reward, info = judge(self._current, action, self.metric)
            return Response("", reward, terminated=True, info=_NO_INFO | info)
        queries = _SEARCH.findall(strip_thoughts(action))
        query = queries[-1].strip()[:MAX_QUERY] if queries else ""
        if not query:
            return Response(HINT, info=_NO_INFO | {"invalid": True})
        return Response(self._search(query), info=_NO_INFO | {"tool_call": True})

    def oracle_action(self) -> str:
        """Return a search for each record on the way while turns are left, then the answer."""
        if self._turn < len(self._plan) and self.max_turns - self._turn > 1:
            words = self._plan[self._turn].replace("<", " ")
            return f"<search>{words}</search>"
        return f"\\boxed{{{self._current['answer'][0]}}}"


def tool_over(corpus: Path, num_results: int) -> LocalRetrievalTool:
    """Return the search tool over a file or a folder; its index is made once in a process.

    Raises:
        EnvArgumentError: Nothing that can be searched is there.
        DatasetError: A row cannot be used.
        MissingDependencyError: bm25s is not installed.
    """
    if not corpus.is_dir():
        return LocalRetrievalTool(corpus, num_results=num_results)
    files = sorted(
        path
        for path in corpus.rglob("*")
        if path.is_file() and path.name.endswith((*TEXT_SUFFIXES, ".jsonl"))
    )
    if not files:
        raise EnvArgumentError(f"the corpus {str(corpus)!r} has no .jsonl, .txt or .md file")
    versions = tuple((path, path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    return _tool_over_files(versions, num_results)


@lru_cache(maxsize=4)
def _tool_over_files(
    versions: tuple[tuple[Path, int, int], ...], num_results: int
) -> LocalRetrievalTool:
    rows: list[Any] = []
    for path, _, _ in versions:
        if path.suffix == ".jsonl":
            rows.extend(Dataset.from_file(path))
            continue
        try:
            text = path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(f"the corpus file {str(path)!r} cannot be read: {error}") from None
        if text.strip():
            rows.append({"title": path.stem, "text": text})
    return LocalRetrievalTool(rows, num_results=num_results)


def _require_passages(tasks: tuple[Task, ...], tool: LocalRetrievalTool | None) -> None:
    bare = next((task for task in tasks if "passages" not in task), None)
    if tool is None and bare is not None:
        raise EnvArgumentError(
            f"{bare['source']} brings no passages to search; give corpus=, a JSONL file or a folder"
        )


def _search_over(passages: list[dict[str, str]], num_results: int) -> Callable[[str], str]:
    texts = [f"{passage['title']}: {passage['text']}" for passage in passages]
    index = Bm25(texts)

    def search(query: str) -> str:
        found = index.search(query, num_results)
        lines = [f"[{rank}] {texts[number][:MAX_SHOWN]}" for rank, number in enumerate(found, 1)]
        return "\n".join(lines) or NOTHING

    return search
