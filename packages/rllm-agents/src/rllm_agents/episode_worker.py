"""The child process of `episode_processes`: an engine that plays what its parent sends.

Run as a module with the descriptors of the lifeline and of a socket. Both ways go `frames`: first
the pickled arguments of the engine and, as the answer, None or why it cannot be made; then lists of
orders ``(number, id, request)``, and lists of answers ``(number, episode)``, where request and
episode are pickles of their own. An order without a request stops the episode of that number and
closes its environment; it is answered without an episode.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import pickle
import socket
import sys
from collections.abc import Callable

from rllm_agents.errors import EpisodeFailure, in_words
from rllm_agents.frames import HEADER, framed, pickled
from rllm_agents.garbage import seldom_collected
from rllm_agents.player import PlayEpisode
from rllm_agents.rollout import unplayed_episode
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason
from rllm_envs.vector.child_process import end_with

_STOP_SECONDS = 2.5


class EpisodeServer:
    """Plays orders on the running event loop and answers each once, several at a time.

    Args:
        play: Plays one request.
        send: Takes frames.
    """

    def __init__(self, play: PlayEpisode, send: Callable[[bytes], None]) -> None:
        self._play = play
        self._send = send
        self._tasks: dict[int, asyncio.Task[bytes]] = {}
        self._stopped: set[int] = set()
        self._answers: list[tuple[int, bytes | None]] = []

    def order(self, number: int, request_id: str, request: bytes | None) -> None:
        """Begin the episode of a request; without one, stop the one that has this number."""
        if request is not None:
            task = asyncio.create_task(self._episode(number, request_id, request))
            self._tasks[number] = task
            task.add_done_callback(functools.partial(self._end, number))
        elif number in self._tasks:
            self._stop(number)

    async def stop(self) -> None:
        """Stop all episodes and wait until their environments are closed, for a while."""
        tasks = list(self._tasks.values())
        for number in self._tasks:
            self._stop(number)
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)

    def _stop(self, number: int) -> None:
        self._stopped.add(number)
        self._tasks[number].cancel()

    async def _episode(self, number: int, request_id: str, content: bytes) -> bytes:
        """Return the pickled Episode of a request, whatever happens."""
        try:
            request = pickle.loads(content)
        except BaseException as error:
            return _failed(request_id, "the task cannot be read in another process", error)
        try:
            episode = await self._play(request)
        except BaseException as error:  # somebody waits for the answer, and others play here
            is_cancel = isinstance(error, asyncio.CancelledError)
            if is_cancel and number in self._stopped:
                raise
            ending = TerminationReason
            reason = ending.ENV_LEAKED_CANCEL if is_cancel else ending.ENV_EXIT
            return _failed(request_id, "the episode raised", error, reason)
        _drop_task(episode)
        try:
            return pickled(episode)
        except BaseException as error:
            return _failed(request_id, "what the episode holds cannot be sent", error)

    def _end(self, number: int, task: asyncio.Task[bytes]) -> None:
        del self._tasks[number]
        self._stopped.discard(number)
        if not self._answers:
            # What ends in the same round of the loop goes together.
            asyncio.get_running_loop().call_soon(self._flush)
        self._answers.append((number, None if task.cancelled() else task.result()))

    def _flush(self) -> None:
        answers, self._answers = self._answers, []
        self._send(framed(answers))


def _drop_task(episode: Episode) -> None:
    """Leave the task out: who sent it has it."""
    for trajectory in episode.trajectories:
        if trajectory.task is episode.task:
            trajectory.task = None
    episode.task = None


def _failed(
    request_id: str,
    what: str,
    error: BaseException,
    reason: TerminationReason = TerminationReason.ENV_PROTOCOL,
) -> bytes:
    failure = EpisodeFailure(reason, f"{what}: {in_words(error)}")
    return pickled(unplayed_episode(RolloutRequest({}, request_id), failure))


async def _serve(connection: socket.socket) -> None:
    """Answer a parent until it closes the connection."""
    # Only here: what is imported for the engine takes seconds, and the parent waits for the answer.
    from rllm_agents.execution_engine import AgentExecutionEngine

    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        engine = AgentExecutionEngine(**pickle.loads(await _frame(reader)))
    except Exception as error:
        writer.write(framed(in_words(error)))
        await writer.drain()
        return
    writer.write(framed(None))
    with engine, seldom_collected():
        async with engine.playing() as play:
            server = EpisodeServer(play, writer.write)
            try:
                while True:
                    for number, request_id, request in pickle.loads(await _frame(reader)):
                        server.order(number, request_id, request)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass
            finally:
                await server.stop()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(HEADER), "big")
    return await reader.readexactly(size)


def main() -> None:
    """Play episodes until the parent closes the connection."""
    lifeline, descriptor = map(int, sys.argv[1:])
    end_with(lifeline)
    connection = socket.socket(fileno=descriptor)
    # The parent knows by the connection's end that this process has ended, not what it started.
    connection.set_inheritable(False)
    os.register_at_fork(after_in_child=connection.close)
    asyncio.run(_serve(connection))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # Threads of environments that hang must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
