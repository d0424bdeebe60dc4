"""Verification of a row: its recorded actions are played again, from its seed."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.leaderboard.figures import entry_figures, normalise, total_figures
from rllm_agents.leaderboard.play import entry_requests, match_setting, play_match
from rllm_agents.leaderboard.records import EpisodeRecord, unpack_records
from rllm_agents.leaderboard.rows import REFERENCES, actions_path, read_row, reference_scores
from rllm_agents.leaderboard.suites import Suite, SuiteEntry, load_suite
from rllm_agents.limits import RolloutLimits
from rllm_agents.types import TerminationReason
from rllm_envs import GymEnv, RllmEnvsError

_CLOSE = 1e-6
_COUNTED = ("episodes", "tokens", "turns", "ends")


def verify_row(path: Path, suite: Suite | None = None) -> list[str]:
    """Play the recorded actions of a row again and compare all that comes out.

    The tasks are drawn anew from suite and seed, and the opponents of matches move by themselves,
    so neither can be chosen by who submits. What is shown is that these actions earn this score;
    not that the policy it is credited to took them, nor how many tokens or seconds that took.

    Args:
        path: The row; its actions lie beside it.
        suite: What it claims to have played; by default the suite of its name.

    Returns:
        What is wrong, one sentence each; empty where the row holds.

    Raises:
        UserError: There is no row, or no such suite.
    """
    row = read_row(path)
    suite = suite or load_suite(row["suite"])
    if row["suite_digest"] != suite.digest:
        return [
            f"played version {row['suite_version']} of {row['suite']} with other entries or "
            f"budgets than version {suite.version} here"
        ]
    names = [entry["name"] for entry in row["entries"]]
    if names != [entry.name for entry in suite.entries]:
        return ["its entries are not those of the suite, in this order"]
    try:
        records, digest = unpack_records(actions_path(path))
    except UserError as error:
        return [str(error)]
    found = []
    if digest != row["actions_sha256"]:
        found.append("the recorded actions are not those that the row was made of (SHA-256)")
    if set(records) != set(names):
        return [*found, "the recorded actions are of other entries"]
    for entry in suite.entries:
        found += asyncio.run(_replay_entry(entry, row["seed"], records[entry.name]))
    # Figures are compared where the episodes hold: the first cause is named, not what follows.
    return found or _wrong_figures(row, suite, records, path.parent.parent)


async def _replay_entry(
    entry: SuiteEntry, seed: int, records: Sequence[EpisodeRecord]
) -> list[str]:
    requests, env_args = entry_requests(entry, seed)
    if len(records) != len(requests):
        return [f"{entry.name}: {len(records)} episodes are recorded, of {len(requests)}"]
    setting = match_setting(entry, RolloutLimits(max_steps=entry.max_turns))
    found = []
    try:
        for request, record in zip(requests, records, strict=True):
            if entry.match:
                wrong = await _replay_match(entry, request.task, record, setting)
            else:
                wrong = _replay_episode({**request.task, **env_args}, record, entry)
            if wrong:
                found.append(f"{entry.name}, episode {request.id}: {wrong}")
    finally:
        setting.threads.close()
    return found


def _replay_episode(task: dict[str, Any], record: EpisodeRecord, entry: SuiteEntry) -> str:
    """Return what the environment says otherwise than the record; "" where they agree."""
    if len(record.actions) > entry.max_turns:
        return f"{len(record.actions)} actions; at most {entry.max_turns} are allowed"
    env = GymEnv.from_dict(task)
    reward, done, info = 0.0, False, {}
    try:
        env.reset()
        for number, action in enumerate(record.actions, start=1):
            if done:
                return f"it is over after {number - 1} actions; {len(record.actions)} are recorded"
            _, earned, done, info = env.step(action)
            reward += earned
    except RllmEnvsError as error:
        return f"it cannot be played again: {error}"
    finally:
        env.close()
    if done != (record.end == TerminationReason.ENV_DONE):
        return f"the record says it ended by {record.end}; the environment says otherwise"
    success = info.get("success")
    is_solved = bool(success) if success is not None else reward > 0.0
    return _differences(record, reward, is_solved)


async def _replay_match(
    entry: SuiteEntry, task: Mapping[str, Any], record: EpisodeRecord, setting: Any
) -> str:
    left = iter(record.actions)
    # A player without a token left passes the empty text from then on, which is not recorded.
    episode, again = await play_match(entry, task, lambda view, info: next(left, ""), setting)
    if again is None:
        return f"it cannot be played again with the recorded actions: {episode.error}"
    if len(again.actions) < len(record.actions):
        return f"it is over after {len(again.actions)} actions; {len(record.actions)} are recorded"
    if again.end != record.end:
        return f"the record says it ended by {record.end}, played again by {again.end}"
    return _differences(record, again.reward, again.success)


def _differences(record: EpisodeRecord, reward: float, success: bool) -> str:
    if not math.isclose(record.reward, reward, abs_tol=1e-9):
        return f"the record says reward {record.reward:g}; its actions earn {reward:g}"
    if record.success != success:
        return f"the record says success {record.success}; its actions give {success}"
    return ""


def _wrong_figures(
    row: Mapping[str, Any],
    suite: Suite,
    records: Mapping[str, Sequence[EpisodeRecord]],
    results: Path,
) -> list[str]:
    """Compare the row's figures with those of its episodes, and its references with their rows."""
    found = []
    references = reference_scores(results, suite)
    entries = []
    for entry, claimed in zip(suite.entries, row["entries"], strict=True):
        given = claimed.get("references") or [None, None]
        figures = normalise(entry_figures(entry, records[entry.name]), *given)
        entries.append(figures)
        for name, reference in zip(REFERENCES, given, strict=True):
            known = references.get(name, {}).get(entry.name)
            if None not in (known, reference) and not _agree(known, reference):
                found.append(f"{entry.name}: {name} has {known:g} in its row, not {reference:g}")
        keys = ("score", "solved", "normalised", *_COUNTED, *(["results"] if entry.match else []))
        found += _disagreements(entry.name, claimed, figures, keys)
    total = total_figures(entries)
    return found + _disagreements("total", row["total"], total, tuple(total))


def _disagreements(
    place: str, claimed: Mapping[str, Any], figures: Mapping[str, Any], keys: Sequence[str]
) -> list[str]:
    return [
        f"{place}: {key} is {figures[key]}; the row says {claimed.get(key)}"
        for key in keys
        if not _agree(figures[key], claimed.get(key))
    ]


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_agree, one, other))
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, abs_tol=_CLOSE)
    return one == other
