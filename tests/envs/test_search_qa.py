import json

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.search_qa import HINT, NOTHING, SearchQAEnv

PASSAGES = [
    {"title": "Ada", "text": "Ada was born in Ulm."},
    {"title": "Ulm", "text": "Ulm lies on the Danube."},
    {"title": "Rome", "text": "Rome lies on the Tiber."},
]
TASK = {
    "question": "Which river runs through the town where Ada was born?",
    "answer": "the Danube",
    "passages": PASSAGES,
    "stations": ["Ada", "Ulm"],
}


def start(task=TASK, **arguments):
    env = SearchQAEnv(**arguments)
    return env, env.reset(options={"task": task})[0]


def test_the_first_observation_asks_and_says_how_to_act():
    _, observation = start(num_results=2)
    for part in (TASK["question"], "<search>words</search>", "2 best", "\\boxed{}", "8 turns"):
        assert part in observation
    assert "Danube" not in observation


def test_a_search_shows_the_best_passages_and_an_answer_ends():
    env, _ = start(num_results=1)
    observation, reward, terminated, _, info = env.step("I look. <search>Ada</search>")
    assert observation == "[1] Ada: Ada was born in Ulm."
    assert (reward, terminated, info["tool_call"], info["invalid"]) == (0.0, False, True, False)
    assert env.step("<search>zebra</search>")[0] == NOTHING
    observation, reward, terminated, _, info = env.step(r"<search>Ulm</search> \boxed{Danube}")
    assert (observation, reward, terminated, info["success"]) == ("", 1.0, True, True)
    assert info["tool_call"] is False


@pytest.mark.parametrize(
    "action",
    ["", "Danube", "<search></search>", "<search>Ulm", "<think><search>Ulm</search>",
     "the answer is x"],
)  # fmt: skip
def test_anything_else_gets_a_hint(action):
    env, _ = start()
    observation, _, terminated, _, info = env.step(action)
    assert (observation, terminated, info["invalid"]) == (HINT, False, True)


def test_the_last_search_counts_and_the_f1_is_paid_where_asked_for():
    env, _ = start(num_results=1, metric="f1")
    assert env.step("<search>Ada</search> <SEARCH>Tiber</SEARCH>")[0].startswith("[1] Rome")
    # Two words of three, without the article: precision 1/2, recall 1, F1 = 2/3.
    _, reward, _, _, info = env.step(r"\boxed{Danube river}")
    assert reward == pytest.approx(2 / 3)
    assert (info["success"], info["outcome"]) == (False, "partial")


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_each_search_of_the_oracle_finds_the_next_station_and_the_last_the_answer(hops):
    env = SearchQAEnv(hops=hops, split="all")
    for seed in range(25):
        env.reset(seed=seed)
        task = env.task
        for target in [*task["stations"][1:], task["answer"][0]]:
            observation, _, terminated, _, _ = env.step(env.oracle_action())
            assert target in observation
            assert not terminated
        assert env.step(env.oracle_action())[1] == 1.0


def test_the_oracle_answers_when_the_turns_run_out():
    env, _ = start(max_turns=2)
    env.step(env.oracle_action())
    assert env.step(env.oracle_action())[1] == 1.0
    env, _ = start(max_turns=1)
    assert env.step(env.oracle_action())[1:4] == (1.0, True, False)


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("kind", ["file", "folder of rows", "folder of texts"])
def test_a_corpus_is_a_file_or_a_folder(kind, tmp_path):
    pytest.importorskip("bm25s")
    rows = write_rows(tmp_path / "rows.jsonl", [{"question": "q", "answer": "Danube", "id": "1"}])
    corpus = tmp_path / "corpus"
    if kind == "file":
        write_rows(corpus, PASSAGES)
    else:
        (corpus / "deep").mkdir(parents=True)
        if kind == "folder of rows":
            write_rows(corpus / "deep" / "a.jsonl", PASSAGES)
        else:
            for passage in PASSAGES:
                (corpus / "deep" / f"{passage['title']}.txt").write_text(passage["text"])
            (corpus / "empty.md").write_text(" \n")
            (corpus / "picture.png").write_bytes(b"\x89PNG")
    env = SearchQAEnv(dataset=rows, corpus=corpus, num_results=1)
    env.reset(seed=0)
    assert env.step("<search>Danube</search>")[0] == "[1] Ulm: Ulm lies on the Danube."
    assert env.step(r"\boxed{Danube}")[1] == 1.0


def test_rows_of_hotpotqa_bring_their_own_passages(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_DATA_DIR", str(tmp_path))
    context = {
        "title": ["Ada", "Ulm"],
        "sentences": [["Ada was ", "born in Ulm."], ["On the Danube."]],
    }
    row = {"id": "1", "question": "Which river?", "answer": "Danube", "context": context}
    (tmp_path / "hotpotqa").mkdir()
    write_rows(tmp_path / "hotpotqa" / "validation.jsonl", [row])
    env = SearchQAEnv(dataset="hotpotqa", split="test")
    env.reset(seed=0)
    assert env.step("<search>Danube</search>")[0] == "[1] Ulm: On the Danube."


def test_questions_without_passages_need_a_corpus(tmp_path):
    rows = write_rows(tmp_path / "rows.jsonl", [{"question": "q", "answer": "a"}])
    with pytest.raises(EnvArgumentError, match=r"rows.jsonl, row 1 brings no passages.*corpus="):
        SearchQAEnv(dataset=rows)
    with pytest.raises(TaskError, match="'passages'"):
        start({"question": "q", "answer": "a"})
    (tmp_path / "empty").mkdir()
    with pytest.raises(EnvArgumentError, match=r"no .jsonl, .txt or .md"):
        SearchQAEnv(dataset=rows, corpus=tmp_path / "empty")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"num_results": 0}, "num_results"), ({"num_results": 21}, "num_results"),
     ({"hops": 5}, "hops"), ({"metric": 1}, "metric"), ({"corpus": "x"}, "corpus"),
     ({"dataset": "x", "hops": 1}, "not both")],
)  # fmt: skip
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(EnvArgumentError, match=message):
        SearchQAEnv(**arguments)


@pytest.mark.parametrize("stations", ["Ada", [1], ["x"] * 17])
def test_stations_of_a_given_task_are_checked(stations):
    with pytest.raises(TaskError, match="stations"):
        start(TASK | {"stations": stations})
