"""A process with libraries loaded that forks a child for each run.

It runs nothing itself. A request is one byte on the socket with descriptors: the request's file,
stdin, stdout, stderr, the ready mark, a lifeline, and the channels. When the child has ended,
its wait status, processor time and memory go back on the lifeline; when the other end of the
lifeline is shut, the child is killed. So nobody handles process numbers but the parent of the
process, who cannot mistake one for another.
"""

import array
import contextlib
import gc
import importlib
import marshal
import os
import resource
import selectors
import signal
import socket
import sys
from typing import NoReturn

_MOST_CHANNELS = 8
_LOOKS_FIRST = hasattr(os, "waitid")
"""Whether what a child left can be killed before its number is given back; macOS learnt it late."""
LIFELINE = 5
"""Place of the lifeline among the descriptors of a request."""


class ForkServer:
    """Serve requests until the socket closes; then kill what still runs and end.

    Args:
        requests: The socket.
    """

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._pid = os.getpid()
        self._lifelines: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(requests, selectors.EVENT_READ)
        wake, self._wake = socket.socketpair()
        self._wake_end = wake
        for end in (wake, self._wake):
            end.setblocking(False)
        self._selector.register(wake, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Answer requests."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._requests:
                    if not self._accept():
                        return
                elif key.data is None:
                    self._drain_wake()
                elif key.data in self._lifelines:
                    self._kill(key.data)
            self._reap()

    def _accept(self) -> bool:
        """Fork for one request; return False when there will be no more."""
        size = socket.CMSG_SPACE((6 + _MOST_CHANNELS) * 4)
        data, ancillary, flags, _ = self._requests.recvmsg(1, size)
        numbers = array.array("i")
        for level, kind, payload in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                numbers.frombytes(payload[: len(payload) - len(payload) % 4])
        if not data:
            return False
        try:
            pid = -1 if flags & socket.MSG_CTRUNC else os.fork()
        except OSError:  # there are no more processes, or no more memory
            pid = -1
        if pid == 0:
            self._become_child(list(numbers))
        kept = LIFELINE if pid > 0 else None
        for place, number in enumerate(numbers):
            if place != kept:
                os.close(number)  # of a lifeline, the other end then knows that there is no child
        if kept is not None:
            self._lifelines[pid] = socket.socket(fileno=numbers[LIFELINE])
            self._selector.register(self._lifelines[pid], selectors.EVENT_READ, pid)
        return True

    def _become_child(self, numbers: list[int]) -> NoReturn:
        try:
            import program

            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            request_file, stdin, stdout, stderr, ready, _, *channels = numbers
            os.setsid()
            for target, number in enumerate((stdin, stdout, stderr)):
                os.dup2(number, target)
            with os.fdopen(request_file, "rb", closefd=False) as file:
                request = marshal.load(file)
            if sys.platform == "linux":
                request["parent"] = self._pid
            program.run_request(request, program.take_descriptors(ready, channels))
        except BaseException as error:
            os.write(2, f"the fork server's child: {error!r}\n".encode())
        finally:
            os._exit(1)

    def _kill(self, pid: int) -> None:
        # The child is ours and not reaped, so the number is its own; the group holds what it left.
        self._selector.unregister(self._lifelines[pid])
        _kill_group(pid)

    def _drain_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake_end.recv(4096):
                pass

    def _reap(self) -> None:
        for pid in list(self._lifelines):
            if _LOOKS_FIRST:
                if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                    continue
                _kill_group(pid)
            ended, status, usage = os.wait4(pid, os.WNOHANG)
            if not ended:
                continue
            lifeline = self._lifelines.pop(pid)
            from report import REPORT

            unit = 1 if sys.platform == "darwin" else 1024
            report = REPORT.pack(status, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * unit)
            with contextlib.suppress(KeyError):  # where it was shut, and the child killed for it
                self._selector.unregister(lifeline)
            with contextlib.suppress(OSError):  # where nobody waits any more
                lifeline.send(report)
            lifeline.close()

    def close(self) -> None:
        """Kill what still runs."""
        for pid in self._lifelines:
            _kill_group(pid)


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def _allow_descriptors() -> None:
    """Take as many descriptors as the system gives: each child holds one here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main() -> None:
    """Load the modules named on the command line, say so with one byte, and serve."""
    sys.path.insert(0, os.path.dirname(__file__))
    import program  # noqa: F401  # loaded once, for all children

    # Who started this may have blocked the signal that tells of a child's end.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _allow_descriptors()
    requests = socket.socket(fileno=int(sys.argv[1]))
    paths, modules = marshal.loads(bytes.fromhex(sys.argv[2]))
    sys.path[1:] = paths
    for name in modules:
        with contextlib.suppress(ImportError):  # it is not installed
            importlib.import_module(name)
    # The collector would otherwise write to every object that the children share.
    gc.collect()
    gc.freeze()
    server = ForkServer(requests)
    requests.sendall(b"R")
    try:
        server.serve()
    finally:
        server.close()


if __name__ == "__main__":
    main()
