"""``Bm25``: ranked search in a few hundred short documents, without any library."""

import math
import re
from collections import Counter
from collections.abc import Sequence

_WORD = re.compile(r"[^\W_]+")
K1 = 1.5
B = 0.75


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _WORD.findall(text.lower())


class Bm25:
    """Documents ranked by BM25 with k1 = 1.5 and b = 0.75.

    The formula is that of Robertson and Zaragoza (2009), "The Probabilistic Relevance Framework".
    A document d scores, summed over the different words w of a query, idf(w) * f * (k1 + 1) /
    (f + k1 * (1 - b + b * |d| / mean |d|)), where f is how often w is in d, |d| the number of words
    of d, and idf(w) = ln(1 + (n - m + 0.5) / (m + 0.5)) for m of n documents with w.

    Args:
        documents: The texts to search; at least one.
    """

    def __init__(self, documents: Sequence[str]) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = {}
        lengths = []
        for number, document in enumerate(documents):
            counts = Counter(words_of(document))
            lengths.append(sum(counts.values()))
            for word, count in counts.items():
                self._postings.setdefault(word, []).append((number, count))
        mean = max(sum(lengths) / len(lengths), 1.0)
        self._norms = [K1 * (1 - B + B * length / mean) for length in lengths]

    def scores(self, query: str) -> dict[int, float]:
        """Return the score of each document that shares a word with a query, by its number."""
        total = len(self._norms)
        scores: dict[int, float] = {}
        # In the order of the query, so that sums of floats are the same in every process.
        for word in dict.fromkeys(words_of(query)):
            postings = self._postings.get(word, [])
            idf = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                part = idf * count * (K1 + 1) / (count + self._norms[number])
                scores[number] = scores.get(number, 0.0) + part
        return scores

    def search(self, query: str, limit: int) -> list[int]:
        """Return the numbers of the best ``limit`` documents; of equals the earlier is first."""
        scores = self.scores(query)
        return sorted(scores, key=lambda number: (-scores[number], number))[:limit]
