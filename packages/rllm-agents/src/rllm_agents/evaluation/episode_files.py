"""Episodes as JSON Lines, for people and scripts to read, and read back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.renderer import ChatTokenizer
from rllm_agents.types import (
    Episode,
    Step,
    TerminationReason,
    TokenRecord,
    Trajectory,
    TurnSpan,
    VersionSpan,
)

# What reading a line raises that something else wrote.
_NO_EPISODE = (ValueError, TypeError, LookupError, AttributeError, RecursionError)

_MAX_BYTES_OF_CHARACTER = 4


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
            ``turns`` that were sampled (``start``, ``stop``, ``step_index``, ``weights_version``,
            and ``version_spans`` where weights were exchanged meanwhile).
    """
    records = (episode_record(episode, with_tokens=with_tokens) for episode in episodes)
    write_records(path, records, append=append)


def write_records(
    path: str | Path, records: Iterable[Mapping[str, Any]], *, append: bool = False
) -> None:
    """Write what `episode_record` returned, one JSON object a line.

    Args:
        path: File to write.
        records: May hold further JSON values of the caller's.
        append: Keep what is in the file already.
    """
    # What UTF-8 cannot hold (lone surrogates) is written as JSON escapes.
    with open(
        path, "a" if append else "w", encoding="utf-8", errors="backslashreplace", newline="\n"
    ) as file:
        for record in records:
            file.write(record_line(record))


def record_line(record: Mapping[str, Any]) -> str:
    """Return the line that `write_records` writes of a record, its end included."""
    return json.dumps(record, ensure_ascii=False) + "\n"


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
                except _NO_EPISODE as error:
                    raise UserError(
                        f"{path}, line {number} is no episode: {type(error).__name__}: {error}"
                    ) from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    return episodes


def episode_record(
    episode: Episode,
    *,
    with_tokens: bool = False,
    tokenizer: ChatTokenizer | None = None,
    step: int | None = None,
) -> dict[str, Any]:
    """Return one episode as JSON values, in the form that `write_episodes` describes.

    Args:
        episode: A finished one.
        with_tokens: Add ``token_records`` to each trajectory.
        tokenizer: Adds ``texts`` to each token record, one per id; see `token_texts`.
        step: Training step whose weights played it; stands in the record where given.
    """
    record = {
        **({} if step is None else {"step": step}),
        "id": episode.id,
        "task": jsonable(episode.task),
        "reward": jsonable(episode.reward),
        "is_correct": episode.is_correct,
        "termination_reason": jsonable(episode.termination_reason),
        "error": episode.error,
    }
    parts = [_trajectory_record(t, with_tokens, tokenizer) for t in episode.trajectories]
    if len(parts) == 1:
        return {**record, **parts[0]}
    heads = [{"name": t.name, "reward": jsonable(t.reward)} for t in episode.trajectories]
    numbered = zip(heads, parts, strict=True)
    return {**record, "trajectories": [{**head, **part} for head, part in numbered]}


def token_texts(token_ids: Sequence[int], tokenizer: ChatTokenizer) -> list[str]:
    """Return the text of each id, control tokens included; joined they are the whole text.

    A character whose bytes lie in several ids stands at the last of them, "" at the others.
    """
    texts: list[str] = []
    held: list[int] = []
    for token_id in token_ids:
        held.append(token_id)
        text = tokenizer.decode(held, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        # UTF-8 takes at most four bytes; what is no character after four ids stays broken.
        if text.endswith("\ufffd") and len(held) < _MAX_BYTES_OF_CHARACTER:
            texts.append("")
            continue
        texts.append(text)
        held.clear()
    if held:
        texts[-1] = tokenizer.decode(
            held, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
    return texts


def _trajectory_record(
    trajectory: Trajectory, with_tokens: bool, tokenizer: ChatTokenizer | None
) -> dict[str, Any]:
    last = trajectory.steps[-1].chat_completions if trajectory.steps else []
    record = {
        "messages": jsonable(last),
        "steps": [_step_record(step) for step in trajectory.steps],
    }
    if with_tokens:
        record["token_records"] = [
            {
                **asdict(tokens),
                **(
                    {} if tokenizer is None else {"texts": token_texts(tokens.token_ids, tokenizer)}
                ),
            }
            for tokens in trajectory.token_records
        ]
    return record


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "action": jsonable(step.action),
        "reward": jsonable(step.reward),
        "info": jsonable(step.info),
        "response_tokens": len(step.response_ids),
    }


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
        turns=tuple(_turn(turn) for turn in record["turns"]),
    )


def _turn(record: dict[str, Any]) -> TurnSpan:
    spans = tuple(VersionSpan(**span) for span in record.get("version_spans", ()))
    return TurnSpan(**{**record, "version_spans": spans})
