"""What a program in lockdown may do: which system calls, and which files it may read.

The filter is an allowlist: a call that is not in ``_CALLS`` answers EPERM. Numbers are those of
``asm/unistd_64.h`` for x86-64 and of ``asm-generic/unistd.h`` for aarch64.
"""

import errno
import os
import platform
import struct
import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache

# name: (x86-64, aarch64); None where the architecture lacks it.
_CALLS: dict[str, tuple[int | None, int | None]] = {
    # Data in and out.
    **{"read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66)},
    **{"pread64": (17, 67), "pwrite64": (18, 68), "preadv": (295, 69), "pwritev": (296, 70)},
    **{"preadv2": (327, 286), "pwritev2": (328, 287), "lseek": (8, 62), "close": (3, 57)},
    **{"close_range": (436, 436), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24)},
    **{"pipe": (22, None), "pipe2": (293, 59), "sendfile": (40, 71)},
    **{"copy_file_range": (326, 285)},
    # Files; Landlock decides which.
    **{"creat": (85, None), "access": (21, None), "faccessat": (269, 48)},
    **{"faccessat2": (439, 439), "stat": (4, None), "lstat": (6, None), "fstat": (5, 80)},
    **{"newfstatat": (262, 79), "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44)},
    **{"readlink": (89, None), "readlinkat": (267, 78), "getcwd": (79, 17), "chdir": (80, 49)},
    **{"fchdir": (81, 50), "getdents": (78, None), "getdents64": (217, 61), "umask": (95, 166)},
    **{"mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None)},
    **{"unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38)},
    **{"renameat2": (316, 276), "link": (86, None), "linkat": (265, 37), "symlink": (88, None)},
    **{"symlinkat": (266, 36), "ftruncate": (77, 46), "fsync": (74, 82), "fdatasync": (75, 83)},
    **{"flock": (73, 32), "fadvise64": (221, 223)},
    # Memory.
    **{"mmap": (9, 222), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216)},
    **{"madvise": (28, 233), "brk": (12, 214), "msync": (26, 227), "membarrier": (324, 283)},
    # Waiting.
    **{"poll": (7, None), "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72)},
    **{"epoll_create": (213, None), "epoll_create1": (291, 20), "epoll_ctl": (233, 21)},
    **{"epoll_wait": (232, None), "epoll_pwait": (281, 22), "epoll_pwait2": (441, 441)},
    **{"eventfd": (284, None), "eventfd2": (290, 19), "futex": (202, 98), "pause": (34, None)},
    # Pairs of connected sockets, as asyncio makes; there is no socket, bind, connect or accept.
    **{"sendto": (44, 206), "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212)},
    **{"shutdown": (48, 210), "getsockname": (51, 204), "getpeername": (52, 205)},
    **{"getsockopt": (55, 209)},
    # Signals to itself, threads, its end.
    **{"rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139)},
    **{"rt_sigpending": (127, 136), "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137)},
    **{"sigaltstack": (131, 132), "exit": (60, 93), "exit_group": (231, 94)},
    **{"wait4": (61, 260), "waitid": (247, 95), "restart_syscall": (219, 128)},
    **{"set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293)},
    **{"arch_prctl": (158, None)},
    # Who and what it is.
    **{"getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174)},
    **{"geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177)},
    **{"getresuid": (118, 148), "getresgid": (120, 150), "getgroups": (115, 158)},
    **{"getpgid": (121, 155), "getpgrp": (111, None), "getsid": (124, 156), "capget": (125, 90)},
    **{"getrlimit": (97, 163), "getrusage": (98, 165), "times": (100, 153), "uname": (63, 160)},
    **{"sysinfo": (99, 179), "getcpu": (309, 168), "getrandom": (318, 278)},
    **{"sched_yield": (24, 124), "sched_getaffinity": (204, 123), "sched_getparam": (143, 121)},
    **{"sched_getscheduler": (145, 120), "sched_get_priority_max": (146, 125)},
    **{"sched_get_priority_min": (147, 126), "getpriority": (140, 141)},
    # Time.
    **{"clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115)},
    **{"nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, None)},
    **{"alarm": (37, None), "setitimer": (38, 103), "getitimer": (36, 102)},
}
_CHECKED = {
    **{"open": (2, None), "openat": (257, 56), "fcntl": (72, 25), "ioctl": (16, 29)},
    **{"prctl": (157, 167), "clone": (56, 220), "kill": (62, 129), "tgkill": (234, 131)},
    **{"socketpair": (53, 199), "prlimit64": (302, 261)},
}
_ABSENT = {"clone3": (435, 435), "openat2": (437, 437)}
"""Answered ENOSYS, so that the C library falls back to the calls whose arguments can be read."""
_CAPSET = (126, 91)

_FCNTL = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)
"""Duplicate, flags, locks. Not F_SETOWN and F_SETSIG, by which a signal reaches other processes."""
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
"""Terminal attributes and size, bytes to read, non-blocking, close on exec. Not TIOCSTI."""
_PRCTL = (3, 15, 16, 21, 23, 39, 0x53564D41)
"""Read dumpable, name, seccomp mode, capabilities, no_new_privs; set names."""

_AUDIT_X86_64, _AUDIT_AARCH64 = 0xC000003E, 0xC00000B7
_X32_BIT = 0x40000000
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NR, _ARCH, _ARGUMENTS = 0, 4, 16

_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
_O_ACCMODE, _O_TRUNC = 0x3, 0x200
_AF_UNIX, _SOCK_STREAM, _SOCK_TYPE = 1, 1, 0xF

_SYSTEM_FILES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"),
    *("/usr/share/zoneinfo", "/etc/localtime", "/dev/null", "/dev/zero", "/dev/urandom"),
)


@dataclass(frozen=True, slots=True)
class Lockdown:
    """What a child gives up. Made by ``lockdown_policy``, read by ``inside.confine.lock_down``."""

    readable: tuple[str, ...]
    """Files and folders that may be read."""
    seccomp: bytes
    """The filter, as an array of ``struct sock_filter``."""
    pid_offsets: tuple[int, ...]
    """Places in it for the number of the process."""
    capset: int
    """Number of the system call that sets capabilities."""


@lru_cache(maxsize=1)
def lockdown_policy() -> Lockdown | None:
    """Return the policy for this machine; None where lockdown is not written for it."""
    machine = platform.machine()
    if sys.platform != "linux" or machine not in ("x86_64", "aarch64"):
        return None
    column = 0 if machine == "x86_64" else 1
    program, offsets = seccomp_filter(column)
    return Lockdown(_readable(), program, offsets, _CAPSET[column])


def import_path() -> list[str]:
    """Return where programs find modules: the standard library and the installed packages."""
    paths = sysconfig.get_paths()
    library = paths["stdlib"]
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    found = [os.path.join(os.path.dirname(library), zipped), library]
    found.append(sysconfig.get_config_var("DESTSHARED") or os.path.join(library, "lib-dynload"))
    found += [paths["purelib"], paths["platlib"]]
    return list(dict.fromkeys(found))


def _readable() -> tuple[str, ...]:
    inside = os.path.join(os.path.dirname(__file__), "inside")
    libraries = [os.path.join(sys.base_prefix, "lib")]
    places = [*import_path(), *libraries, *_SYSTEM_FILES, inside]
    return tuple(dict.fromkeys(os.path.realpath(place) for place in places))


def seccomp_filter(column: int) -> tuple[bytes, tuple[int, ...]]:
    """Return the filter for x86-64 (column 0) or aarch64 (1), and where the process number goes.

    A filter that was made for another architecture kills the process at its first call.
    """
    code = _Assembler()
    code.load(_ARCH)
    code.unless_equal((_AUDIT_X86_64, _AUDIT_AARCH64)[column], _KILL)
    code.load(_NR)
    if column == 0:
        code.add(_AT_LEAST, _X32_BIT, 0, 1)
        code.add(_RETURN, _KILL)
    for numbers in _CALLS.values():
        if (number := numbers[column]) is not None:
            code.when_equal(number, _ALLOW)
    for numbers in _ABSENT.values():
        code.when_equal(numbers[column], _ERRNO | errno.ENOSYS)
    for name, numbers in _CHECKED.items():
        if (number := numbers[column]) is not None:
            code.add_block(number, _argument_check(name))
    code.add(_RETURN, _ERRNO | errno.EPERM)
    return code.program(), code.pid_offsets()


def _argument_check(name: str) -> "_Assembler":
    """Return code that ends with a verdict on the arguments of a call."""
    code, denied = _Assembler(), _ERRNO | errno.EPERM
    if name in ("open", "openat"):
        # Before its version 3, Landlock lets a file be emptied that is opened for reading.
        code.load_argument(1 if name == "open" else 2)
        code.add(_AND, _O_ACCMODE | _O_TRUNC)
        code.when_equal(_O_TRUNC, denied)
        code.add(_RETURN, _ALLOW)
        return code
    if name == "clone":
        code.load_argument(0)
        code.add(_ANY_BIT, _CLONE_NAMESPACES, 0, 1)
        code.add(_RETURN, denied)
        code.add(_ANY_BIT, _CLONE_THREAD, 0, 1)
        code.add(_RETURN, _ALLOW)
    elif name in ("kill", "tgkill"):
        code.load_argument(0)
        code.when_own_pid(_ALLOW)
    elif name == "socketpair":
        # A datagram socket could send to any socket that has an address.
        code.load_argument(0)
        code.unless_equal(_AF_UNIX, denied)
        code.load_argument(1)
        code.add(_AND, _SOCK_TYPE)
        code.when_equal(_SOCK_STREAM, _ALLOW)
    elif name == "prlimit64":
        # Reading limits only: no pointer to new ones.
        for half in (0, 4):
            code.load_argument(2, half)
            code.unless_equal(0, denied)
        code.add(_RETURN, _ALLOW)
        return code
    else:
        code.load_argument(0 if name == "prctl" else 1)
        for value in {"fcntl": _FCNTL, "ioctl": _IOCTL, "prctl": _PRCTL}[name]:
            code.when_equal(value, _ALLOW)
    code.add(_RETURN, denied)
    return code


class _Assembler:
    """Instructions of classic BPF: ``struct sock_filter {u16 code; u8 jt, jf; u32 k}``."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, int, int, int]] = []
        self._own_pid: list[int] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self._instructions.append((code, if_true, if_false, value))

    def load(self, offset: int) -> None:
        self.add(_LOAD, offset)

    def load_argument(self, index: int, half: int = 0) -> None:
        """Load the low (0) or high (4) half of an argument; both machines are little-endian."""
        self.load(_ARGUMENTS + 8 * index + half)

    def when_equal(self, value: int, verdict: int) -> None:
        self.add(_EQUAL, value, 0, 1)
        self.add(_RETURN, verdict)

    def unless_equal(self, value: int, verdict: int) -> None:
        self.add(_EQUAL, value, 1, 0)
        self.add(_RETURN, verdict)

    def when_own_pid(self, verdict: int) -> None:
        self._own_pid.append(len(self._instructions))
        self.when_equal(0, verdict)

    def add_block(self, number: int, block: "_Assembler") -> None:
        """Add code that decides on one call."""
        self.add(_EQUAL, number, 0, len(block._instructions))
        self._own_pid += [len(self._instructions) + place for place in block._own_pid]
        self._instructions += block._instructions

    def program(self) -> bytes:
        return b"".join(struct.pack("=HBBI", *item) for item in self._instructions)

    def pid_offsets(self) -> tuple[int, ...]:
        return tuple(8 * place + 4 for place in self._own_pid)
