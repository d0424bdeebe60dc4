import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from rllm_envs import (
    DatasetError,
    EnvArgumentError,
    InfrastructureError,
    LocalRetrievalTool,
    ToolEnvironment,
)
from rllm_envs.tools import indexes, make_tools

pytest.importorskip("bm25s", reason="needs rllm-envs[search]")

ROWS = [
    {"title": "Paris", "text": "Paris is the capital of France."},
    {"title": "Rome", "contents": "Rome is the capital of Italy."},
    {"text": "Cats sleep most of the day."},
]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return path


def search(tool, query):
    return tool.call({"query": query}).text


def test_the_best_passages_come_first_with_their_titles(corpus):
    tool = LocalRetrievalTool(corpus, num_results=2)
    assert (
        search(tool, "capital of Italy").splitlines()[0]
        == "[1] Rome: Rome is the capital of Italy."
    )
    assert search(tool, "capital").count("[") == 2


def test_equal_passages_keep_the_order_of_the_corpus():
    tool = LocalRetrievalTool([{"text": f"word number{i}"} for i in range(5)], num_results=3)
    assert search(tool, "word") == "[1] word number0\n\n[2] word number1\n\n[3] word number2"


def test_no_hit_and_no_query_are_answered_in_words(corpus):
    tool = LocalRetrievalTool(corpus)
    assert search(tool, "zebra") == search(tool, "") == "No passage has any of these words."


def test_a_class_alone_finds_its_corpus_in_the_environment(corpus, monkeypatch):
    monkeypatch.setenv("RLLM_CORPUS", str(corpus))
    tools = make_tools(tool_map={"local_search": LocalRetrievalTool})
    assert "Paris" in tools["local_search"].call({"query": "France"}).text
    monkeypatch.delenv("RLLM_CORPUS")
    with pytest.raises(EnvArgumentError, match=r"RLLM_CORPUS.*LocalRetrievalTool\(corpus="):
        make_tools(tool_map={"local_search": LocalRetrievalTool})


def test_a_file_is_indexed_once_and_again_when_it_changes(corpus):
    first = LocalRetrievalTool(corpus)
    tools = []
    threads = [
        threading.Thread(target=lambda: tools.append(LocalRetrievalTool(corpus))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(tool._index is first._index for tool in tools)
    corpus.write_text(json.dumps({"text": "Zebras have stripes."}))
    os.utime(corpus, ns=(1, 1))
    assert "stripes" in search(LocalRetrievalTool(corpus), "zebras")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a b"}\n{"text": ', r"row 2: not JSON"),
        ('{"title": "x"}', r"row 1: needs text or contents"),
        ('"text"', r"row 1: a row must be an object"),
        ('{"text": "a", "title": 3}', r"row 1: the title must be text"),
        ("", "has no rows"),
        ('{"text": "a b"}\n\n{"title": "x"}', r"row 2: needs text"),
        ('{"text": "half \\ud800"}', r"row 1: holds half of a character pair"),
    ],
)
def test_a_broken_corpus_is_refused_with_the_row(tmp_path, content, message):
    path = tmp_path / "corpus.jsonl"
    path.write_text(content)
    with pytest.raises(DatasetError, match=message):
        LocalRetrievalTool(path)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text(json.dumps(ROWS[0]), encoding="utf-8-sig")
    assert "Paris" in search(LocalRetrievalTool(path), "capital")


@pytest.mark.parametrize("corpus", [5, {"text": "a b"}])
def test_what_is_neither_a_file_nor_rows_is_refused(corpus):
    with pytest.raises(EnvArgumentError, match="a JSONL file or a list of rows"):
        LocalRetrievalTool(corpus)


def test_a_corpus_that_is_not_there_and_wrong_numbers_are_refused(tmp_path):
    with pytest.raises(EnvArgumentError, match="cannot be read"):
        LocalRetrievalTool(tmp_path / "missing.jsonl")
    with pytest.raises(EnvArgumentError, match=r"num_results must be in \[1, 100\]"):
        LocalRetrievalTool(ROWS, num_results=0)


def test_indexing_prints_nothing(corpus):
    code = f"from rllm_envs import LocalRetrievalTool as T; T({str(corpus)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "" and "it/s" not in done.stderr


VECTORS = {
    "north": [0, 2], "east": [3, 0], "north-east": [1, 1], "nothing": [0, 0], "up": [-1, 5],
}  # fmt: skip
PLACES = [{"text": name} for name in VECTORS]


class Compass:
    """Knows the directions of a few words, and counts what it is asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked += texts
        return [VECTORS[text.split(": ")[-1]] for text in texts]


def found(tool, query):
    answer = tool.call({"query": query}).text
    return [line.split("] ")[1] for line in answer.split("\n") if line]


def test_embeddings_are_ranked_by_their_angle():
    tool = LocalRetrievalTool(PLACES, num_results=5, embed=Compass())
    # Angles to north: 0, 90, 45, none, and about 11 degrees.
    assert found(tool, "north") == ["north", "up", "north-east", "east", "nothing"]
    assert found(tool, "east")[:2] == ["east", "north-east"]
    assert found(tool, "nothing") == list(VECTORS)


def test_the_ranking_is_that_of_a_plain_loop_over_random_vectors():
    generator = np.random.default_rng(0)
    vectors = {f"t{n}": generator.normal(size=6) for n in range(600)}
    rows = [{"text": name} for name in list(vectors)[:-20]]
    tool = LocalRetrievalTool(
        rows, num_results=4, embed=lambda texts: np.stack([vectors[text] for text in texts])
    )
    for name in list(vectors)[-20:]:
        query = vectors[name]
        cosines = {
            row["text"]: sum(a * b for a, b in zip(query, vectors[row["text"]], strict=True))
            / sum(b * b for b in vectors[row["text"]]) ** 0.5
            for row in rows
        }
        assert found(tool, name) == sorted(cosines, key=lambda t: -cosines[t])[:4]


def test_passages_are_embedded_once_for_a_content_and_an_embedding():
    compass = Compass()
    first = LocalRetrievalTool(PLACES, embed=compass)
    LocalRetrievalTool(list(PLACES), embed=compass)
    assert compass.asked == list(VECTORS)
    assert found(first, "up")[0] == "up" and compass.asked == [*VECTORS, "up"]
    other = Compass()
    LocalRetrievalTool(PLACES, embed=other)
    assert other.asked == list(VECTORS)


@pytest.mark.parametrize(
    "returned",
    [[1, 2], [[1], [2]], [[float("nan")]] * 5, [["a"]] * 5, None, [[]] * 5, [[1], [1, 2]]],
)
def test_what_is_no_array_of_vectors_is_refused(returned):
    with pytest.raises(EnvArgumentError, match=r"shape \(5, dimensions\)"):
        LocalRetrievalTool(PLACES, embed=lambda texts: returned)


def test_an_embedding_that_fails_is_no_answer():
    def embed(texts):
        if texts == ["raise"]:
            raise ConnectionError("down")
        return [[1.0]] * len(texts) if texts != ["short"] else [[1.0, 2.0]]

    env = ToolEnvironment(
        tools=[LocalRetrievalTool(PLACES, embed=embed)], reward_fn=lambda **_: 0.0
    )
    env.reset()
    for query, reason in (("raise", "ConnectionError: down"), ("short", "2 numbers for a query")):
        with pytest.raises(InfrastructureError, match=reason):
            env.step({"name": "local_search", "arguments": {"query": query}})
    with pytest.raises(InfrastructureError, match="ConnectionError"):
        LocalRetrievalTool([{"text": "raise"}], embed=embed)
    with pytest.raises(EnvArgumentError, match="must be a function"):
        LocalRetrievalTool(PLACES, embed="model")


@pytest.mark.parametrize("is_dense", [False, True])
def test_a_folder_is_searched_and_an_episode_sees_its_changes(tmp_path, is_dense):
    def embed(texts):
        return [[text.count("fox"), text.count("owl"), 0.1] for text in texts]

    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.md").write_text("A fox.\n\nIt runs.\n \n" + "x" * 990)
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "An owl.", "title": "Bird"}))
    (tmp_path / "c.py").write_text("fox = 1")
    tool = LocalRetrievalTool(tmp_path, num_results=1, embed=embed if is_dense else None)
    assert search(tool, "fox") == "[1] a: A fox.\n\nIt runs."
    assert search(tool, "owl") == "[1] Bird: An owl."
    assert tool.for_episode() is tool
    (tmp_path / "d.txt").write_text("A fox fox fox.")
    (tmp_path / "deep" / "a.md").unlink()
    assert search(tool, "fox") == "[1] a: A fox.\n\nIt runs."
    assert search(tool.for_episode(), "fox") == "[1] d: A fox fox fox."


def test_an_index_is_dropped_when_its_file_has_changed_and_kept_when_it_was_only_touched(corpus):
    corpus.write_text(json.dumps({"text": "Okapis have stripes too."}))
    first = LocalRetrievalTool(corpus)
    held = len(indexes._cache._indexes)
    os.utime(corpus, ns=(5, 5))
    assert LocalRetrievalTool(corpus)._index is first._index
    for number in range(3):
        corpus.write_text(json.dumps({"text": f"Zebras {number} have stripes."}))
        os.utime(corpus, ns=(number, number))
        assert f"Zebras {number}" in search(first.for_episode(), "zebras")
        assert len(indexes._cache._indexes) == held
    assert all(index is not first._index for index in indexes._cache._indexes.values())


def test_the_number_of_kept_indexes_is_bounded():
    for number in range(12):
        LocalRetrievalTool([{"text": f"word{number}"}])
    assert len(indexes._cache._indexes) <= 8


def test_a_folder_without_passages_and_a_broken_one_are_refused(tmp_path):
    with pytest.raises(EnvArgumentError, match=r"no .jsonl, .txt or .md file"):
        LocalRetrievalTool(tmp_path)
    (tmp_path / "a.txt").write_text(" \n")
    with pytest.raises(DatasetError, match="has no rows"):
        LocalRetrievalTool(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DatasetError, match=r"a\.txt.*cannot be read"):
        LocalRetrievalTool(tmp_path)
