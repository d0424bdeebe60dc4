"""``PythonTool``: runs code of an agent in a process with limits. It is no sandbox."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rllm_envs.errors import EnvArgumentError, ToolError
from rllm_envs.tools.base import Tool

MAX_CODE_LENGTH = 100_000
_MOST_FILE_BYTES = 16 * 2**20
"""Of any file that the code writes, what it prints included."""
_ERROR_LINES = 12

# Runs in the child. The limits are set there and not between fork and exec, which is unsafe in a
# process with threads.
_DRIVER = r"""
import ast, resource, sys, traceback

def limit(kind, value):
    try:
        resource.setrlimit(kind, (value, value))
    except (ValueError, OSError):
        pass  # a system that does not have this limit

limit(resource.RLIMIT_CPU, int(sys.argv[2]))
limit(resource.RLIMIT_AS, int(sys.argv[3]))
limit(resource.RLIMIT_FSIZE, int(sys.argv[4]))
limit(resource.RLIMIT_CORE, 0)
path = sys.argv[1]
source = open(path, encoding="utf-8").read()
sys.argv = [path]
scope = {"__name__": "__main__", "__builtins__": __builtins__}
try:
    tree = ast.parse(source, "program.py")
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "program.py", "exec"), scope)
    if last is not None:
        value = eval(compile(last, "program.py", "eval"), scope)
        if value is not None:
            print(repr(value))
except Exception as error:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != "program.py":
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
    sys.exit(1)
"""


class PythonTool(Tool):
    """Run Python code and read what it prints, and the value of a last expression.

    Each call is a fresh interpreter in an empty directory, with limits on time, memory and output,
    without the caller's environment variables. It is a process with limits and no sandbox: the code
    runs as the user, and can read the user's files, write where the user can, and reach the
    network. Do not let a model that you do not trust use it on a machine whose files matter.

    Args:
        timeout: Seconds of one call, in (0, 3600]; then the process and its children are killed.
        memory_bytes: Address space of the process, at least 64 MiB.
        max_output_characters: Most characters of an answer, at least 100.

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
    ) -> None:
        if not 0 < timeout <= 3600:
            raise EnvArgumentError(f"timeout must be in (0, 3600] seconds, got {timeout!r}")
        if memory_bytes < 64 * 2**20:
            raise EnvArgumentError(f"memory_bytes must be at least 64 MiB, got {memory_bytes!r}")
        if max_output_characters < 100:
            raise EnvArgumentError(
                f"max_output_characters must be at least 100, got {max_output_characters!r}"
            )
        self._timeout = timeout
        self._memory_bytes = memory_bytes
        self._max_output = max_output_characters

    def forward(self, code: str) -> str:
        """Return what the code printed.

        Args:
            code: A Python program, such as print(2 ** 10).
        """
        if len(code) > MAX_CODE_LENGTH:
            raise ToolError(f"the code is longer than {MAX_CODE_LENGTH} characters")
        try:
            program = code.encode("utf-8")
        except UnicodeEncodeError:
            raise ToolError("the code holds half of a character pair") from None
        with tempfile.TemporaryDirectory(prefix="rllm-python-") as place:
            directory = Path(place)
            (directory / "program.py").write_bytes(program)
            (directory / "work").mkdir()
            status = self._run(directory)
            printed = self._read(directory / "stdout")
            problem = self._read(directory / "stderr")
        return self._answer(status, printed, problem)

    def _run(self, directory: Path) -> int | None:
        """Run the program and return its exit status; None when its time was over."""
        limits = [int(self._timeout) + 1, self._memory_bytes, _MOST_FILE_BYTES]
        work = directory / "work"
        with (directory / "stdout").open("wb") as out, (directory / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-X", "utf8", "-c", _DRIVER),
                    *(str(directory / "program.py"), *map(str, limits)),
                ],
                cwd=work,
                env=_environment(work),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                return process.wait(self._timeout)
            except subprocess.TimeoutExpired:
                return None
            finally:
                # Children that the code left behind too: they are in its session's group.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _read(self, path: Path) -> str:
        # The files may be larger than what is shown; only the start is read.
        with path.open("rb") as file:
            return file.read(4 * self._max_output + 4).decode("utf-8", "replace")

    def _answer(self, status: int | None, printed: str, problem: str) -> str:
        text = printed
        if len(text) > self._max_output:
            text = f"{text[: self._max_output]}\n[the output is longer and was cut here]"
        last_lines = "\n".join(problem.strip().splitlines()[-_ERROR_LINES:])[-self._max_output :]
        if status is None:
            note = f"Error: the code took longer than {self._timeout:g} s and was ended"
        elif status < 0:
            name = signal.Signals(-status).name if -status in set(signal.Signals) else -status
            note = f"Error: the process was ended by {name}"
        elif status != 0:
            note = last_lines or f"Error: the process ended with status {status}"
        else:
            note = last_lines
        parts = [part for part in (text.rstrip("\n"), note) if part]
        return "\n".join(parts) if parts else "[the code printed nothing]"


def _environment(home: Path) -> dict[str, str]:
    """Return what the process may know: nothing of the caller's but where programs are."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        # Or a library that starts a thread for each core is refused its memory.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
