"""``LocalRetrievalTool``: search in a corpus on this machine, by BM25."""

import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rllm_envs.errors import (
    DatasetError,
    EnvArgumentError,
    MissingDependencyError,
    excerpt,
)
from rllm_envs.tools.base import Tool

CORPUS_VARIABLE = "RLLM_CORPUS"
"""Environment variable that names the corpus of a tool that is made without one."""
TEXT_FIELDS = ("text", "contents")
"""Fields of a row that may hold the passage; the first present counts."""
MAX_PASSAGE_LENGTH = 2000
MAX_QUERY_LENGTH = 2000

_indexes: dict[tuple[str, int, int], "_Index"] = {}
_indexing = threading.Lock()


class LocalRetrievalTool(Tool):
    """Search a collection of passages for words, and read the best ones.

    Ranking is BM25 as Lucene has it (Robertson and Zaragoza 2009, "The Probabilistic Relevance
    Framework"), by the library bm25s. The index of a file is made once in a process, however many
    tools are made over it.

    Args:
        corpus: A JSONL file whose rows have ``text`` (or ``contents``) and maybe ``title``, or such
            rows. Without it, as where only the class is given (``tool_map={"local_search":
            LocalRetrievalTool}``), the file that the environment variable RLLM_CORPUS names.
        num_results: Passages of one answer, 1 to 100.

    Raises:
        EnvArgumentError: There is no corpus, or ``num_results`` is out of range.
        DatasetError: A row of the corpus cannot be used; its number is named.
        MissingDependencyError: bm25s is not installed.
    """

    name = "local_search"
    description = "Search a collection of passages; returns the best ones, numbered."

    def __init__(
        self,
        corpus: str | Path | Iterable[Mapping[str, Any]] | None = None,
        *,
        num_results: int = 3,
    ) -> None:
        is_number = isinstance(num_results, int) and not isinstance(num_results, bool)
        if not is_number or not 1 <= num_results <= 100:
            raise EnvArgumentError(f"num_results must be in [1, 100], got {num_results!r}")
        self._num_results = num_results
        if corpus is None:
            corpus = os.environ.get(CORPUS_VARIABLE)
            if not corpus:
                raise EnvArgumentError(
                    "LocalRetrievalTool has no corpus: set the environment variable "
                    f"{CORPUS_VARIABLE} to a JSONL file, or give LocalRetrievalTool(corpus=...)"
                )
        if isinstance(corpus, str | Path):
            self._index = _index_of_file(Path(corpus).expanduser())
        elif isinstance(corpus, Iterable) and not isinstance(corpus, Mapping):
            self._index = _make_index(list(corpus), "the corpus")
        else:
            raise EnvArgumentError(
                f"corpus must be a JSONL file or a list of rows, got {excerpt(corpus)}"
            )

    def forward(self, query: str) -> str:
        """Return the best passages, numbered, or say that there is none.

        Args:
            query: Words to look for, such as the name of a person.
        """
        found = self._index.search(query[:MAX_QUERY_LENGTH], self._num_results)
        if not found:
            return "No passage has any of these words."
        return "\n\n".join(f"[{rank}] {passage}" for rank, passage in enumerate(found, start=1))


@dataclass(frozen=True)
class _Index:
    """Passages and their BM25 index. Made once, read by many threads."""

    passages: tuple[str, ...]
    bm25: Any
    library: Any

    def search(self, query: str, count: int) -> list[str]:
        """Return up to `count` passages that share a word with the query, the best first."""
        tokens = self.library.tokenize([query], return_ids=False, show_progress=False)[0]
        known = [token for token in tokens if token in self.bm25.vocab_dict]
        if not known:
            return []
        scores = self.bm25.get_scores(known)
        # Stable, so that of equal scores the earlier passage comes first.
        order = (-scores).argsort(kind="stable")[:count]
        return [self.passages[i] for i in order if scores[i] > 0]


def _index_of_file(path: Path) -> _Index:
    """Return the index of a file, which is made again only when the file changes."""
    try:
        status = path.stat()
    except OSError as error:
        raise EnvArgumentError(f"the corpus {str(path)!r} cannot be read: {error}") from error
    key = (str(path.resolve()), status.st_size, status.st_mtime_ns)
    with _indexing:
        if key not in _indexes:
            _indexes[key] = _make_index(_rows_of(path), str(path))
        return _indexes[key]


def _rows_of(path: Path) -> list[Any]:
    rows = []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for line in filter(str.strip, lines):
                rows.append(_parsed(line, f"{path}, row {len(rows) + 1}"))
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"the corpus {str(path)!r} cannot be read: {error}") from error
    return rows


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{place}: not JSON ({error}): {excerpt(line)}") from None


def _make_index(rows: list[Any], place: str) -> _Index:
    try:
        import bm25s  # an optional library
    except ImportError as error:
        raise MissingDependencyError(
            "searching a corpus needs bm25s: pip install 'rllm-envs[search]'"
        ) from error
    # It reports each index at the level of debugging, whatever that level is set to.
    logging.getLogger("bm25s").setLevel(logging.WARNING)
    passages = tuple(_passage(row, f"{place}, row {n}") for n, row in enumerate(rows, start=1))
    if not passages:
        raise DatasetError(f"{place} has no rows; a corpus needs at least one passage")
    tokens = bm25s.tokenize(list(passages), return_ids=False, show_progress=False)
    if not any(tokens):
        raise DatasetError(f"{place} has no words in any row")
    index = bm25s.BM25(method="lucene")
    index.index(tokens, show_progress=False)
    shown = tuple(passage[:MAX_PASSAGE_LENGTH] for passage in passages)
    return _Index(shown, index, bm25s)


def _passage(row: Any, place: str) -> str:
    """Return what is searched and shown of a row: its title, where it has one, and its text."""
    if not isinstance(row, Mapping):
        raise DatasetError(f"{place}: a row must be an object, got {excerpt(row)}")
    text = next((row[name] for name in TEXT_FIELDS if row.get(name) is not None), None)
    if not isinstance(text, str) or not text.strip():
        raise DatasetError(
            f"{place}: needs {' or '.join(TEXT_FIELDS)} with words, got {excerpt(row)}"
        )
    title = row.get("title")
    if title is not None and not isinstance(title, str):
        raise DatasetError(f"{place}: the title must be text, got {excerpt(title)}")
    passage = f"{title}: {text}" if title else text
    try:
        passage.encode()
    except UnicodeEncodeError:
        raise DatasetError(f"{place}: holds half of a character pair: {excerpt(row)}") from None
    return passage
