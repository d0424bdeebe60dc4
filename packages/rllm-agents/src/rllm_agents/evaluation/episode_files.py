"""Episodes as JSON Lines, for people and scripts to read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rllm_agents.renderer import ChatTokenizer
from rllm_agents.types import Episode, Step, Trajectory

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
    (``action``, ``reward``, ``info``). Several trajectories stand under ``trajectories`` instead.

    Args:
        path: File to write.
        episodes: Finished ones.
        append: Keep what is in the file already.
        with_tokens: Add ``token_records`` to each trajectory: ``token_ids``, ``logprobs``, and the
            ``turns`` that were sampled (``start``, ``stop``, ``step_index``, ``weights_version``).
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
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


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
        "task": _jsonable(episode.task),
        "reward": _jsonable(episode.reward),
        "is_correct": episode.is_correct,
        "termination_reason": _jsonable(episode.termination_reason),
        "error": episode.error,
    }
    parts = [_trajectory_record(t, with_tokens, tokenizer) for t in episode.trajectories]
    if len(parts) == 1:
        return {**record, **parts[0]}
    names = [trajectory.name for trajectory in episode.trajectories]
    numbered = zip(names, parts, strict=True)
    return {**record, "trajectories": [{"name": name, **part} for name, part in numbered]}


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
        "messages": _jsonable(last),
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
        "action": _jsonable(step.action),
        "reward": _jsonable(step.reward),
        "info": _jsonable(step.info),
    }


def _jsonable(value: Any) -> Any:
    """Turn a value of users' code into strict JSON; what JSON cannot say becomes its text."""
    if isinstance(value, Mapping):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, str):
        return str(value)
    item = getattr(value, "item", None)  # NumPy's scalars
    if callable(item) and getattr(value, "ndim", None) == 0:
        return _jsonable(item())
    return str(value)
