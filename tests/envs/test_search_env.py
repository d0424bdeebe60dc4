import re

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.knowledge_world import article, question_of, random_world
from rllm_envs.tool_use.search import SearchEnv

WORLD = {
    # birthplace, employer, teacher, birth year
    "person": [["Ada Bell", 0, 0, 1, 1901], ["Ben Cole", 1, 0, 0, 1902]],
    # founder, seat, founding year
    "company": [["Dora Mills", 1, 0, 1950]],
    # mayor, twin, charter year
    "town": [["Eastford", 0, 1, 1860], ["Farwick", 1, 0, 1870]],
    # author, setting, publisher
    "book": [["The Shadow of Gant", 0, 1, 0]],
}
TASK = {"world": WORLD, "start": ["person", 0], "chain": ["employer", "founder", "birthplace"]}


def start(task=TASK, **arguments):
    env = SearchEnv(**arguments)
    return env, env.reset(options={"task": task})[0]


def test_the_question_nests_the_chain_and_the_answer_is_not_shown():
    _, observation = start()
    assert observation.startswith(
        "What is the town where the founder of the company that employs Ada Bell was born?\n"
    )
    assert "Farwick" not in observation


def test_articles_state_the_facts():
    assert article(WORLD, ("company", 0)) == (
        "Dora Mills is a company. Dora Mills was founded by Ben Cole. The seat of Dora Mills is "
        "Eastford. Dora Mills was founded in the year 1950."
    )
    assert question_of(WORLD, ("book", 0), ["publisher", "founding year"]) == (
        "What is the year in which the publisher of The Shadow of Gant was founded?"
    )


def test_a_search_shows_the_best_documents_and_a_title_comes_first():
    env, _ = start(num_results=2)
    observation, _, terminated, _, info = env.step("<search>eastford</search>")
    assert observation.startswith("[1] Eastford: Eastford is a town.")
    assert observation.count("\n[") == 1
    assert (terminated, info["invalid"]) == (False, False)
    assert env.step("<search>zzz</search>")[0] == "No document has any of these words."


@pytest.mark.parametrize(
    ("answer", "reward"),
    [("Farwick", 1.0), (" farwick. ", 1.0), ("the Farwick", 1.0), ("Eastford", 0.0), ("", 0.0)],
)
def test_the_last_name_of_the_chain_is_the_answer(answer, reward):
    env, _ = start()
    _, got, terminated, _, info = env.step(f"\\boxed{{{answer}}}")
    assert (got, terminated, info["success"]) == (reward, True, reward == 1.0)


def test_a_chain_may_end_in_a_year():
    env, _ = start({**TASK, "chain": ["teacher", "birth year"]})
    assert env.step(r"\boxed{1902}")[1] == 1.0


def test_the_oracle_reads_each_document_before_it_goes_on():
    env, _ = start()
    said = []
    for _ in range(4):
        said.append(env.oracle_action())
        env.step(said[-1])
    assert said == [
        "<search>Ada Bell</search>",
        "<search>Dora Mills</search>",
        "<search>Ben Cole</search>",
        r"\boxed{Farwick}",
    ]


def test_each_hop_can_be_read_from_the_documents_alone():
    env = SearchEnv(hops=4, split="all")
    for seed in range(30):
        env.reset(seed=seed)
        read = ""
        while not (action := env.oracle_action()).startswith("\\boxed"):
            read = env.step(action)[0]
            title = re.fullmatch("<search>(.*)</search>", action).group(1)
            assert read.startswith(f"[1] {title}: ")
        assert action[7:-1] in read.split("\n")[0]


def test_worlds_have_the_wanted_size_and_different_names():
    env = SearchEnv(num_documents=77)
    env.reset(seed=3)
    names = [record[0] for records in env.task["world"].values() for record in records]
    assert len(names) == len(set(names)) == 77
    world = random_world(Draws(env.np_random), 50)
    assert all(record[3] != i for i, record in enumerate(world["person"]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"world": {}}, "world"),
        ({"world": {**WORLD, "book": [["X", 0, 1]]}}, "book"),
        ({"world": {**WORLD, "book": [["X", 0, 1, 5]]}}, "publisher"),
        ({"world": {**WORLD, "book": [["ADA bell", 0, 1, 0]]}}, "names"),
        ({"start": ["person", 2]}, "start"),
        ({"start": "person"}, "start"),
        ({"chain": []}, "chain"),
        ({"chain": ["mayor"]}, "allowed"),
        ({"chain": ["birth year", "founder"]}, "allowed"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, message):
    with pytest.raises(TaskError, match=message):
        SearchEnv().reset(options={"task": {**TASK, **change}})


def test_arguments_out_of_range_are_refused():
    for arguments in ({"hops": 0}, {"num_documents": 10}, {"num_results": True}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            SearchEnv(**arguments)
