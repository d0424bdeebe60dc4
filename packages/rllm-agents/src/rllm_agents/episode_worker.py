"""The child process of `episode_processes`: an engine that plays what its parent sends.

Run as a module with the descriptors of the lifeline and of a socket. Both ways go frames, eight
bytes of length and then a pickle: first the arguments of the engine and, as the answer, None or
why it cannot be made; then lists of orders, and lists of ``(number, Episode)``. An order is
``(number, request)``, or ``(number, None)``, which stops the episode of that number and closes its
environment; it is answered by ``(number, None)`` unless the episode has been sent before.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
import sys
from collections.abc import Callable

from rllm_agents.errors import EpisodeFailure, in_words
from rllm_agents.frames import HEADER, framed
from rllm_agents.garbage import seldom_collected
from rllm_agents.player import PlayEpisode
from rllm_agents.rollout import unplayed_episode
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import Episode, TerminationReason
from rllm_envs.vector.child_process import end_with

_STOP_SECONDS = 1.8


class EpisodeServer:
    """Plays orders on the running event loop and hands out what has ended, several at a time.

    Args:
        play: Plays one request.
        send: Takes frames.
    """

    def __init__(self, play: PlayEpisode, send: Callable[[bytes], None]) -> None:
        self._play = play
        self._send = send
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._ended: list[tuple[int, Episode | None]] = []

    def order(self, number: int, request: RolloutRequest | None) -> None:
        """Begin the episode of a request; without one, stop the one that has this number."""
        if request is not None:
            self._tasks[number] = asyncio.create_task(self._run(number, request))
        elif number in self._tasks:
            self._tasks[number].cancel()

    async def stop(self) -> None:
        """Stop all episodes and wait until their environments are closed, two seconds at most."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=_STOP_SECONDS)

    async def _run(self, number: int, request: RolloutRequest) -> None:
        episode: Episode | None = None
        try:
            episode = await self._play(request)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # whatever it is, somebody waits for the answer
            failure = EpisodeFailure(TerminationReason.AGENT_EXCEPTION, in_words(error))
            episode = unplayed_episode(request, failure)
        self._tasks.pop(number)
        if not self._ended:
            # What ends in the same round of the loop goes together.
            asyncio.get_running_loop().call_soon(self._flush)
        self._ended.append((number, episode))

    def _flush(self) -> None:
        ended, self._ended = self._ended, []
        for _, episode in ended:
            if episode is not None:
                _drop_task(episode)
        try:
            self._send(framed(ended))
        except Exception:  # any object of an environment may be in an info, and say anything
            for number, episode in ended:
                self._send(_framed_alone(number, episode))


def _drop_task(episode: Episode) -> None:
    """Leave the task out: who sent it has it."""
    for trajectory in episode.trajectories:
        if trajectory.task is episode.task:
            trajectory.task = None
    episode.task = None


def _framed_alone(number: int, episode: Episode | None) -> bytes:
    try:
        return framed([(number, episode)])
    except Exception as error:
        assert episode is not None
        failure = EpisodeFailure(
            TerminationReason.ENV_PROTOCOL,
            f"what the episode holds cannot be sent between processes: {in_words(error)}",
        )
        return framed([(number, unplayed_episode(RolloutRequest({}, episode.id), failure))])


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
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    for number, request in pickle.loads(await _frame(reader)):
                        server.order(number, request)
            await server.stop()


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(HEADER), "big")
    return await reader.readexactly(size)


def main() -> None:
    """Play episodes until the parent closes the connection."""
    lifeline, descriptor = map(int, sys.argv[1:])
    end_with(lifeline)
    asyncio.run(_serve(socket.socket(fileno=descriptor)))
    # Threads of environments that hang must not keep the process.
    os._exit(0)


if __name__ == "__main__":
    main()
