"""What hostile programs attack, and how a program and its outcome become a row of the table."""

import contextlib
import os
import secrets
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rllm_envs.sandbox import Sandbox, SandboxResult

MIB = 2**20
CANARY = "canary-" + secrets.token_hex(8)
DONE = "the hostile act was done"
"""What a program prints once it has done what it must not do."""


@dataclass(slots=True)
class Machine:
    """What the programs attack. Made by ``attacked_machine``, read by the rows."""

    folder: Path
    """A folder of this process's user."""
    secret: Path
    """A file that only its user may read."""
    port: int
    """Of a TCP and a UDP listener on loopback."""
    abstract_socket: str
    """Name of a listening socket in the abstract name space."""
    file_socket: Path
    """Of a listening and of a datagram socket with a path."""
    hits: list[str] = field(default_factory=list)
    """What has reached a listener."""


Check = Callable[[Sandbox, Machine], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    name: str
    """What the program tries."""
    must_hold_from: str
    """"process" or "lockdown"."""
    is_stopped: Check
    """Runs it; True where it was stopped, or bounded, as it must be."""


ROWS: list[Row] = []


def row(name: str, must_hold_from: str = "lockdown") -> Callable[[Check], Check]:
    """Enter a function as a row."""

    def enter(check: Check) -> Check:
        ROWS.append(Row(name, must_hold_from, check))
        return check

    return enter


@contextlib.contextmanager
def attacked_machine() -> Iterator[Machine]:
    """Yield listeners, a secret file and secret variables; they go at the end."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rllm-attacked-")))
        secret = folder / "secret"
        secret.write_text(CANARY)
        secret.chmod(0o600)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = tcp.getsockname()[1]
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", port))
        abstract = f"\0rllm-{secrets.token_hex(8)}"
        by_name = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_name.bind(abstract)
        by_name.listen()
        by_path = stack.enter_context(socket.socket(socket.AF_UNIX))
        by_path.bind(str(folder / "socket"))
        by_path.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(folder / "socket.dgram"))
        machine = Machine(folder, secret, port, abstract[1:], folder / "socket")
        listeners = {"tcp": tcp, "udp": udp, "abstract": by_name, "path": by_path}
        for name, listener in (*listeners.items(), ("datagram", datagrams)):
            listener.settimeout(0.2)
            thread = threading.Thread(target=_listen, args=(machine, name, listener), daemon=True)
            thread.start()
        os.environ["OPENAI_API_KEY"] = os.environ["HF_TOKEN"] = CANARY
        stack.callback(os.environ.pop, "OPENAI_API_KEY")
        stack.callback(os.environ.pop, "HF_TOKEN")
        # The environment that the system shows of a process is the one that it was started with.
        neighbour = subprocess.Popen(["sleep", "300"])
        stack.callback(neighbour.wait)
        stack.callback(neighbour.kill)
        yield machine


def _listen(machine: Machine, name: str, listener: socket.socket) -> None:
    while True:
        try:
            if listener.type == socket.SOCK_STREAM:
                listener.accept()[0].close()
            else:
                listener.recv(64)
        except TimeoutError:
            continue
        except OSError:
            return
        machine.hits.append(name)


def run_in(sandbox: Sandbox, code: str, **limits: int | float) -> SandboxResult:
    """Run a program for at most ten seconds, unless ``limits`` say otherwise."""
    return sandbox.run(code, **{"timeout_seconds": 10.0, **limits})  # type: ignore[arg-type]


def is_blocked(sandbox: Sandbox, action: str) -> bool:
    """Return whether every one of the statements fails that a program tries, one by one."""
    lines = "\n".join(f"attempt({line!r})" for line in action.strip().splitlines())
    code = (
        "import ctypes, os, socket, signal, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def syscall(*arguments):\n"
        "    if libc.syscall(*map(ctypes.c_long, arguments)) < 0:\n"
        "        raise OSError(ctypes.get_errno(), 'refused')\n"
        "def attempt(line):\n"
        "    try:\n"
        "        exec(line, globals())\n"
        "    except (OSError, ValueError, ImportError):\n"
        "        pass\n"
        "    else:\n"
        f"        print({DONE!r}, line)\n"
        f"{lines}\n"
        "print('end')\n"
    )
    result = run_in(sandbox, code)
    return "end" in result.stdout and DONE not in result.stdout


def _processes_with(mark: str) -> int:
    """Return how many processes have a name."""
    count = 0
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and mark in (entry / "comm").read_text():
                count += 1
    return count


def is_gone(mark: str, seconds: float = 1.0) -> bool:
    """Return whether no process has the name ``mark`` within some seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not _processes_with(mark):
            return True
        time.sleep(0.02)
    return not _processes_with(mark)


def new_mark() -> str:
    """Return a name for a process, as short as the system keeps."""
    return "x" + secrets.token_hex(6)


NAME_ITSELF = "import ctypes\nctypes.CDLL(None).prctl(15, {mark!r}.encode(), 0, 0, 0)\n"
"""Start of a program that takes the name ``mark``."""
