"""GameAgent: a move alone is its action; what it is shown of the game."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents_fakes import ByteEngine, ByteTokenizer

from rllm_agents import AgentExecutionEngine, GameAgent, ScriptedEngine
from rllm_agents.agents.game import INVALID, SYSTEM_PROMPT
from rllm_agents.errors import UserError
from rllm_envs import GymEnv


def texts(agent: GameAgent) -> list[str]:
    return [message["content"] for message in agent.chat_completions]


def play(agent: GameAgent, num_turns: int) -> None:
    """Positions p0, p1, ... and moves m0, m1, ...; the newest position is not answered."""
    for turn in range(num_turns):
        agent.update_from_env(f"p{turn}", 0.0, False, {})
        agent.update_from_model(f"m{turn}")
    agent.update_from_env(f"p{num_turns}", 0.0, False, {})


def test_its_action_is_the_last_move_outside_of_thoughts() -> None:
    agent = GameAgent()
    agent.update_from_env({"question": "the lake"}, 0.0, False, {})
    said = "<think>\\boxed{up}</think>\\boxed{left}? No: \\boxed{down, right}, so."
    assert agent.update_from_model(said).action == "\\boxed{down, right}"
    assert texts(agent) == [SYSTEM_PROMPT, "the lake", said]
    assert agent.update_from_model("I go down").action == "I go down"


def test_an_invalid_move_is_called_so() -> None:
    agent = GameAgent(system_prompt=None)
    agent.update_from_env("board", 0.0, False, {"invalid": False})
    agent.update_from_model("nonsense")
    agent.update_from_env("board", 0.0, False, {"invalid": True})
    agent.update_from_model("\\boxed{up}")
    agent.update_from_env("lost", 0.0, True, {"invalid": True})
    assert texts(agent) == ["board", "nonsense", f"{INVALID}\nboard", "\\boxed{up}"]


def test_all_turns_are_remembered_or_the_newest() -> None:
    whole = GameAgent(system_prompt=None)
    play(whole, 3)
    assert texts(whole) == ["p0", "m0", "p1", "m1", "p2", "m2", "p3"]
    for history, shown in (
        (3, ["p0", "m0", "p1", "m1", "p2", "m2", "p3"]),
        (1, ["p0\n\nNow:\np2", "m2", "p3"]),
        (0, ["p0\n\nNow:\np3"]),
    ):
        agent = GameAgent(system_prompt=None, history=history)
        play(agent, 3)
        assert texts(agent) == shown
        roles = [message["role"] for message in agent.chat_completions]
        assert roles == ["user", "assistant"] * (len(shown) // 2) + ["user"]
    agent.update_from_model("m3")
    assert agent.trajectory.steps[-1].chat_completions[0]["content"] == "p0\n\nNow:\np3"
    assert texts(agent) == ["p0\n\nNow:\np3", "m3"]
    agent.reset()
    assert (texts(agent), agent.trajectory.steps) == ([], [])


@pytest.mark.parametrize(
    ("mask", "shown"),
    [
        (("\\boxed{1}", "\\boxed{2}"), "board\nLegal moves: \\boxed{1}, \\boxed{2}"),
        ((), "board"),
        (None, "board"),
        ("abc", "board"),
        ([1, 0], "board"),
    ],
)
def test_legal_moves_are_listed_where_they_are_known(mask: Any, shown: str) -> None:
    agent = GameAgent(system_prompt=None, show_legal_moves=True)
    agent.update_from_env("board", 0.0, False, {"action_mask": mask})
    assert texts(agent) == [shown]
    silent = GameAgent(system_prompt=None)
    silent.update_from_env("board", 0.0, False, {"action_mask": mask})
    assert texts(silent) == ["board"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"history": -1}, "history of GameAgent must be 0 or more"),
        ({"history": True}, "history of GameAgent must be 0 or more"),
        ({"show_legal_moves": "no"}, "show_legal_moves of GameAgent must be True or False"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        GameAgent(**arguments)


LAKE = {"rows": ["SF", "HG"]}


def test_it_crosses_the_lake() -> None:
    script = ["First I look.", "<think>G is below</think> \\boxed{right}", "\\boxed{down}"]
    with AgentExecutionEngine(
        agent_class=GameAgent,
        env_class=GymEnv,
        env_args={"env_id": "rllm/FrozenLake-v0"},
        rollout_engine=ScriptedEngine(script),
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([LAKE]))
    assert (episode.error, episode.reward, episode.is_correct) == (None, 1.0, True)
    assert [step.action for step in episode.steps] == [script[0], "\\boxed{right}", "\\boxed{down}"]
    assert episode.steps[1].chat_completions[-2]["content"].startswith(INVALID)


@pytest.mark.parametrize(("history", "num_records"), [(None, 1), (0, 3)])
def test_every_sampled_token_is_kept_whatever_is_remembered(
    history: int | None, num_records: int
) -> None:
    script = ["hm", "\\boxed{right}", "\\boxed{down}"]
    with AgentExecutionEngine(
        agent_class=GameAgent,
        agent_args={"history": history},
        env_class=GymEnv,
        env_args={"env_id": "rllm/FrozenLake-v0"},
        rollout_engine=ByteEngine(*script),
        tokenizer=ByteTokenizer(),
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([LAKE]))
    records = episode.trajectory.token_records
    assert (episode.reward, len(records)) == (1.0, num_records)
    spans = [(record, span) for record in records for span in record.turns]
    said = [bytes(r.token_ids[s.start : s.stop - 1]).decode() for r, s in spans]
    assert said == script


def test_it_plays_against_an_opponent() -> None:
    with AgentExecutionEngine(
        agent_class=GameAgent,
        agent_args={"show_legal_moves": True},
        env_class=GymEnv,
        env_args={"env_id": "rllm/TicTacToe-v0"},
        rollout_engine=ScriptedEngine(
            lambda messages: messages[-1]["content"].rpartition("Legal moves: ")[2].split(", ")[0]
        ),
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([{"seed": 3}]))
    assert episode.error is None
    assert episode.termination_reason == "env_done"
    assert not any(step.info["invalid"] for step in episode.steps)
