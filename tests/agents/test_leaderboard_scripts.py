"""Policies without a model: random actions and heuristics, on what the environments show."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import pytest

from rllm_agents.errors import EngineError
from rllm_agents.leaderboard.heuristics import HEURISTICS, Scene
from rllm_agents.leaderboard.scripts import HeuristicScript, RandomScript, SeedEngine


def scene(*observations: str) -> Scene:
    return Scene(random.Random(0), list(observations))


@pytest.mark.parametrize(
    ("env", "observation", "action"),
    [
        ("Arithmetic", "What is 412 - 556? Give", r"\boxed{-144}"),
        ("Arithmetic", "What is 12 * -3? Give", r"\boxed{-36}"),
        ("Calculator", "What is 74 * 27? You may", "<calc>74 * 27</calc>"),
        ("NumberSequence", "What number comes next: 3, 5, 8, 12?", r"\boxed{17}"),
        ("NumberSequence", "What number comes next: 4, -8, 16, -32?", r"\boxed{64}"),
        ("NumberSequence", "What number comes next: 1, 5, 2, 9?", r"\boxed{16}"),
        ("MCQ", "Which?\nA) rose\nB) willow\nC) cedars\nGive", r"\boxed{B}"),
        ("Sorting", "Sort these numbers.\n30, -4, 100", r"\boxed{-4, 30, 100}"),
        ("Sorting", "Sort these words by length.\nkiwi, apple, fig", r"\boxed{apple, fig, kiwi}"),
        ("TicTacToe", "with the mark X;\n\nX X 3\nO O 6\n7 8 9", r"\boxed{3}"),
        ("TicTacToe", "with the mark O;\n\nX X 3\nO 5 6\n7 8 9", r"\boxed{3}"),
        ("TicTacToe", "with the mark O;\n\nX 2 3\n4 5 6\n7 8 9", r"\boxed{5}"),
        ("Nim", "Pile 1: 3\nPile 2: 0\nPile 3: 1", r"\boxed{1 2}"),
        ("Nim", "Pile 1: 0\nPile 2: 4\nPile 3: 0", r"\boxed{2 4}"),
        ("Arithmetic", "Tell me a story.", None),
        ("Nim", "Pile 1: 0", None),
    ],
)
def test_a_heuristic_reads_what_is_shown(env: str, observation: str, action: str | None) -> None:
    assert HEURISTICS[f"rllm/{env}-v0"](scene(observation)) == action


def test_heuristics_of_several_turns_go_by_what_was_answered() -> None:
    halves = HEURISTICS["rllm/GuessNumber-v0"]
    rules = "a whole number from 1 to 100."
    assert halves(scene(rules)) == r"\boxed{50}"
    lower = "The number is lower than 50. Guesses left: 9."
    higher = "The number is higher than 25. Guesses left: 8."
    assert halves(scene(rules, lower)) == r"\boxed{25}"
    assert halves(scene(rules, lower, higher)) == r"\boxed{37}"
    arms = HEURISTICS["rllm/Bandit-v0"]
    rules = "There are 3 machines: red, blue, grey. Each"
    assert arms(scene(rules)) == r"\boxed{red}"
    # red 1/2, blue and grey still at 1
    assert arms(scene(rules, "red: lost. Plays left: 19.")) == r"\boxed{blue}"
    # red 3/3, blue 1/2, grey 1: the first of the best
    lines = ["red: won.", "red: won.", "blue: lost."]
    assert arms(scene(rules, *lines)) == r"\boxed{red}"
    assert HEURISTICS["rllm/Calculator-v0"](scene("What is 2 * 3?", "Result: 6")) == r"\boxed{6}"


def play(env_id: str, script: Any, seed: int) -> float:
    env = gymnasium.make(env_id)
    observation, info = env.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        observation, reward, terminated, truncated, info = env.step(script(observation, info))
        total += float(reward)
        is_over = terminated or truncated
    return total


@pytest.mark.parametrize("env_id", sorted(HEURISTICS))
def test_each_heuristic_beats_random_play(env_id: str) -> None:
    seeds = range(40)
    scripted = sum(play(env_id, HeuristicScript(env_id, seed), seed) for seed in seeds)
    at_random = sum(play(env_id, RandomScript(seed), seed) for seed in seeds)
    assert scripted > at_random


def test_random_play_takes_legal_actions_and_guesses_elsewhere() -> None:
    legal = ("x", "y", "z")
    taken = {RandomScript(seed)("anything", {"action_mask": legal}) for seed in range(50)}
    assert taken == set(legal)
    guesses = {RandomScript(seed)({"question": "red, blue."}, {}) for seed in range(200)}
    assert {r"\boxed{red}", r"\boxed{blue}"} < guesses
    assert all(g in (r"\boxed{red}", r"\boxed{blue}") or 0 <= int(g[7:-1]) <= 99 for g in guesses)
    one, other = RandomScript(5), RandomScript(5)
    assert [one("a b c", {}) for _ in range(9)] == [other("a b c", {}) for _ in range(9)]


def test_a_heuristic_without_an_idea_plays_at_random() -> None:
    script = HeuristicScript("rllm/NQueens-v0", 3)
    assert script("four queens", {}) == RandomScript(3)("four queens", {})


async def _load(engine: SeedEngine) -> None:
    await engine.load_weights({}, version=1)


def test_scripts_have_no_weights() -> None:
    import asyncio

    with pytest.raises(EngineError, match="no weights"):
        asyncio.run(_load(SeedEngine()))
