"""``PythonTool``: runs code of an agent in the sandbox."""

import signal
import threading

from rllm_envs.errors import EnvArgumentError, SandboxError, ToolError
from rllm_envs.sandbox import (
    Limits,
    RemoteSandbox,
    Sandbox,
    SandboxResult,
    SandboxSession,
    default_sandbox,
)
from rllm_envs.tools.base import Tool

MAX_CODE_LENGTH = 100_000
_MOST_OUTPUT_BYTES = 2**20
"""What is read of a program; what is shown is less."""
_ERROR_LINES = 12
_making_session = threading.Lock()  # not in the tool, which has to be fit for pickling


class PythonTool(Tool):
    """Run Python code and read what it prints, and the value of a last expression.

    The code runs in the sandbox of this process (``rllm_envs.sandbox``): by default on Linux it
    reads no files but the libraries, writes none, and reaches neither the network nor any process.

    Each call is a fresh process, or, with ``persistent``, one that keeps its variables from call to
    call of an episode. A call that breaks a limit ends that process, and the answer says so.

    A sandbox that fails raises ``SandboxError`` through ``call``: it is never an answer.

    Args:
        timeout: Seconds of one call, in (0, 3600].
        memory_bytes: Memory beyond what the interpreter has, at least 16 MiB.
        max_output_characters: Most characters of an answer, at least 100.
        persistent: Whether variables survive between the calls of an episode.
        sandbox: Where the code runs; the sandbox of this process by default.

    Raises:
        EnvArgumentError: An argument is out of range.
    """

    name = "python"
    description = "Run Python code; returns what it prints, and the value of a last expression."

    def __init__(
        self,
        *,
        timeout: float = 10.0,
        memory_bytes: int = 2**30,
        max_output_characters: int = 4000,
        persistent: bool = False,
        sandbox: Sandbox | RemoteSandbox | None = None,
    ) -> None:
        most = max_output_characters
        if isinstance(most, bool) or not isinstance(most, int) or most < 100:
            raise EnvArgumentError(
                f"max_output_characters must be an integer of at least 100, got {most!r:.80}"
            )
        self._limits = Limits(timeout, memory_bytes, _MOST_OUTPUT_BYTES)
        self._max_output = max_output_characters
        self._is_persistent = persistent
        self._sandbox = sandbox
        self._session: SandboxSession | None = None

    def for_episode(self) -> "PythonTool":
        """Return itself, or, with ``persistent``, a tool with variables of its own."""
        if not self._is_persistent:
            return self
        return PythonTool(
            timeout=self._limits.timeout_seconds,
            memory_bytes=self._limits.memory_bytes,
            max_output_characters=self._max_output,
            persistent=True,
            sandbox=self._sandbox,
        )

    def close(self) -> None:
        """End the process that keeps variables, if there is one."""
        if self._session is not None:
            self._session.close()

    def forward(self, code: str) -> str:
        """Return what the code printed.

        Args:
            code: A Python program, such as print(2 ** 10).
        """
        if len(code) > MAX_CODE_LENGTH:
            raise ToolError(f"the code is longer than {MAX_CODE_LENGTH} characters")
        if self._is_persistent:
            session = self._own_session()
            answer = self._answer(session.run(code))
            return f"{answer}\n[the variables are lost]" if session.was_lost else answer
        limits = self._limits
        return self._answer(
            (self._sandbox or default_sandbox()).run(
                code,
                timeout_seconds=limits.timeout_seconds,
                memory_bytes=limits.memory_bytes,
                output_bytes=limits.output_bytes,
                echo=True,
            )
        )

    def _own_session(self) -> SandboxSession:
        sandbox = self._sandbox or default_sandbox()
        if not isinstance(sandbox, Sandbox):
            raise SandboxError(
                f"persistent=True needs a sandbox on this machine, not {sandbox.description}"
            )
        with _making_session:
            if self._session is None:
                self._session = SandboxSession(sandbox, self._limits)
            return self._session

    def _answer(self, result: SandboxResult) -> str:
        text = result.stdout
        if len(text) > self._max_output:
            text = f"{text[: self._max_output]}\n[the output is longer and was cut here]"
        note = self._note(result)
        parts = [part for part in (text.rstrip("\n"), note) if part]
        return "\n".join(parts) if parts else "[the code printed nothing]"

    def _note(self, result: SandboxResult) -> str:
        """Return what follows the output: an error, a limit, or what was written to stderr."""
        lines = result.stderr.strip().splitlines()
        last_lines = "\n".join(lines[-_ERROR_LINES:])[-self._max_output :]
        if result.status == "timeout":
            seconds = self._limits.timeout_seconds
            return f"Error: the code took longer than {seconds:g} s and was ended"
        if result.status == "output_limit":
            return f"Error: the code printed more than {_MOST_OUTPUT_BYTES} bytes and was ended"
        if result.status == "signal" and result.signal is not None:
            known = result.signal in set(signal.Signals)
            name = signal.Signals(result.signal).name if known else result.signal
            return f"Error: the process was ended by {name}"
        if result.exit_code:
            return last_lines or f"Error: the process ended with status {result.exit_code}"
        return last_lines
