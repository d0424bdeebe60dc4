"""Transcripts for people: the recorded actions of rows, played again in their environments."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rllm_agents.agents.chat import observation_text
from rllm_agents.bench_site.boards import Board
from rllm_agents.errors import UserError
from rllm_agents.leaderboard.play import entry_requests, match_setting, play_match
from rllm_agents.leaderboard.records import EpisodeRecord
from rllm_agents.leaderboard.suites import SuiteEntry
from rllm_agents.limits import RolloutLimits
from rllm_agents.rollout_requests import RolloutRequest
from rllm_envs import GymEnv, RllmEnvsError

MAX_TURNS = 30
"""Shown of an episode."""
MAX_CHARACTERS = 4_000
"""Shown of a message."""
MAX_ENTRY_CHARACTERS = 150_000
"""Shown of all episodes of an entry together."""

_CLOSE = 1e-6


def entry_transcripts(board: Board, entry: SuiteEntry, *, tasks: int) -> dict[str, Any]:
    """Play the first tasks of an entry again with the recorded actions of each row.

    Args:
        board: The rows.
        entry: Of the board's suite.
        tasks: How many of each seed; of a match, games against each opponent.

    Returns:
        ``tasks``, each with ``seed``, ``task`` (its number), ``id`` and, under ``played``, an
        episode of each policy: its messages as ``[role, text]``, reward, success, end, how many
        messages are not shown, and a ``problem`` where the environment earns otherwise than the row
        says. ``problem`` beside them where the tasks themselves are not there.
    """
    left = MAX_ENTRY_CHARACTERS
    found = []
    rows = [played for played in board.played if played.records is not None]
    for seed in sorted({played.row["seed"] for played in rows}):
        try:
            requests, env_args, places = _first_requests(entry, seed, tasks)
        except (UserError, RllmEnvsError) as error:
            return {"tasks": [], "problem": str(error)[:500]}
        mine = [played for played in rows if played.row["seed"] == seed]
        for request, place in zip(requests, places, strict=True):
            shown = []
            for played in mine:
                assert played.records is not None
                record = played.records[entry.name][place]
                episode = _replayed(entry, request, env_args, record)
                left = _shorten(episode, left)
                shown.append({"policy": played.row["name"], **episode})
            task = place // entry.attempts
            found.append({"seed": seed, "task": task, "id": request.id, "played": shown})
    return {"tasks": found, "problem": ""}


def _first_requests(
    entry: SuiteEntry, seed: int, tasks: int
) -> tuple[list[RolloutRequest], dict[str, Any], list[int]]:
    """Return the first episodes of an entry, and their places among all of them."""
    if entry.match:
        requests, env_args = entry_requests(entry, seed)
        each = len(requests) // len(entry.opponents)
        places = [first + k for first in range(0, len(requests), each) for k in range(tasks)]
    elif entry.dataset:  # the seed draws all of them at once
        requests, env_args = entry_requests(entry, seed)
        places = [task * entry.attempts for task in range(min(tasks, entry.num_tasks))]
    else:
        count = min(tasks, entry.num_tasks)
        requests, env_args = entry_requests(replace(entry, num_tasks=count), seed)
        places = [task * entry.attempts for task in range(count)]
    return [requests[place] for place in places], env_args, places


def _replayed(
    entry: SuiteEntry, request: RolloutRequest, env_args: dict[str, Any], record: EpisodeRecord
) -> dict[str, Any]:
    """Play one episode again; say what the row says of it, and where the environment differs."""
    if entry.match:
        messages, reward, problem = asyncio.run(_replay_match(entry, request, record))
    else:
        messages, reward, problem = _replay_episode({**request.task, **env_args}, record)
    if not problem and abs(reward - record.reward) > _CLOSE:
        problem = (
            f"its actions earn {reward:g} in the environment as it is here; the row says "
            f"{record.reward:g}"
        )
    return {
        "reward": record.reward,
        "success": record.success,
        "end": record.end,
        "turns": record.turns,
        "tokens": record.tokens,
        "messages": messages,
        "problem": problem,
    }


def _replay_episode(
    task: dict[str, Any], record: EpisodeRecord
) -> tuple[list[list[str]], float, str]:
    env = GymEnv.from_dict(task)
    messages: list[list[str]] = []
    reward, done, problem = 0.0, False, ""
    try:
        observation, _ = env.reset()
        for action in record.actions:
            if done:
                problem = "it is over before the last recorded action"
                break
            _add_turn(messages, observation, action)
            observation, earned, done, _ = env.step(action)
            reward += earned
        _add(messages, "user", observation)
    except RllmEnvsError as error:
        problem = f"it cannot be played again: {error}"[:500]
    finally:
        env.close()
    return messages, reward, problem


async def _replay_match(
    entry: SuiteEntry, request: RolloutRequest, record: EpisodeRecord
) -> tuple[list[list[str]], float, str]:
    messages: list[list[str]] = []
    left = iter(record.actions)

    def act(observation: Any, info: dict[str, Any]) -> str:
        action = next(left, "")
        _add_turn(messages, observation, action)
        return action

    setting = match_setting(entry, RolloutLimits(max_steps=entry.max_turns))
    try:
        episode, again = await play_match(entry, request.task, act, setting)
    finally:
        setting.threads.close()
    if again is None:
        return messages, 0.0, f"it cannot be played again: {episode.error}"[:500]
    return messages, again.reward, ""


def _add_turn(messages: list[list[str]], observation: Any, action: str) -> None:
    _add(messages, "user", observation)
    messages.append(["assistant", action])


def _add(messages: list[list[str]], role: str, observation: Any) -> None:
    text = observation_text(observation)
    if text:
        messages.append([role, text])


def _shorten(episode: dict[str, Any], left: int) -> int:
    """Cut an episode's messages to what is shown; return the characters that are left."""
    messages: Sequence[list[str]] = episode["messages"]
    kept = []
    for role, text in messages[: 2 * MAX_TURNS]:
        if left <= 0:
            break
        shown = text[: min(MAX_CHARACTERS, left)]
        left -= len(shown)
        rest = len(text) - len(shown)
        kept.append([role, shown if not rest else f"{shown}\n[{rest:,} more characters]"])
    episode["messages"] = kept
    episode["messages_left_out"] = len(messages) - len(kept)
    return left
