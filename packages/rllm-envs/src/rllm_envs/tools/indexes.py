"""Indexes of passages: by the words they share with a query, and by embeddings."""

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rllm_envs.errors import (
    DatasetError,
    EnvArgumentError,
    InfrastructureError,
    MissingDependencyError,
    excerpt,
)
from rllm_envs.tools.corpus import Stamp, passages_of_path, stamp_of

Embed = Callable[[list[str]], Any]
"""From texts to an array of shape (texts, dimensions) of numbers; called from any thread."""
BATCH_SIZE = 256
"""Passages embedded by one call."""
MAX_INDEXES = 8
"""Indexes that a process keeps; the one not used for longest is dropped."""


class Index(Protocol):
    """Passages that can be searched. Made once, read by many threads."""

    passages: tuple[str, ...]

    def search(self, query: str, count: int) -> list[int]:
        """Return the numbers of up to ``count`` passages, the best first."""
        ...


class WordIndex:
    """Ranking by BM25 as Lucene has it, by the library bm25s.

    Raises:
        DatasetError: No passage has any word.
        MissingDependencyError: bm25s is not installed.
    """

    def __init__(self, passages: tuple[str, ...]) -> None:
        try:
            import bm25s  # an optional library
        except ImportError as error:
            raise MissingDependencyError(
                "searching a corpus for words needs bm25s: pip install 'rllm-envs[search]'"
            ) from error
        # It reports each index at the level of debugging, whatever that level is set to.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self.passages = passages
        self._library: Any = bm25s
        tokens = bm25s.tokenize(list(passages), return_ids=False, show_progress=False)
        if not any(tokens):
            raise DatasetError("the corpus has no words in any row")
        self._bm25 = bm25s.BM25(method="lucene")
        self._bm25.index(tokens, show_progress=False)

    def search(self, query: str, count: int) -> list[int]:
        """Return the passages that share a word with the query, the best first."""
        tokens = self._library.tokenize([query], return_ids=False, show_progress=False)[0]
        known = [token for token in tokens if token in self._bm25.vocab_dict]
        if not known:
            return []
        scores = self._bm25.get_scores(known)
        # Stable, so that of equal scores the earlier passage comes first.
        order = (-scores).argsort(kind="stable")[:count]
        return [int(number) for number in order if scores[number] > 0]


class VectorIndex:
    """Ranking by the cosine of embeddings: q . p / (|q| |p|), where a vector of zeros has 0.

    Args:
        passages: The texts.
        embed: Returns one vector for each text.

    Raises:
        EnvArgumentError: ``embed`` returns something else.
        InfrastructureError: ``embed`` raises.
    """

    def __init__(self, passages: tuple[str, ...], embed: Embed) -> None:
        self.passages = passages
        self._embed = embed
        parts = [
            embedded(embed, list(passages[start : start + BATCH_SIZE]))
            for start in range(0, len(passages), BATCH_SIZE)
        ]
        if len({part.shape[1] for part in parts}) > 1:
            raise EnvArgumentError("embed must return vectors of one length")
        self._vectors = np.concatenate(parts)

    def search(self, query: str, count: int) -> list[int]:
        """Return the passages whose embeddings are nearest to that of the query."""
        try:
            vector = embedded(self._embed, [query])[0]
        except EnvArgumentError as error:
            # In the middle of an episode it is no argument's fault, and no answer either.
            raise InfrastructureError(str(error)) from error
        if len(vector) != self._vectors.shape[1]:
            raise InfrastructureError(
                f"embed returned {len(vector)} numbers for a query, and {self._vectors.shape[1]} "
                "for each passage"
            )
        order = (-(self._vectors @ vector)).argsort(kind="stable")
        return [int(number) for number in order[:count]]


def embedded(embed: Embed, texts: list[str]) -> np.ndarray:
    """Return the embeddings of texts as vectors of length 1 (or 0), float32.

    Raises:
        EnvArgumentError: ``embed`` returns no array of finite numbers, one row for each text.
        InfrastructureError: ``embed`` raises.
    """
    try:
        given = embed(texts)
    except Exception as error:
        raise InfrastructureError(f"embed failed: {type(error).__name__}: {error}") from error
    vectors: np.ndarray
    try:
        vectors = np.asarray(given, dtype=np.float32)
    except (TypeError, ValueError):
        vectors = np.empty(0)
    is_matrix = vectors.ndim == 2 and len(vectors) == len(texts) and vectors.shape[1] > 0
    if not is_matrix or not np.isfinite(vectors).all():
        raise EnvArgumentError(
            f"embed must return finite numbers of shape ({len(texts)}, dimensions), got "
            f"{type(given).__name__} of shape {vectors.shape}"
        )
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


class _Cache:
    """The indexes of this process: by content, and which content a path had."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indexes: dict[tuple[str, Any], Index] = {}
        self._paths: dict[str, tuple[Stamp, str, tuple[str, ...]]] = {}

    def of_passages(self, passages: Sequence[str], embed: Embed | None) -> Index:
        with self._lock:
            return self._index(_digest(passages), tuple(passages), embed)

    def of_path(self, path: Path, embed: Embed | None) -> Index:
        name = str(path.resolve())
        with self._lock:
            stamp = stamp_of(path)
            known = self._paths.pop(name, None)
            if known is None or known[0] != stamp:
                passages = passages_of_path(path)
                digest = _digest(passages)
                if known is not None and known[1] != digest:
                    self._forget(known[1])
                known = (stamp, digest, passages)
            self._paths[name] = known
            while len(self._paths) > MAX_INDEXES:
                self._paths.pop(next(iter(self._paths)))
            return self._index(known[1], known[2], embed)

    def _index(self, digest: str, passages: tuple[str, ...], embed: Embed | None) -> Index:
        key = (digest, embed)
        try:
            index = self._indexes.pop(key, None)
        except TypeError as error:
            raise EnvArgumentError(f"embed must be hashable, got {excerpt(embed)}") from error
        if index is None:
            index = WordIndex(passages) if embed is None else VectorIndex(passages, embed)
        # At the end, as the last used.
        self._indexes[key] = index
        while len(self._indexes) > MAX_INDEXES:
            self._indexes.pop(next(iter(self._indexes)))
        return index

    def _forget(self, digest: str) -> None:
        """Drop the indexes of a content that no path has any more."""
        if all(content != digest for _, content, _ in self._paths.values()):
            self._indexes = {key: v for key, v in self._indexes.items() if key[0] != digest}


def _digest(passages: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for passage in passages:
        data = passage.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


_cache = _Cache()
index_of_passages = _cache.of_passages
"""Return the index of passages, made once for a content and an embedding."""
index_of_path = _cache.of_path
"""Return the index of a file or folder, made again when a file has changed."""
