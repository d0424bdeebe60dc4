"""``LocalRetrievalTool``: search in a corpus on this machine, by words or by embeddings."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from rllm_envs.errors import EnvArgumentError, excerpt
from rllm_envs.tools.base import Tool
from rllm_envs.tools.corpus import Corpus, passages_of_rows
from rllm_envs.tools.indexes import Embed, index_of_passages, index_of_path

CORPUS_VARIABLE = "RLLM_CORPUS"
"""Environment variable that names the corpus of a tool that is made without one."""
MAX_PASSAGE_LENGTH = 2000
MAX_QUERY_LENGTH = 2000


class LocalRetrievalTool(Tool):
    """Search a collection of passages, and read the best ones.

    Without ``embed`` the ranking is BM25 as Lucene has it (Robertson and Zaragoza 2009, "The
    Probabilistic Relevance Framework"), by the library bm25s; with it, the cosine of embeddings.
    An index is made once in a process for each content, however many tools are made over it. It is
    made again when a file has changed, which is looked at when a tool is made and when an episode
    begins.

    Args:
        corpus: A JSONL file whose rows have ``text`` (or ``contents``) and maybe ``title``, such
            rows, a .txt or .md file, or a folder of such files. Without it, as where only the
            class is given (``tool_map={"local_search": LocalRetrievalTool}``), the file or folder
            that the environment variable RLLM_CORPUS names.
        num_results: Passages of one answer, 1 to 100.
        embed: Returns an array of shape (texts, dimensions) for a list of texts; any vectors, of
            which the directions count. Give one function object to all tools, because an index
            belongs to it.

    Raises:
        EnvArgumentError: There is no corpus, or another argument is not usable.
        DatasetError: A row of the corpus cannot be used; its number is named.
        MissingDependencyError: bm25s is not installed.
        InfrastructureError: ``embed`` fails; from ``call`` too.
    """

    name = "local_search"
    description = "Search a collection of passages; returns the best ones, numbered."

    def __init__(
        self,
        corpus: Corpus | None = None,
        *,
        num_results: int = 3,
        embed: Embed | None = None,
    ) -> None:
        is_number = isinstance(num_results, int) and not isinstance(num_results, bool)
        if not is_number or not 1 <= num_results <= 100:
            raise EnvArgumentError(f"num_results must be in [1, 100], got {num_results!r}")
        if embed is not None and not callable(embed):
            raise EnvArgumentError(f"embed must be a function of texts, got {excerpt(embed)}")
        self._num_results = num_results
        self._embed = embed
        if corpus is None:
            corpus = os.environ.get(CORPUS_VARIABLE)
            if not corpus:
                raise EnvArgumentError(
                    "LocalRetrievalTool has no corpus: set the environment variable "
                    f"{CORPUS_VARIABLE} to a JSONL file or a folder, or give "
                    "LocalRetrievalTool(corpus=...)"
                )
        self._path: Path | None = None
        if isinstance(corpus, str | Path):
            self._path = Path(corpus).expanduser()
            self._index = index_of_path(self._path, embed)
        elif isinstance(corpus, Iterable) and not isinstance(corpus, Mapping):
            self._index = index_of_passages(passages_of_rows(corpus), embed)
        else:
            raise EnvArgumentError(
                f"corpus must be a JSONL file or a list of rows, or a folder, got {excerpt(corpus)}"
            )

    def for_episode(self) -> "LocalRetrievalTool":
        """Return itself, or a tool over what the files hold now if they have changed."""
        if self._path is None or index_of_path(self._path, self._embed) is self._index:
            return self
        return LocalRetrievalTool(self._path, num_results=self._num_results, embed=self._embed)

    def forward(self, query: str) -> str:
        """Return the best passages, numbered, or say that there is none.

        Args:
            query: Words to look for, such as the name of a person.
        """
        found = self._index.search(query[:MAX_QUERY_LENGTH], self._num_results)
        if not found:
            return "No passage has any of these words."
        passages = (self._index.passages[number][:MAX_PASSAGE_LENGTH] for number in found)
        return "\n\n".join(f"[{rank}] {passage}" for rank, passage in enumerate(passages, 1))
