import json
from collections import Counter

import numpy as np
import pytest

from rllm_envs import DatasetError, EnvArgumentError, TaskError
from rllm_envs.grading.instructions.checks import CHECKS, check_instruction, is_followed
from rllm_envs.language.ifeval import IFEvalEnv
from rllm_envs.language.instruction_drafts import DRAFTS, Dice, draft_task
from rllm_envs.language.instruction_writer import FOREIGN_LANGUAGES, write_response

TASK = {
    "question": "Write in lower case without commas.",
    "instruction_id_list": ["punctuation:no_comma", "change_case:english_lowercase"],
    "kwargs": [{}, {}],
}


def play(action, **arguments):
    env = IFEvalEnv(**arguments)
    env.reset(options={"task": TASK})
    observation, reward, terminated, _, info = env.step(action)
    assert (observation, terminated) == ("", True)
    return reward, info


def test_the_observation_is_the_request_alone():
    assert IFEvalEnv().reset(options={"task": TASK})[0] == TASK["question"]


def test_all_instructions_are_needed_unless_parts_are_credited():
    reward, info = play("this is it.")
    assert (reward, info["success"], info["share"], info["num_followed"]) == (1.0, True, 1.0, 2)
    reward, info = play("This is it.")
    assert (reward, info["success"], info["share"], info["num_followed"]) == (0.0, False, 0.5, 1)
    reward, info = play("This is it.", partial_credit=True)
    assert (reward, info["success"]) == (0.5, False)
    reward, info = play("<think>this is it.")
    assert (reward, info["invalid"]) == (0.0, True)


def test_each_instruction_can_be_drawn_and_followed_by_itself():
    assert set(DRAFTS) == set(CHECKS)
    for name, draft in DRAFTS.items():
        followed = 0
        for seed in range(40):
            arguments = draft.draw(Dice(np.random.default_rng(seed)))
            if name == "combination:repeat_prompt":
                arguments = {"prompt_to_repeat": "Write a note."}
            check_instruction(name, arguments)
            assert draft.words(arguments)
            followed += is_followed(name, arguments, write_response([(name, arguments)]))
        # A rare letter in few words is what the writer may miss; then the request is drawn again.
        assert followed == 40 or (name == "keywords:letter_frequency" and followed >= 20)


@pytest.mark.parametrize("language", FOREIGN_LANGUAGES)
def test_the_writer_writes_in_each_language_that_it_is_asked_for(language):
    asked = [("language:response_language", {"language": language})]
    assert is_followed(*asked[0], write_response(asked))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_requests_have_as_many_instructions_as_asked_for_and_can_be_followed(count):
    env = IFEvalEnv(num_instructions=count, split="all")
    seen = Counter()
    for seed in range(40):
        observation, _ = env.reset(seed=seed)
        names = env.task["instruction_id_list"]
        assert len(set(names)) == len(names) == count
        assert not all(DRAFTS[name].is_free for name in names)
        assert observation.startswith("Write a")
        assert env.step(env.oracle_action())[1] == 1.0
        seen.update(names)
    assert len(seen) >= 10


@pytest.mark.parametrize("text", ["", "hello", "The sun is out. It is a good day.", "a " * 300])
def test_text_that_ignores_the_request_earns_next_to_nothing(text):
    rng = np.random.default_rng(0)
    total = 0
    env = IFEvalEnv()
    for _ in range(100):
        env.reset(options={"task": draft_task(rng, 2)})
        total += env.step(text)[1]
    assert total <= 5


def test_rows_of_ifeval_are_played_by_the_name_of_the_set(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_DATA_DIR", str(tmp_path))
    names = ["punctuation:no_comma", "length_constraints:number_words"]
    empty = dict.fromkeys(("num_words", "relation", "keywords"))
    words = empty | {"num_words": 30, "relation": "at least"}
    row = {"key": 1, "prompt": "No commas.", "instruction_id_list": names, "kwargs": [empty, words]}
    (tmp_path / "ifeval.jsonl").write_text(json.dumps(row) + "\n")
    env = IFEvalEnv(dataset="ifeval", split="test")
    assert env.reset(seed=0)[0] == "No commas."
    assert env.task["kwargs"] == [{}, {"num_words": 30, "relation": "at least"}]
    assert env.step(env.oracle_action())[1] == 1.0


def test_a_bad_row_is_named_with_its_number(tmp_path):
    path = tmp_path / "rows.jsonl"
    bad = TASK | {"instruction_id_list": ["punctuation:no_comma", "no:such"]}
    path.write_text(json.dumps(TASK) + "\n" + json.dumps(bad) + "\n")
    with pytest.raises(DatasetError, match=r"row 2: no instruction is named 'no:such'"):
        IFEvalEnv(dataset=path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"num_instructions": 0}, "num_instructions"), ({"num_instructions": 7}, "num_instructions"),
     ({"num_instructions": True}, "num_instructions"), ({"partial_credit": 1}, "partial_credit"),
     ({"dataset": "x", "num_instructions": 2}, "not both")],
)  # fmt: skip
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(EnvArgumentError, match=message):
        IFEvalEnv(**arguments)


@pytest.mark.parametrize(
    "change",
    [{"question": ""}, {"question": "x" * 65_001}, {"kwargs": [{}]}, {"kwargs": [{}, {"a": 1}]}],
)  # fmt: skip
def test_a_given_task_is_checked(change):
    with pytest.raises(TaskError):
        IFEvalEnv().reset(options={"task": TASK | change})
