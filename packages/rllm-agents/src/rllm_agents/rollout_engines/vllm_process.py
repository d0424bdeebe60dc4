"""Start vLLM's engine, keep it on an event loop of its own, and end it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Coroutine, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rllm_agents.errors import EngineError, UserError
from rllm_agents.loop_thread import LoopThread

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

_Result = TypeVar("_Result")

_SHUTDOWN_SECONDS = 5.0


def import_vllm() -> None:
    """Import vLLM once, quietly.

    It reads its log level when it is imported, and would otherwise report every use to its makers.
    """
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import vllm.v1.engine.async_llm  # noqa: F401  (takes seconds)


class VLLMProcess:
    """One `AsyncLLM` and the thread whose event loop it lives on.

    vLLM's engine belongs to the event loop that first uses it. With a loop of its own, callers may
    use it from any loop and any thread, one after another or at once.
    """

    def __init__(self, engine_args: Mapping[str, Any]) -> None:
        """Start the engine's processes and wait until they answer: half a minute or so.

        Args:
            engine_args: Of vLLM's `AsyncEngineArgs`.

        Raises:
            UserError: vLLM refuses the arguments, or the program's main module starts work when it
                is imported.
            EngineError: The engine did not start.
        """
        import_vllm()
        socket_dir = tempfile.mkdtemp(prefix="rllm-vllm-")
        self._loop = LoopThread("vllm")
        try:
            self._engine = self._loop.run(_start(engine_args, socket_dir))
        except BaseException:
            _end(None, self._loop, socket_dir)
            raise
        # Also when the interpreter ends; vLLM's own clean-up would come too late by then.
        self._end = weakref.finalize(self, _end, self._engine, self._loop, socket_dir)

    @property
    def engine(self) -> AsyncLLM:
        """The engine; its coroutines run on this object's loop, through `call` or `wait`.

        Raises:
            EngineError: It is closed, or its process has died.
        """
        if not self._end.alive:
            raise EngineError("the rollout engine is closed; make a new one")
        if self._engine.errored:
            raise EngineError(f"vLLM's engine process died: {self._engine.dead_error}")
        return self._engine

    @property
    def is_alive(self) -> bool:
        """Whether it is neither closed nor has its process died."""
        return self._end.alive and not self._engine.errored

    async def call(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Await work on the engine's loop; cancelling the caller cancels it."""
        return await self._loop.call(work)

    def wait(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Do work on the engine's loop and return its result; blocks."""
        return self._loop.run(work)

    def close(self) -> None:
        """End the engine's processes and the thread; again does nothing."""
        self._end()


async def _start(engine_args: Mapping[str, Any], socket_dir: str) -> AsyncLLM:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    with _environment(socket_dir):
        try:
            config = AsyncEngineArgs(**engine_args).create_engine_config()
        except (ValueError, OSError) as error:
            raise UserError(f"vLLM refuses its settings: {first_line(error)}") from error
        try:
            return AsyncLLM.from_vllm_config(config, disable_log_stats=True)
        except Exception as error:
            raise EngineError(
                f"vLLM's engine did not start: {first_line(error)}. What its process wrote "
                "is above. A script must do its work under `if __name__ == '__main__':`, "
                "because that process imports it"
            ) from error


def _end(engine: AsyncLLM | None, loop: LoopThread, socket_dir: str) -> None:
    """End tasks, then processes, then the thread: a task would report a death as an error."""
    loop.cancel_all()
    if engine is not None:
        engine.shutdown(timeout=_SHUTDOWN_SECONDS)
        # Its destructor shuts down once more, at the interpreter's end with a traceback.
        engine.shutdown = lambda timeout=None: None
    loop.close()
    shutil.rmtree(socket_dir, ignore_errors=True)


@contextlib.contextmanager
def _environment(socket_dir: str) -> Iterator[None]:
    """Set what the engine's process inherits, and only while it is started."""
    from vllm.platforms import current_platform

    # Where a socket's file lies; vLLM leaves them behind.
    values = {"VLLM_RPC_BASE_PATH": socket_dir, "PYTHONWARNINGS": "ignore::FutureWarning"}
    if current_platform.is_cpu():
        # The worker in the engine's own process: one process less, and half the start.
        values["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        # Or the first logprobs wait for a compiler: 3 to 15 seconds.
        values["TORCHDYNAMO_DISABLE"] = "1"
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type's name."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
