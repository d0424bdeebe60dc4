import json
from collections import Counter
from fractions import Fraction

import pytest

from rllm_envs import DatasetError, EnvArgumentError, TaskError
from rllm_envs.language.mcq import MCQEnv
from rllm_envs.language.mcq_families import FAMILIES

TASK = {"question": "What is the capital of France?", "choices": ["Rome", "Paris"], "answer": 1}


def test_the_observation_shows_the_choices_under_their_letters():
    observation, _ = MCQEnv().reset(options={"task": TASK})
    assert observation == (
        "What is the capital of France?\nA) Rome\nB) Paris\n"
        r"Give the letter of the right choice in \boxed{}."
    )


@pytest.mark.parametrize(
    ("action", "reward", "outcome"),
    [(r"\boxed{B}", 1.0, "correct"), (r"\boxed{A}", 0.0, "wrong"), ("Hm.", 0.0, "no_answer")],
)
def test_an_action_is_graded_and_ends_the_episode(action, reward, outcome):
    env = MCQEnv()
    env.reset(options={"task": TASK})
    _, earned, terminated, _, info = env.step(action)
    assert (earned, terminated, info["outcome"]) == (reward, True, outcome)
    assert (info["success"], info["invalid"]) == (reward == 1.0, outcome == "no_answer")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("count", [2, 4, 10])
def test_made_up_choices_are_different_and_as_many_as_asked_for(family, count):
    env = MCQEnv(families=[family], num_choices=count, split="all")
    for seed in range(30):
        env.reset(seed=seed)
        choices = env.task["choices"]
        assert (
            len(set(choices)) == len(choices) == (min(count, 7) if family == "weekday" else count)
        )


def test_the_right_choice_is_at_every_place_equally_often():
    env = MCQEnv(split="all")
    env.reset(seed=0)
    places = Counter()
    for _ in range(800):
        env.reset()
        places[env.task["answer"]] += 1
    assert all(150 <= places[place] <= 250 for place in range(4))


def test_made_up_numbers_are_right():
    env = MCQEnv(families=["product", "largest_fraction", "prime", "weekday"], split="all")
    seen = Counter()
    for seed in range(200):
        question, _ = env.reset(seed=seed)
        task = env.task
        right = task["choices"][task["answer"]]
        if "*" in task["question"]:
            one, other = task["question"][8:-1].split(" * ")
            assert int(right) == int(one) * int(other)
        elif "fraction" in question:
            assert Fraction(right) == max(map(Fraction, task["choices"]))
        elif "prime" in question:
            is_prime = [all(int(c) % d for d in range(2, int(c))) for c in task["choices"]]
            assert is_prime.count(True) == 1
            assert is_prime[task["answer"]]
        else:
            days = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
            words = task["question"].split()
            assert right == days[(days.index(words[2].strip(".")) + int(words[-2])) % 7]
        seen[question.split()[0]] += 1
    assert len(seen) >= 3


def test_rows_of_a_file_are_played_and_shuffled_only_when_asked(tmp_path):
    path = tmp_path / "rows.jsonl"
    row = {"question": "?", "choices": [f"c{n}" for n in range(8)], "answer": "C", "id": "x1"}
    path.write_text(json.dumps(row) + "\n")
    env = MCQEnv(dataset=path)
    env.reset(seed=0)
    assert env.task["choices"] == row["choices"]
    assert (env.task["answer"], env.task["id"]) == (2, "x1")
    env = MCQEnv(dataset=path, shuffle_choices=True)
    orders = set()
    for seed in range(20):
        env.reset(seed=seed)
        assert env.task["choices"][env.task["answer"]] == "c2"
        orders.add(tuple(env.task["choices"]))
    assert len(orders) > 10


def test_a_bad_row_is_named_with_its_number(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(TASK) + "\n" + json.dumps(TASK | {"answer": 2}) + "\n")
    with pytest.raises(DatasetError, match="row 2: 'answer'"):
        MCQEnv(dataset=path)


def test_rows_of_a_public_data_set_are_found_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("RLLM_DATA_DIR", str(tmp_path))
    row = {"Question": "?", "Correct Answer": "p", "Incorrect Answer 1": "q",
           "Incorrect Answer 2": "r", "Incorrect Answer 3": "s"}  # fmt: skip
    (tmp_path / "gpqa_diamond.jsonl").write_text(json.dumps(row) + "\n")
    env = MCQEnv(dataset="gpqa_diamond", split="test")
    env.reset(seed=0)
    assert env.task["choices"][env.task["answer"]] == "p"
    assert env.step(env.oracle_action())[1] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_choices": 1}, "num_choices"),
        ({"num_choices": 11}, "num_choices"),
        ({"num_choices": True}, "num_choices"),
        ({"families": []}, "families"),
        ({"families": ["chess"]}, "families"),
        ({"families": "capital"}, "families"),
        ({"shuffle_choices": True}, "shuffle_choices"),
        ({"shuffle_choices": 1}, "shuffle_choices"),
        ({"dataset": "x", "num_choices": 4}, "not both"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(EnvArgumentError, match=message):
        MCQEnv(**arguments)


@pytest.mark.parametrize(
    "change", [{"question": ""}, {"choices": ["a"]}, {"answer": 5}, {"question": "x" * 65_000}]
)
def test_a_given_task_is_checked(change):
    with pytest.raises(TaskError):
        MCQEnv().reset(options={"task": TASK | change})
