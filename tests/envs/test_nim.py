import itertools
from functools import cache

import gymnasium
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent.nim import Nim, NimEnv, best_take, is_won


@cache
def wins(piles: tuple[int, ...], misere: bool) -> bool:
    """Whether the player to move wins, by search through all games."""
    if not any(piles):
        return misere
    return any(
        not wins((*piles[:i], rest, *piles[i + 1 :]), misere)
        for i, size in enumerate(piles)
        for rest in range(size)
    )


@pytest.mark.parametrize("misere", [False, True])
def test_the_nim_sum_agrees_with_search(misere):
    for piles in itertools.product(range(6), repeat=3):
        if any(piles):
            assert is_won(list(piles), misere) == wins(piles, misere)


@pytest.mark.parametrize("misere", [False, True])
def test_from_a_won_position_the_expert_leaves_a_lost_one(misere):
    for piles in itertools.product(range(6), repeat=3):
        if any(piles):
            index, number = best_take(list(piles), misere)
            after = list(piles)
            after[index] -= number
            assert number >= 1
            assert after[index] >= 0
            if wins(piles, misere):
                assert not wins(tuple(after), misere)


@pytest.mark.parametrize("misere", [False, True])
@pytest.mark.parametrize("opponent", ["random", "expert"])
def test_who_begins_wins_each_drawn_position(misere, opponent):
    env = NimEnv(misere=misere, opponent=opponent, num_piles=4)
    for seed in range(40):
        env.reset(seed=seed)
        assert env.task["seat"] == "player_0"
        over = False
        while not over:
            _, reward, over, _, info = env.step(env.oracle_action())
        assert reward == 1.0
        assert info["success"]


def test_moves_are_read_with_commas_and_spaces():
    game = Nim()
    game.start(game.with_seed({"piles": [3, 4]}))
    game.play("player_0", r"\boxed{ 2,  3 }")
    assert game.view("player_1") == "Pile 1: 3\nPile 2: 1"
    assert game.legal_moves("player_1") == ("1 1", "1 2", "1 3", "2 1")
    assert game.legal_moves("player_0") == ()


def test_the_last_object_decides():
    for misere, scores in [(False, (1.0, -1.0)), (True, (-1.0, 1.0))]:
        game = Nim(misere=misere)
        game.start(game.with_seed({"piles": [2]}))
        game.play("player_0", r"\boxed{1 2}")
        assert (game.scores["player_0"], game.scores["player_1"]) == scores


def test_no_position_is_in_both_splits():
    drawn = {}
    for split in ("train", "test"):
        env = gymnasium.make("rllm/Nim-v0", split=split, seat="random").unwrapped
        drawn[split] = set()
        for seed in range(150):
            env.reset(seed=seed)
            drawn[split].add(tuple(env.task["piles"]))
    assert not drawn["train"] & drawn["test"]
    assert len(drawn["test"]) > 10


def test_arguments_and_tasks_are_checked():
    with pytest.raises(EnvArgumentError, match="misere"):
        Nim(misere=1)
    with pytest.raises(EnvArgumentError, match="num_piles"):
        Nim(num_piles=1)
    for piles in ([], [0], [21], [1] * 7, None):
        with pytest.raises(TaskError, match="piles"):
            NimEnv().reset(options={"task": {"piles": piles}})
