import math

import pytest

from rllm_envs.tool_use.bm25 import Bm25, words_of


def test_words_are_lower_case_without_marks():
    assert words_of("The cat_sat, Ünder 3 trees!") == ["the", "cat", "sat", "ünder", "3", "trees"]


def test_scores_follow_the_formula():
    index = Bm25(["red red ball", "red hat", "blue coat with buttons"])
    # 3 documents of 3, 2 and 4 words: the mean is 3. "red" is in 2 of 3 documents.
    idf = math.log(1 + 1.5 / 2.5)
    first = idf * 2 * 2.5 / (2 + 1.5)
    second = idf * 1 * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 2 / 3))
    assert index.scores("red RED") == pytest.approx({0: first, 1: second})
    assert index.search("red", 5) == [0, 1]


def test_rare_words_weigh_more_and_equal_documents_keep_their_order():
    index = Bm25(["red coat", "red ball", "red ball", "green ball"])
    assert index.search("red coat", 2) == [0, 1]
    assert index.search("ball", 3) == [1, 2, 3]


def test_a_query_without_known_words_finds_nothing():
    index = Bm25(["red ball"])
    assert index.search("", 3) == []
    assert index.search("\ud800 xyz", 3) == []
