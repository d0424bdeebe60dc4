import json

import pytest

from rllm_envs import DatasetError, EnvArgumentError, TaskError
from rllm_envs.language.qa import QAEnv

TASK = {"question": "Where is the tower?", "answer": ["Paris, France", "the Paris area"]}


def play(action, **arguments):
    env = QAEnv(**arguments)
    env.reset(options={"task": TASK})
    _, reward, terminated, _, info = env.step(action)
    assert terminated
    return reward, info


def test_the_observation_is_the_question_with_the_instruction():
    observation, _ = QAEnv().reset(options={"task": TASK})
    assert observation == (
        "Where is the tower?\nGive the answer, as few words as possible, in \\boxed{}."
    )


@pytest.mark.parametrize(
    "action",
    [r"\boxed{Paris, France}", r"\boxed{paris france.}", r"\boxed{Paris area}",
     "<answer>Paris France</answer>", "The answer is Paris, France."],
)  # fmt: skip
def test_an_exact_match_with_any_reference_is_right(action):
    reward, info = play(action)
    assert (reward, info["success"], info["outcome"], info["f1"]) == (1.0, True, "correct", 1.0)


def test_a_part_of_the_words_earns_its_f1_only_where_asked_for():
    # One word of two is given: precision 1, recall 1/2, so F1 = 2/3.
    reward, info = play(r"\boxed{Paris}")
    assert (reward, info["success"], info["outcome"]) == (0.0, False, "partial")
    reward, info = play(r"\boxed{Paris}", metric="f1")
    assert reward == pytest.approx(2 / 3)
    assert info["f1"] == pytest.approx(2 / 3)
    assert not info["success"]
    assert play(r"\boxed{Rome}", metric="f1")[0] == 0.0


@pytest.mark.parametrize("action", ["", "Paris, France", r"\boxed{}", r"<think>\boxed{Paris}"])
def test_what_is_not_given_as_an_answer_is_none(action):
    reward, info = play(action)
    assert (reward, info["invalid"], info["outcome"]) == (0.0, True, "no_answer")


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_made_up_answers_are_in_the_text_and_mostly_not_in_the_question(hops):
    env = QAEnv(hops=hops, num_people=10)
    for seed in range(20):
        env.reset(seed=seed)
        text, _, question = env.task["question"].rpartition("\n\nQuestion: ")
        assert env.task["answer"][0] in text
        assert env.task["answer"][0] not in question


def test_rows_of_a_file_are_played(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": 1972, "id": 4}) + "\n")
    env = QAEnv(dataset=path)
    env.reset(seed=0)
    assert (env.task["answer"], env.task["id"]) == (["1972"], 4)
    assert env.step(r"\boxed{1972}")[1] == 1.0
    path.write_text('{"question": "q", "answer": "a"}\n{"question": "q", "answer": []}\n')
    with pytest.raises(DatasetError, match="row 2: 'answer'"):
        QAEnv(dataset=path)


def test_questions_of_hotpotqa_are_played_by_the_name_of_the_set(data_dir, monkeypatch):
    monkeypatch.setenv("RLLM_DATA_DIR", str(data_dir))
    env = QAEnv(dataset="hotpotqa", split="test")
    for seed in range(50):
        env.reset(seed=seed)
        assert env.step(env.oracle_action())[1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"metric": "bleu"}, "metric"), ({"hops": 0}, "hops"), ({"hops": 5}, "hops"),
     ({"num_people": 3}, "num_people"), ({"dataset": "x", "hops": 2}, "not both")],
)  # fmt: skip
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(EnvArgumentError, match=message):
        QAEnv(**arguments)


@pytest.mark.parametrize(
    ("change", "field"),
    [({"question": " "}, "question"), ({"question": "x" * 65_001}, "question"),
     ({"answer": ""}, "answer"), ({"answer": [""]}, "answer"), ({"answer": True}, "answer"),
     ({"answer": {}}, "answer"), ({"answer": "x" * 10_001}, "answer"),
     ({"passages": []}, "passages"), ({"passages": [{"title": "t"}]}, "passages")],
)  # fmt: skip
def test_a_given_task_is_checked(change, field):
    with pytest.raises(TaskError, match=field):
        QAEnv().reset(options={"task": TASK | change})
