from itertools import combinations

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.things import ATTRIBUTES, THINGS, find_attribute, find_thing, has_attribute
from rllm_envs.puzzles.twenty_questions import TwentyQuestionsEnv

TASK = {"things": ["bell", "dog", "eagle", "key"], "thing": "dog"}


def start(**arguments):
    env = TwentyQuestionsEnv(**arguments)
    return env, env.reset(options={"task": TASK})[0]


def test_the_table_is_large_and_tells_all_things_apart():
    assert len(THINGS) >= 60
    assert len(ATTRIBUTES) >= 25
    assert all(first != second for first, second in combinations(THINGS.values(), 2))
    assert all(any(has_attribute(thing, words) for thing in THINGS) for words in ATTRIBUTES)


def test_facts_of_the_table_are_those_that_everyone_knows():
    assert has_attribute("eagle", "can fly")
    assert not has_attribute("penguin", "can fly")
    assert has_attribute("whale", "lives or moves in water")
    assert has_attribute("horse", "has four legs")
    assert not has_attribute("key", "is alive")
    assert all(("is a plant" in has) <= ("is an animal" not in has) for has in THINGS.values())


@pytest.mark.parametrize(
    ("text", "attribute"),
    [
        ("can fly", "can fly"),
        ("Can it fly?", "can fly"),
        ("is it alive", "is alive"),
        ("Does it have wheels?", "has wheels"),
        ("Is it an animal?", "is an animal"),
        ("is it blue?", ""),
        ("", ""),
    ],
)
def test_questions_are_found_in_plain_words(text, attribute):
    assert find_attribute(text) == attribute


def test_every_name_and_every_attribute_is_found_and_none_is_both():
    assert all(find_thing(f"Is it a {name.upper()}?") == name for name in THINGS)
    assert all(find_attribute(words) == words for words in ATTRIBUTES)
    assert not any(find_attribute(name) for name in THINGS)
    assert not any(find_thing(words) for words in ATTRIBUTES)


def test_questions_are_answered_and_the_guess_ends_the_episode():
    env, observation = start()
    assert "bell, dog, eagle, key" in observation
    assert env.step(r"\boxed{Is it alive?}")[0] == "is alive: yes. Turns left: 19."
    assert env.step(r"\boxed{can fly}")[0] == "can fly: no. Turns left: 18."
    assert env.step(r"\boxed{a dog}")[1:3] == (1.0, True)
    env, _ = start()
    assert env.step(r"\boxed{bell}")[1:3] == (0.0, True)


@pytest.mark.parametrize("action", ["", "is alive", r"\boxed{is it nice}", r"\boxed{cat}"])
def test_other_text_gets_a_hint_and_costs_a_turn(action):
    env, _ = start()
    observation, _, terminated, _, info = env.step(action)
    assert observation.startswith("That is neither")
    assert (terminated, info["invalid"], info["turns_left"]) == (False, True, 19)


def test_the_budget_terminates():
    env, _ = start(max_turns=1)
    assert env.step(r"\boxed{is alive}")[1:4] == (0.0, True, False)


def test_the_oracle_finds_every_thing_in_at_most_ten_turns():
    for thing in THINGS:
        env = TwentyQuestionsEnv(max_turns=10)
        env.reset(options={"task": {"things": list(THINGS), "thing": thing}})
        is_over, reward = False, 0.0
        while not is_over:
            _, reward, is_over, _, _ = env.step(env.oracle_action())
        assert reward == 1.0


def test_arguments_and_tasks_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_things"):
        TwentyQuestionsEnv(num_things=1)
    for task in (
        {},
        {"things": ["dog"], "thing": "dog"},
        {"things": ["dog", "dog"], "thing": "dog"},
        {"things": ["dog", "unicorn"], "thing": "dog"},
        {"things": ["dog", "cat"], "thing": "key"},
        {"things": ["dog", []], "thing": "dog"},
    ):
        with pytest.raises(TaskError):
            TwentyQuestionsEnv().reset(options={"task": task})
