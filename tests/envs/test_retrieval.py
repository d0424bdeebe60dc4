import json
import os
import subprocess
import sys
import threading

import pytest

from rllm_envs import DatasetError, EnvArgumentError, LocalRetrievalTool
from rllm_envs.tools import make_tools

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
