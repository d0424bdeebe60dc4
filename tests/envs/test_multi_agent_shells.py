"""The PettingZoo classes over a game that is written here, and what they refuse."""

import json
import pickle

import numpy as np
import pytest
from pettingzoo.test import api_test

from rllm_envs import EnvArgumentError, EpisodeError, TaskError
from rllm_envs.multi_agent import TextAECEnv, TextObs, TextParallelEnv, TurnGame, make_aec
from rllm_envs.multi_agent.game import draw_task, normalised, words_around_box
from rllm_envs.multi_agent.tictactoe import TicTacToe


class Countdown(TurnGame):
    """Three agents say numbers; who says 0 wins."""

    agents = ("sayer_0", "sayer_1", "sayer_2")
    max_moves = 10

    def generate_task(self, rng):
        return {"top": int(rng.integers(3, 9))}

    def validate_task(self, task):
        return {"top": task["top"]}

    def set_up(self, task):
        self.left = task["top"]
        self.current = self.agents[0]

    def rules(self, agent):
        return "Say how many to count down."

    def view(self, agent):
        return f"At {self.left}."

    def legal_moves(self, agent):
        if agent != self.agent_to_move:
            return ()
        return tuple(str(n) for n in range(1, min(2, self.left) + 1))

    def make_move(self, agent, move):
        self.left -= int(move)
        self.current = self.agents[(self.agents.index(agent) + 1) % 3]
        if self.left == 0:
            self.end({name: 1.0 if name == agent else -0.5 for name in self.agents})

    def expert_move(self, agent):
        return self.legal_moves(agent)[-1]


@pytest.mark.filterwarnings("ignore")
def test_a_game_of_ones_own_is_an_environment():
    api_test(TextAECEnv(Countdown()), num_cycles=100)


def test_illegal_texts_keep_the_turn_and_then_forfeit():
    env = TextAECEnv(Countdown(), max_retries=1)
    env.reset(options={"task": {"top": 5}})
    env.step(r"\boxed{2}")
    env.step("hm")
    assert env.agent_selection == "sayer_1"
    observation, _, _, _, info = env.last()
    assert observation.startswith("Say how many to count down.\n\nWrite your move in \\boxed{}")
    assert info == {"invalid": True, "turn": 1, "action_mask": (r"\boxed{1}", r"\boxed{2}")}
    assert env.infos["sayer_0"]["action_mask"] == ()
    assert "Write your move" not in env.observe("sayer_0")
    env.step(r"\boxed{3}")
    assert env.rewards == {"sayer_0": 1.0, "sayer_1": -1.0, "sayer_2": 1.0}
    assert all(env.terminations.values())
    for agent in ("sayer_0", "sayer_1", "sayer_2"):
        assert env.agent_selection == agent
        assert env.last()[1] == (-1.0 if agent == "sayer_1" else 1.0)
        env.step(None)
    assert env.agents == []
    with pytest.raises(EpisodeError, match="reset"):
        env.step(None)


def test_an_agent_that_is_done_may_only_pass():
    env = TextAECEnv(Countdown(), max_retries=0)
    env.reset(seed=0)
    env.step("")
    with pytest.raises(ValueError, match="None"):
        env.step("x")
    # A reset in the middle of the last steps starts afresh.
    env.step(None)
    env.reset(options={"task": {"top": 3}})
    assert env.agents == ["sayer_0", "sayer_1", "sayer_2"]
    env.step(r"\boxed{2}")
    env.step(r"\boxed{1}")
    order = [agent for agent in env.agent_iter() if env.step(None) is None]
    assert order == ["sayer_0", "sayer_1", "sayer_2"]


def test_observations_are_texts():
    env = TextAECEnv(Countdown())
    env.reset(seed=0)
    observation, *_ = env.last()
    assert isinstance(observation, str)
    assert observation.dtype == env.observation_space("sayer_0").dtype
    assert json.loads(json.dumps(observation)) == observation
    assert pickle.loads(pickle.dumps(observation)) == observation
    assert type(TextObs("a") + "b") is str


def test_a_seed_fixes_this_game_and_those_after_it():
    tasks = []
    for _ in range(2):
        env = make_aec("rllm/LeducPoker-v0", num_hands=5)
        env.reset(seed=9)
        first = env.task
        env.reset()
        tasks.append((first, env.task))
    assert tasks[0] == tasks[1]
    assert tasks[0][0] != tasks[0][1]


def test_what_the_classes_refuse():
    env = make_aec("rllm/TicTacToe-v0")
    with pytest.raises(EpisodeError, match="reset"):
        _ = env.task
    with pytest.raises(TaskError, match="dict"):
        env.reset(options={"task": [1]})
    with pytest.raises(TaskError, match="JSON"):
        env.reset(options={"task": {"opening": np.zeros(1)}})
    with pytest.raises(EnvArgumentError, match="split"):
        make_aec("rllm/TicTacToe-v0", split="dev")
    with pytest.raises(EnvArgumentError, match="render_mode"):
        make_aec("rllm/TicTacToe-v0", render_mode="rgb_array")
    with pytest.raises(EnvArgumentError, match="made already"):
        TextAECEnv(TicTacToe(), opening_plies=1)
    with pytest.raises(EnvArgumentError, match="SimultaneousGame"):
        TextParallelEnv("rllm_envs.multi_agent.tictactoe:TicTacToe")


def test_the_course_of_a_game_is_rendered():
    env = TextAECEnv(Countdown(), render_mode="ansi")
    env.reset(options={"task": {"top": 3}})
    env.step(r"\boxed{2}")
    env.step(r"\boxed{1}")
    assert env.render() == (
        "[sayer_0]\nAt 3.\nIt is your turn.\nsayer_0> \\boxed{2}\n"
        "[sayer_1]\nAt 1.\nIt is your turn.\nsayer_1> \\boxed{1}\n"
        "[sayer_1]\nAt 0.\nYou win.\n"
        "[end: sayer_0 -0.5, sayer_1 1, sayer_2 -0.5]"
    )


def test_an_empty_split_is_refused():
    class OneTask(Countdown):
        def split_basis(self, task):
            return {}

    rng = np.random.default_rng(0)
    empty = 0
    for split in ("train", "test"):
        try:
            draw_task(OneTask(), rng, split)
        except EnvArgumentError as error:
            assert split in str(error)
            empty += 1
    assert empty == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"I want this. \boxed{1 2} ok?", "I want this. ok?"),
        ("<think>x</think>hi\n\\boxed {3}", "hi"),
        (r"\boxed{a} and \boxed{b}", r"\boxed{a} and"),
        ("no box", "no box"),
        ("", ""),
    ],
)
def test_words_around_the_box(text, words):
    assert words_around_box(text, 99) == words
    assert words_around_box(text, 2) == words[:2]


def test_moves_are_compared_without_case_commas_and_spaces():
    assert normalised("  2,3 ") == normalised("2   3") == "2 3"
    assert normalised("CALL") == "call"
