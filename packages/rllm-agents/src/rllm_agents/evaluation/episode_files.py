"""Episodes as JSON Lines, for people and scripts to read, and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.types import Episode, Step, TerminationReason, TokenRecord, Trajectory, TurnSpan

# What reading a line raises that something else wrote.
_NO_EPISODE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


def write_episodes(
    path: str | Path,
    episodes: Iterable[Episode],
    *,
    append: bool = False,
    with_tokens: bool = False,
) -> None:
    """Write episodes as JSON Lines, for people and scripts to read.

    Each line has ``id``, ``task``, ``reward`` (null when the episode failed), ``is_correct``,
    ``termination_reason``, ``error``, ``messages`` (the conversation as it ended) and ``steps``
    (``action``, ``reward``, ``info``, ``response_tokens``). Several trajectories stand under
    ``trajectories`` instead, each with ``name`` and ``reward``.

    Args:
        path: File to write.
        episodes: Finished ones.
        append: Keep what is in the file already.
        with_tokens: Add ``token_records`` to each trajectory: ``token_ids``, ``logprobs``, and the
            ``turns`` that were sampled (``start``, ``stop``, ``step_index``, ``weights_version``).
    """
    # What UTF-8 cannot hold (lone surrogates) is written as JSON escapes.
    with open(
        path, "a" if append else "w", encoding="utf-8", errors="backslashreplace", newline="\n"
    ) as file:
        for episode in episodes:
            file.write(episode_line(episode, with_tokens=with_tokens))


def episode_line(episode: Episode, *, with_tokens: bool = False) -> str:
    """Return the line that `write_episodes` writes of an episode, its end included."""
    return json.dumps(_episode_record(episode, with_tokens), ensure_ascii=False) + "\n"


def read_episodes(path: str | Path) -> list[Episode]:
    """Read what `write_episodes` wrote.

    Figures come out as they were; so do token records and the ids of each step, where they were
    written. Of the conversation the last step has all; what JSON could not say is text.

    Raises:
        UserError: The file cannot be read, or a line is no episode.
    """
    episodes: list[Episode] = []
    try:
        with open(path, encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                try:
                    episodes.append(_episode(json.loads(line)))
                except (
                    ValueError,
                    TypeError,
                    LookupError,
                    AttributeError,
                    RecursionError,
                ) as error:
                    raise UserError(
                        f"{path}, line {number} is no episode: {type(error).__name__}: {error}"
                    ) from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    return episodes


def jsonable(value: Any) -> Any:
    """Turn a value of users' code into strict JSON; what JSON cannot say becomes its text."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, str):
        return str(value)
    item = getattr(value, "item", None)  # NumPy's scalars
    if callable(item) and getattr(value, "ndim", None) == 0:
        return jsonable(item())
    return str(value)


def _episode_record(episode: Episode, with_tokens: bool) -> dict[str, Any]:
    record = {
        "id": episode.id,
        "task": jsonable(episode.task),
        "reward": jsonable(episode.reward),
        "is_correct": episode.is_correct,
        "termination_reason": jsonable(episode.termination_reason),
        "error": episode.error,
    }
    parts = [_trajectory_record(trajectory, with_tokens) for trajectory in episode.trajectories]
    if len(parts) == 1:
        return {**record, **parts[0]}
    heads = [{"name": t.name, "reward": jsonable(t.reward)} for t in episode.trajectories]
    numbered = zip(heads, parts, strict=True)
    return {**record, "trajectories": [{**head, **part} for head, part in numbered]}


def _trajectory_record(trajectory: Trajectory, with_tokens: bool) -> dict[str, Any]:
    last = trajectory.steps[-1].chat_completions if trajectory.steps else []
    record = {
        "messages": jsonable(last),
        "steps": [_step_record(step) for step in trajectory.steps],
    }
    if with_tokens:
        record["token_records"] = [asdict(tokens) for tokens in trajectory.token_records]
    return record


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "action": jsonable(step.action),
        "reward": jsonable(step.reward),
        "info": jsonable(step.info),
        "response_tokens": len(step.response_ids),
    }


def _episode(record: dict[str, Any]) -> Episode:
    """Make an episode of its record."""
    reason = record["termination_reason"]
    parts = record.get("trajectories", [{"name": "agent", **record}])
    episode = Episode(
        id=record["id"],
        task=record["task"],
        termination_reason=None if reason is None else TerminationReason(reason),
        is_correct=record["is_correct"],
        trajectories=[_trajectory(part, record["task"]) for part in parts],
        error=record["error"],
    )
    steps = [step for part in parts for step in part["steps"]]
    episode.metrics["response_tokens"] = float(sum(step["response_tokens"] for step in steps))
    if episode.reward != record["reward"]:
        raise ValueError(f"its reward is {record['reward']!r}, its parts' {episode.reward!r}")
    return episode


def _trajectory(record: dict[str, Any], task: Any) -> Trajectory:
    steps = [Step(**{key: s[key] for key in ("action", "reward", "info")}) for s in record["steps"]]
    if steps:
        steps[-1].chat_completions = record["messages"]
    records = tuple(_token_record(tokens) for tokens in record.get("token_records", ()))
    for tokens in records:
        for turn in tokens.turns:
            step = steps[turn.step_index]
            step.response_ids = list(tokens.token_ids[turn.start : turn.stop])
            step.logprobs = list(tokens.logprobs[turn.start : turn.stop])
    return Trajectory(
        name=record["name"],
        task=task,
        steps=steps,
        reward=record["reward"],
        token_records=records,
    )


def _token_record(record: dict[str, Any]) -> TokenRecord:
    return TokenRecord(
        token_ids=tuple(record["token_ids"]),
        logprobs=tuple(record["logprobs"]),
        turns=tuple(TurnSpan(**turn) for turn in record["turns"]),
    )
