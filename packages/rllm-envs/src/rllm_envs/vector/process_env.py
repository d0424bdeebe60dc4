"""``ProcessEnv``: a Gymnasium environment in a process of its own, which can be killed."""

from typing import Any

from rllm_envs.errors import EnvArgumentError, EnvProcessError, TaskError
from rllm_envs.vector.env_process import START_LIMIT_SECONDS, EnvProcess, EnvRaisedError

_CALLERS_MISTAKES = {"TaskError": TaskError, "EnvArgumentError": EnvArgumentError}


class ProcessEnv:
    """The calls of a Gymnasium environment that lives in a child process.

    The child makes the environment from the JSON text of its spec. One thread calls at a time.

    Args:
        spec: JSON text of the environment's spec (``env.spec.to_json()``).
        limit_seconds: How long one call may take before the process is killed; None waits for
            ever.

    Raises:
        EnvProcessError: The process cannot be started.
    """

    def __init__(self, spec: str, limit_seconds: float | None = None) -> None:
        self._spec = spec
        self._limit_seconds = limit_seconds
        self._is_made = False
        self._process = EnvProcess()

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment.

        Raises:
            TaskError: The given task cannot be played.
            EnvArgumentError: ``options`` has another key.
            EnvProcessError: The environment raised anything else, or its process died or hung.
        """
        return self.call("reset", seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment.

        Raises:
            EnvProcessError: It raised something, or its process died or hung.
        """
        return self.call("step", action)

    def call(self, name: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the environment, or return its attribute; see ``reset`` for errors."""
        return self._ask({"do": "call", "name": name, "arguments": arguments, "named": named})

    def set_wrapper_attr(self, name: str, value: Any) -> Any:
        """Set an attribute of the environment; see ``step``."""
        return self._ask({"do": "set", "name": name, "value": value})

    def close(self) -> None:
        """Close the environment if it can be done soon, end the process, and release its pipes."""
        self._process.close()

    def end(self) -> None:
        """End the process and all that it started; a call that waits for it fails at once."""
        self._process.end()

    def kill(self) -> None:
        """End the process and release its pipes."""
        self._process.kill()

    def _ask(self, request: dict[str, Any]) -> Any:
        try:
            if not self._is_made:
                self._process.ask({"do": "make", "spec": self._spec}, START_LIMIT_SECONDS)
                self._is_made = True
            return self._process.ask(request, self._limit_seconds)
        except EnvRaisedError as error:
            mistake = _CALLERS_MISTAKES.get(error.kinds[0])
            if mistake is not None:
                raise mistake(error.message) from None
            raise EnvProcessError(str(error)) from None
