"""Episodes of an evaluation, saved as they end, so that a stopped one goes on where it was."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from rllm_agents.errors import UserError
from rllm_agents.evaluation.episode_files import (
    episode_record,
    jsonable,
    read_episodes,
    record_line,
)
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.metrics import task_key
from rllm_agents.renderer import ChatTokenizer
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode


class EpisodeLog:
    """A file of episodes that grows as they end, held by one process at a time.

    What it holds when it is opened is kept, save a last line that was cut off by a crash.

    Args:
        path: A JSONL file; it and its directory need not exist.
        episodes_with_tokens: Of how many episodes, the first to end, token records are saved, as
            `write_episodes` does; None: of all.
        tokenizer: Adds the texts of the tokens.

    Example:
        ```python
        with EpisodeLog("runs/mine/episodes.jsonl") as log:
            episodes = asyncio.run(play_requests(engine, requests, log))
        ```
    """

    def __init__(
        self,
        path: str | Path,
        *,
        episodes_with_tokens: int | None = 0,
        tokenizer: ChatTokenizer | None = None,
    ) -> None:
        self.path = Path(path)
        self._episodes_with_tokens = episodes_with_tokens
        self._tokenizer = tokenizer
        self._file: IO[bytes] | None = None
        self._episodes: dict[str, Episode] = {}

    def __enter__(self) -> Self:
        """Take the file and read what it holds.

        Raises:
            UserError: It cannot be written to, another process holds it, or a line is no episode.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self.path, "ab")
        except OSError as error:
            raise UserError(f"{self.path} cannot be written to: {error.strerror}") from error
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise UserError(f"{self.path} is in use by another process") from error
            _drop_torn_line(self.path)
            self._episodes = {episode.id: episode for episode in read_episodes(self.path)}
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()

    @property
    def episodes(self) -> list[Episode]:
        """All that it holds; of two with one id the later."""
        return list(self._episodes.values())

    @property
    def judged(self) -> list[Episode]:
        """Those with an outcome; the others are played again."""
        return [episode for episode in self._episodes.values() if not episode.failed]

    def add(self, episode: Episode) -> None:
        """Save an episode that has ended.

        Raises:
            UserError: The file cannot be written to.
        """
        assert self._file is not None, "EpisodeLog is used in a `with` block"
        # What UTF-8 cannot hold (lone surrogates) is written as JSON escapes.
        most = self._episodes_with_tokens
        with_tokens = most is None or len(self._episodes) < most
        line = record_line(
            episode_record(episode, with_tokens=with_tokens, tokenizer=self._tokenizer)
        )
        try:
            self._file.write(line.encode("utf-8", "backslashreplace"))
            self._file.flush()
        except OSError as error:
            raise UserError(f"{self.path} cannot be written to: {error.strerror}") from error
        self._episodes[episode.id] = episode

    def missing(self, requests: Sequence[RolloutRequest]) -> list[RolloutRequest]:
        """Return the requests without an outcome here.

        Raises:
            UserError: It holds episodes of other requests, or of other tasks under their ids.
        """
        asked = {request.id: request for request in requests}
        for episode in self._episodes.values():
            request = asked.get(episode.id)
            if request is None:
                raise UserError(
                    f"{self.path} holds episode {episode.id!r}, which is not among the "
                    f"{len(requests)} asked for; the numbers of tasks and samples may grow, not "
                    "shrink"
                )
            if task_key(jsonable(request.task)) != task_key(jsonable(episode.task)):
                raise UserError(
                    f"{self.path} holds episode {episode.id!r} of another task than this one; the "
                    "data has changed since, so choose another place for the run"
                )
        done = {episode.id for episode in self.judged}
        return [request for request in requests if request.id not in done]

    def sort(self, requests: Sequence[RolloutRequest]) -> list[Episode]:
        """Write the file once more, in the order of the requests; return their episodes.

        The old file stays until the new one is whole.
        """
        with open(self.path, "rb") as file:
            lines = {json.loads(line)["id"]: line for line in file}
        temporary = self.path.with_name(f".{self.path.name}.writing")
        temporary.write_bytes(b"".join(lines[request.id] for request in requests))
        temporary.replace(self.path)
        return [self._episodes[request.id] for request in requests]


async def play_requests(
    engine: AgentExecutionEngine, requests: Sequence[RolloutRequest], log: EpisodeLog
) -> list[Episode]:
    """Play the requests that have no outcome in a log; each goes into it as it ends.

    Returns:
        One Episode for each request, in their order, those of the log among them.

    Raises:
        UserError: The log is of other requests, or cannot be written to.
    """
    stream = engine.stream_requests(log.missing(requests))
    async with contextlib.aclosing(stream) as episodes:
        async for episode in episodes:
            log.add(episode)
    return log.sort(requests)


def _drop_torn_line(path: Path) -> None:
    """Cut off what follows the last line feed: a process ended while it wrote."""
    with open(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        end = size
        while end > 0:
            start = max(0, end - 2**16)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)
