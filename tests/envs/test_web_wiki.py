import re

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.web_wiki import WebWikiEnv

WORLD = {
    "person": [["Ada Bell", 0, 0, 1, 1901], ["Ben Cole", 1, 0, 0, 1902]],
    "company": [["Dora Mills", 1, 0, 1950]],
    "town": [["Eastford", 0, 1, 1860], ["Farwick", 1, 0, 1870]],
    "book": [["The Shadow of Gant", 0, 1, 0]],
}
REACH = {"world": WORLD, "start": ["book", 0], "target": ["town", 0]}
ANSWER = {"world": WORLD, "start": ["book", 0], "chain": ["author", "employer", "founding year"]}


def start(task, **arguments):
    env = WebWikiEnv(**arguments)
    return env, env.reset(options={"task": task})[0]


def do(env, command):
    return env.step(f"<command>{command}</command>")


def test_a_page_is_reached_by_links():
    env, observation = start(REACH)
    assert observation.startswith("Find the page of the town Eastford.\n")
    assert observation.endswith("Links: [Ada Bell] [Farwick] [Dora Mills]")
    page, reward, terminated, _, info = do(env, "click ada bell")
    assert page.endswith("Links: [Eastford] [Dora Mills] [Ben Cole]")
    assert (reward, terminated, info["invalid"]) == (0.0, False, False)
    _, reward, terminated, _, info = do(env, "click [Eastford]")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_back_returns_page_by_page():
    env, observation = start(REACH)
    first = observation[observation.index("The Shadow of Gant is") :]
    do(env, "click Ada Bell")
    do(env, "click Ben Cole")
    assert do(env, "back")[0].startswith("Ada Bell is a person.")
    assert do(env, "Back")[0] == first
    assert do(env, "back")[0].startswith("There is no page before this one.")


def test_only_links_of_the_page_can_be_clicked():
    env, _ = start(REACH)
    for command in ("click Eastford", "click", "open Ada Bell", "back now"):
        assert do(env, command)[4]["invalid"] is True
    assert env.step(r"\boxed{Eastford}")[4]["invalid"] is True


@pytest.mark.parametrize(("answer", "reward"), [("1950", 1.0), (" 1950.", 1.0), ("1901", 0.0)])
def test_a_question_is_answered_in_a_box(answer, reward):
    env, observation = start(ANSWER)
    assert observation.startswith(
        "What is the year in which the company that employs the author of The Shadow of Gant was "
        "founded?"
    )
    _, got, terminated, _, _ = env.step(f"\\boxed{{{answer}}}")
    assert (got, terminated) == (reward, True)


def test_the_oracle_opens_every_page_of_the_chain_and_finds_back():
    env, _ = start(ANSWER)
    do(env, "click Farwick")
    said = []
    for _ in range(4):
        said.append(env.oracle_action())
        env.step(said[-1])
    assert said == [
        "<command>back</command>",
        "<command>click Ada Bell</command>",
        "<command>click Dora Mills</command>",
        r"\boxed{1950}",
    ]


def test_targets_are_exactly_as_many_clicks_away_as_asked():
    env = WebWikiEnv(goal="reach", hops=4, split="all")
    for seed in range(30):
        observation, _ = env.reset(seed=seed)
        goal = re.match(r"Find the page of the \w+ (.+)\.\n", observation).group(1)
        # Breadth first over the links as they are shown, each page opened in an env of its own.
        pages, seen = [(observation, ())], set()
        for _ in range(4):
            following = []
            for text, path in pages:
                for link in re.findall(r"\[(.+?)\]", text.rpartition("Links: ")[2]):
                    if link not in seen:
                        seen.add(link)
                        env.reset(options={"task": env.task})
                        for name in (*path, link):
                            text_of_page = do(env, f"click {name}")[0]
                        following.append((text_of_page, (*path, link)))
            pages = following
            if goal in seen:
                break
        assert goal in [path[-1] for _, path in pages]
        assert len(pages[0][1]) == 4


def test_mixed_goals_draw_both():
    env = WebWikiEnv(split="all")
    kinds = set()
    for seed in range(20):
        env.reset(seed=seed)
        kinds |= {"chain", "target"} & set(env.task)
    assert kinds == {"chain", "target"}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({**REACH, "chain": ["author"]}, "either"),
        ({"world": WORLD, "start": ["book", 0]}, "either"),
        ({**REACH, "target": ["book", 0]}, "no links"),
        ({**REACH, "target": ["town", 5]}, "target"),
        ({**ANSWER, "chain": ["mayor"]}, "allowed"),
        ({**ANSWER, "world": {}}, "world"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(task, message):
    with pytest.raises(TaskError, match=message):
        start(task)


def test_arguments_out_of_range_are_refused():
    for arguments in ({"goal": "win"}, {"hops": 7}, {"num_pages": 5}, {"max_turns": 3}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            WebWikiEnv(**arguments)
