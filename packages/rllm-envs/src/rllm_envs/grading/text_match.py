"""Compare short answers in words: normalisation, exact match and token F1.

Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text".
"""

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation + "\u2018\u2019\u201c\u201d\u2013\u2014")
_CLOSED = frozenset({"yes", "no", "noanswer"})
"""Answers that are right or wrong as a whole."""
MAX_LENGTH = 10_000
"""Characters of an answer that are compared: what is longer is no short answer."""


def normalize(text: str) -> str:
    """Return a text in lower case without punctuation, articles and surplus white space.

    Where nothing would be left, as of "The The" or "!", what consists of articles or punctuation
    stays, or all such texts would be equal.
    """
    lowered = text[:MAX_LENGTH].casefold()
    plain = lowered.translate(_PUNCTUATION)
    for kept in (_ARTICLES.sub(" ", plain), plain, lowered):
        if kept.strip():
            return " ".join(kept.split())
    return ""


def is_exact_match(answer: str, reference: str) -> bool:
    """Return whether two texts are equal once normalised."""
    return normalize(answer) == normalize(reference)


def token_f1(answer: str, reference: str) -> float:
    """Return the harmonic mean of precision and recall over words, in [0, 1].

    With c words in common (counted with repetitions), p = c / words of the answer and
    r = c / words of the reference, F1 = 2 p r / (p + r). Where either is "yes", "no" or "noanswer"
    it is 1 for equal texts and 0 otherwise, so that no word of a longer answer earns a part of it.
    """
    one, other = normalize(answer), normalize(reference)
    if one in _CLOSED or other in _CLOSED or not one or not other:
        return float(one == other)
    words, expected = one.split(), other.split()
    common = sum((Counter(words) & Counter(expected)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(words), common / len(expected)
    return 2 * precision * recall / (precision + recall)
