"""``PythonTool``: runs code of an agent in a process with limits. It is no sandbox."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from rllm_envs.errors import EnvArgumentError, ToolError
from rllm_envs.tools.base import Tool

MAX_CODE_LENGTH = 100_000
_MOST_FILE_BYTES = 16 * 2**20
"""Of any file that the code writes, what it prints included."""
_ERROR_LINES = 12
_SPARE_PROCESSES = 64
"""Processes and threads that the code may add to those that its user runs already."""

# Runs in the child. The limits are set there and not between fork and exec, which is unsafe in a
# process with threads.
_DRIVER = r"""
import ast, linecache, os, resource, signal, sys, traceback, types

def limit(kind, value):
    try:
        resource.setrlimit(kind, (value, value))
    except (ValueError, OSError):
        pass  # a system that does not have this limit

def processes_of_user():
    count = 0
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdecimal() and entry.stat().st_uid == os.getuid():
                count += len(os.listdir(entry.path + "/task"))
        except OSError:
            pass  # it has ended
    return count

path, seconds, memory, size, spare = sys.argv[1], *map(int, sys.argv[2:])
limit(resource.RLIMIT_CPU, seconds)
limit(resource.RLIMIT_AS, memory)
limit(resource.RLIMIT_FSIZE, size)
limit(resource.RLIMIT_CORE, 0)
# The limit counts all that the user runs, and the system does not hold root to it.
if os.getuid() != 0 and os.path.isdir("/proc/self/task"):
    limit(resource.RLIMIT_NPROC, processes_of_user() + spare)
# Ends the process also where the caller's has gone and kills nobody.
signal.alarm(seconds + 5)
# What was printed by then is kept when the time is over.
sys.stdout.reconfigure(line_buffering=True)
source = open(path, encoding="utf-8").read()
sys.argv = [path]
driver = sys.modules["__main__"]
module = sys.modules["__main__"] = types.ModuleType("__main__")
scope = vars(module)
linecache.cache["program.py"] = (len(source), None, source.splitlines(True), "program.py")
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
except SystemExit:
    raise
except BaseException as error:
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

    What the code starts is killed with it, save a process that moves to a session of its own. The
    number of processes is limited on Linux, and not for root.

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
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not is_number or not 0 < timeout <= 3600:
            raise EnvArgumentError(f"timeout must be in (0, 3600] seconds, got {timeout!r}")
        _check_integer("memory_bytes", memory_bytes, 64 * 2**20)
        _check_integer("max_output_characters", max_output_characters, 100)
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
        with tempfile.TemporaryDirectory(
            prefix="rllm-python-", ignore_cleanup_errors=True
        ) as place:
            directory = Path(place)
            (directory / "program.py").write_bytes(program)
            (directory / "work").mkdir()
            # Files without a name, so that the code cannot put something else in their place.
            with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
                status = self._run(directory, out, err)
                printed, problem = self._start_of(out), self._end_of(err)
        return self._answer(status, printed, problem)

    def _run(self, directory: Path, out: IO[bytes], err: IO[bytes]) -> int | None:
        """Run the program and return its exit status; None when its time was over."""
        limits = (int(self._timeout) + 1, self._memory_bytes, _MOST_FILE_BYTES, _SPARE_PROCESSES)
        work = directory / "work"
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

    # The files may be larger than what is shown, so only a part is read.

    def _start_of(self, file: IO[bytes]) -> str:
        file.seek(0)
        return file.read(4 * self._max_output + 4).decode("utf-8", "replace")

    def _end_of(self, file: IO[bytes]) -> str:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 4 * self._max_output))
        return file.read(4 * self._max_output).decode("utf-8", "replace")

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


def _check_integer(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise EnvArgumentError(f"{name} must be an integer of at least {least}, got {value!r}")


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
