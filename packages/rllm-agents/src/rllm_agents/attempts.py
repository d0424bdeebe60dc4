"""One attempt at a workflow: a coroutine of a user's, contained, with a deadline and an end.

Whatever it does, its caller goes on: what it raises is returned, in tasks that it starts as well;
when its time is up or its caller is cancelled it has half a second to leave; and tasks that it
leaves behind are cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from rllm_agents.call_threads import Outcome

# How long what was cancelled is waited for.
GRACE_SECONDS = 0.5

_scope: contextvars.ContextVar[TaskScope | None] = contextvars.ContextVar(
    "rllm_attempt", default=None
)


class ExitError(Exception):
    """A task of a workflow raised SystemExit, which would have ended the event loop."""


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended. Made by `run_attempt`."""

    outcome: Outcome | None
    """What it returned or raised; None where its time was up."""
    is_clean: bool
    """Whether nothing of it runs any more."""


class TaskScope:
    """The tasks that one attempt has started and that have not ended."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def add(self, task: asyncio.Task[Any]) -> None:
        """Take in a task."""
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    async def close(self) -> bool:
        """Cancel the tasks and wait for them a while; whether all have ended."""
        return await cancel_tasks(self._tasks)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it a second time


async def run_attempt(
    body: Callable[[], Awaitable[Any]], timeout_seconds: float | None
) -> AttemptEnd:
    """Run a coroutine function to its end, or as long as it may run.

    Only cancellation and KeyboardInterrupt are raised. `scoped_tasks` must be entered.

    Args:
        body: What to run, in a task of its own.
        timeout_seconds: How long; None: no bound.
    """
    scope = TaskScope()
    context = contextvars.copy_context()
    context.run(_scope.set, scope)
    task = asyncio.create_task(_contained(body), context=context)
    outcome: Outcome | None = None
    try:
        await asyncio.wait({task}, timeout=timeout_seconds)
        if task.done():
            # Cancelled by its own code: nobody here did.
            leaked = Outcome(error=asyncio.CancelledError("leaked by the workflow"))
            outcome = leaked if task.cancelled() else task.result()
    finally:
        is_clean = await scope.close()
    return AttemptEnd(outcome, is_clean)


async def cancel_tasks(tasks: set[asyncio.Task[Any]]) -> bool:
    """Cancel tasks and wait for them, half a second at most; whether all have ended."""
    running = {task for task in tasks if not task.done()}
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running, timeout=GRACE_SECONDS)
    return all(task.done() for task in running)


def start_outside(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    """Start a task that belongs to no attempt, and so do the tasks that it starts.

    An engine that is asked by a workflow may start what outlives it.
    """
    context = contextvars.copy_context()
    context.run(_scope.set, None)
    return asyncio.create_task(work, context=context)


@contextlib.contextmanager
def scoped_tasks() -> Iterator[None]:
    """While entered, tasks that attempts on this event loop start belong to their scopes."""
    loop = asyncio.get_running_loop()
    factory = loop.get_task_factory()
    if not isinstance(factory, _TaskFactory):
        factory = _TaskFactory(factory)
        loop.set_task_factory(factory)
    factory.num_users += 1
    try:
        yield
    finally:
        factory.num_users -= 1
        if factory.num_users == 0 and loop.get_task_factory() is factory:
            loop.set_task_factory(factory.previous)


class _TaskFactory:
    """Makes the event loop's tasks; those inside an attempt go into its scope."""

    def __init__(self, previous: Any) -> None:
        self.previous = previous
        self.num_users = 0

    def __call__(
        self, loop: asyncio.AbstractEventLoop, work: Any, **arguments: Any
    ) -> asyncio.Task[Any]:
        context = arguments.get("context")
        scope = _scope.get() if context is None else context.get(_scope)
        if scope is not None:
            work = _ExitGuard(work)
        if self.previous is None:
            task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **arguments)
        else:
            task = self.previous(loop, work, **arguments)
        if scope is not None:
            scope.add(task)
        return task


class _ExitGuard(Coroutine[Any, Any, Any]):
    """A coroutine whose SystemExit is an ExitError: asyncio lets the former end the event loop."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def send(self, value: Any) -> Any:
        try:
            return self._inner.send(value)
        except SystemExit as error:
            raise ExitError(f"SystemExit: {error}") from error

    def throw(self, *arguments: Any) -> Any:
        try:
            return self._inner.throw(*arguments)
        except SystemExit as error:
            raise ExitError(f"SystemExit: {error}") from error

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()


async def _contained(body: Callable[[], Awaitable[Any]]) -> Outcome:
    """Keep what a coroutine function raises, save a cancellation from outside and ctrl-C."""
    try:
        return Outcome(value=await body())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        return Outcome(error=error)
