import random

import gymnasium
import numpy as np
import pytest

from rllm_envs import EnvArgumentError, MissingDependencyError, TaskError, check_text_env
from rllm_envs.adapters.text_arena import TextArenaEnv, listed_moves

try:
    import textarena  # noqa: F401
except ImportError:
    HAS_LIBRARY = False
else:
    HAS_LIBRARY = True

with_library = pytest.mark.skipif(not HAS_LIBRARY, reason="needs textarena")


def in_order(text):
    """Takes the first move that is listed."""
    return listed_moves(text)[0]


@pytest.mark.skipif(HAS_LIBRARY, reason="textarena is installed")
def test_without_the_library_the_error_names_the_extra():
    with pytest.raises(MissingDependencyError, match=r"rllm-envs\[textarena\]"):
        TextArenaEnv()


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("[GAME] Go.\nAvailable Moves: '[0]', '[4]'\n", ["[0]", "[4]"]),
        ("Valid moves: [a]\n[Player 1] [a]\nValid moves: [b], [c], [b]", ["[b]", "[c]"]),
        ("[GAME] Say [heads] or [tails].", ["[heads]", "[tails]"]),
        ("[Player 0] nothing to do", []),
    ],
)
def test_the_moves_are_those_that_the_game_listed_last(text, moves):
    assert listed_moves(text) == moves


@with_library
def test_the_default_game_keeps_the_contract():
    check_text_env(gymnasium.make("rllm/TextArena-v0"))


@with_library
def test_a_number_is_guessed_by_halving():
    env = TextArenaEnv()
    for seed in range(20):
        observation, _ = env.reset(seed=seed)
        assert "between 1 and 20" in observation
        assert "\\boxed{5} is sent to the game as [5]" in observation
        reward, turns = 0.0, 0
        while not reward:
            _, reward, terminated, _, info = env.step(env.oracle_action())
            turns += 1
        assert (reward, terminated, info["success"]) == (1.0, True, True)
        # 20 numbers are halved to one in at most five guesses.
        assert turns <= 5


@with_library
def test_a_move_that_is_not_understood_is_told_and_the_second_ends_the_game():
    env = TextArenaEnv()
    env.reset(seed=0)
    observation, _, terminated, _, info = env.step("I think of a number")
    assert "invalid" in observation.lower()
    assert (terminated, info["invalid"]) == (False, True)
    _, reward, terminated, _, info = env.step("")
    assert (terminated, info["success"], info["invalid"]) == (True, False, True)
    assert reward < 1.0


@with_library
def test_two_play_and_the_opponent_moves_first_in_the_second_seat():
    env = TextArenaEnv(game="TicTacToe-v0", seat=1, opponent=in_order)
    observation, _ = env.reset(seed=0)
    assert "[Player 0] [0]" in observation
    for move in ("4", "2"):
        observation, _, terminated, _, _ = env.step(f"\\boxed{{{move}}}")
        assert not terminated
    # The opponent has 0, 1 and 3; 2, 4 and 6 is a line.
    _, reward, terminated, _, info = env.step(r"\boxed{6}")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


@with_library
def test_a_loss_costs_one():
    env = TextArenaEnv(game="TicTacToe-v0", seat=0, opponent=in_order)
    env.reset(seed=0)
    env.step(r"\boxed{8}")
    env.step(r"\boxed{4}")
    _, reward, terminated, _, info = env.step(r"\boxed{7}")
    assert (reward, terminated, info["success"]) == (-1.0, True, False)


@with_library
@pytest.mark.parametrize("game", ["TicTacToe-v0", "ConnectFour-v0", "KuhnPoker-v0", "Nim-v0",
                                  "IteratedPrisonersDilemma-v0", "Othello-v0-tiny"])  # fmt: skip
def test_games_for_two_are_played_to_their_end_against_random_moves(game):
    env = TextArenaEnv(game=game)
    rng = random.Random(0)
    for seed in range(5):
        heard, _ = env.reset(seed=seed)
        is_over = False
        while not is_over:
            moves = listed_moves(heard) or ["[pass]"]
            observation, reward, terminated, truncated, info = env.step(rng.choice(moves))
            heard += "\n" + observation
            is_over = terminated or truncated
        assert (truncated, info["error"]) == (False, "")
        assert -1.0 <= reward <= 1.0


@with_library
@pytest.mark.parametrize("game", ["2048-v0", "TicTacToe-v0", "KuhnPoker-v0"])
def test_games_neither_disturb_each_other_nor_the_global_generators(game):
    def play(env, seed, between=lambda: None):
        texts = [env.reset(seed=seed)[0]]
        for _ in range(6):
            between()
            move = listed_moves("\n".join(texts)) or ["[up]"]
            observation, _, terminated, truncated, _ = env.step(move[0])
            texts.append(observation)
            if terminated or truncated:
                break
        return texts

    other = TextArenaEnv(game="2048-v0")
    other.reset(seed=99)

    def disturb():
        random.random()
        if other.step("[left]")[2]:
            other.reset()

    for seed in range(4):
        alone = play(TextArenaEnv(game=game), seed)
        assert play(TextArenaEnv(game=game), seed, disturb) == alone
    before, before_numpy = random.getstate(), np.random.get_state()[1].tolist()
    play(TextArenaEnv(game=game), 5)
    assert random.getstate() == before
    assert np.random.get_state()[1].tolist() == before_numpy


@with_library
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"game": "Wordle-v0"}, "downloads a word list"),
        ({"game": "TwentyQuestions-v0"}, "needs a key"),
        ({"game": "ThreePlayerTicTacToe-v0"}, "cannot be played by one or two"),
        ({"game": "PublicGoodsGame-v0"}, "three players or more"),
        ({"game": "GuesTheNumber-v0"}, "near: GuessTheNumber-v0"),
        ({"game": 7}, "game must be a name"),
        ({"game": "TicTacToe-v0", "seat": 2}, "seat"),
        ({"game": "TicTacToe-v0", "opponent": "minimax"}, "opponent"),
        ({"game": "ColonelBlotto-v0"}, "random opponent finds no moves"),
        ({"seat": 1}, "one player"),
        ({"opponent": in_order}, "one player"),
    ],
)
def test_what_cannot_be_played_is_refused_with_the_reason(arguments, message):
    with pytest.raises(EnvArgumentError, match=message):
        TextArenaEnv(**arguments)


@with_library
def test_a_game_that_fails_truncates_the_episode():
    env = TextArenaEnv(game="TicTacToe-v0", seat=0, opponent=lambda text: 1 / 0)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(r"\boxed{4}")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert "ZeroDivisionError" in info["error"]


@with_library
@pytest.mark.parametrize(
    "task",
    [{}, {"seed": -1}, {"seed": True}, {"seed": 1, "seat": 2}, {"seed": 1, "game": "Nim-v0"}],
)
def test_a_given_task_is_checked(task):
    with pytest.raises(TaskError):
        TextArenaEnv(game="TicTacToe-v0").reset(options={"task": task})


@with_library
def test_an_oracle_is_known_for_one_game_only():
    env = TextArenaEnv(game="TicTacToe-v0")
    env.reset(seed=0)
    with pytest.raises(EnvArgumentError, match="no oracle"):
        env.oracle_action()
