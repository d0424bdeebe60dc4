"""Give up rights, step by step, in the process that is about to run a stranger's code.

Every step applies to the calling process only and cannot be taken back: resource limits, no new
privileges, no capabilities, Landlock (which files), seccomp (which system calls). What to allow is
decided outside (``sandbox.policy``) and arrives as plain data.
"""

import ctypes
import os
import resource
import struct

_PR_SET_PDEATHSIG = 1
_SIGKILL = 9  # the signal module takes a few milliseconds to import
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_CREATE_RULESET_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1
_CAPABILITY_VERSION_3 = 0x20080522

# Landlock's rights on files: https://docs.kernel.org/userspace-api/landlock.html
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_FIRST_RIGHTS = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_TCP = 3
_MOST_THREADS = 4096
"""Far more than programs need, far less than a system has; theirs, and those of all others."""
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3


class ConfineError(Exception):
    """A right could not be given up; the code must not run."""


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process when the thread that started it ends.

    Raises:
        ConfineError: The parent has ended already.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "PR_SET_PDEATHSIG")
    if os.getppid() != parent:
        raise ConfineError("the process that asked for the run has ended")


def limit_resources(*, cpu_seconds: int, memory_bytes: int, file_bytes: int) -> None:
    """Set limits that the kernel keeps for each process.

    Args:
        cpu_seconds: Processor time; the process is killed a second later.
        memory_bytes: Address space beyond what the process has now.
        file_bytes: Size of any file that it writes.
    """
    limits = {
        resource.RLIMIT_CPU: (cpu_seconds, cpu_seconds + 1),
        resource.RLIMIT_AS: (address_space() + memory_bytes,) * 2,
        resource.RLIMIT_FSIZE: (file_bytes, file_bytes),
        resource.RLIMIT_NOFILE: (256, 256),
        resource.RLIMIT_CORE: (0, 0),
    }
    threads = _threads_of_machine()
    if threads:
        # The kernel counts all threads of a user (and does not count those of root).
        limits[resource.RLIMIT_NPROC] = (threads + _MOST_THREADS,) * 2
    for kind, (soft, hard) in limits.items():
        _, most = resource.getrlimit(kind)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        try:
            resource.setrlimit(kind, (soft, hard))
        except (ValueError, OSError):
            if kind != resource.RLIMIT_AS or os.path.exists("/proc/self/statm"):
                raise ConfineError(f"resource limit {kind} cannot be set") from None
            # macOS has no limit on address space.


def _threads_of_machine() -> int:
    """Return how many threads there are; 0 where the system does not say."""
    try:
        with open("/proc/loadavg", "rb") as file:
            return int(file.read().split()[3].partition(b"/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def offer_to_be_killed() -> None:
    """Have the kernel take this process, not one that matters, where memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "wb") as file:
            file.write(b"1000")
    except OSError:
        pass  # there is no such file elsewhere than on Linux


def address_space() -> int:
    """Return the bytes of address space in use; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def lock_down(
    *, readable: list[str], writable: list[str], seccomp: bytes, pid_offsets: list[int], capset: int
) -> None:
    """Give up all rights but computing, reading some files, and writing into some folders.

    Args:
        readable: Files and folders that may be read; absent ones are left out.
        writable: Files and folders that may also be written.
        seccomp: The system call filter, as an array of ``struct sock_filter``.
        pid_offsets: Where in it this process's number is to be filled in.
        capset: Number of the system call that sets capabilities.

    Raises:
        ConfineError: The system refuses a step.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS")
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _check(libc.syscall(ctypes.c_long(capset), header, bytes(24)), "capset")
    _apply_landlock(libc, readable, writable)
    _apply_seccomp(libc, seccomp, pid_offsets)


def landlock_abi() -> int:
    """Return the version of Landlock that the kernel speaks; 0 where it has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = ctypes.c_long(_LANDLOCK_CREATE_RULESET)
    version = libc.syscall(number, None, ctypes.c_size_t(0), _LANDLOCK_CREATE_RULESET_VERSION)
    return max(0, version)


def _apply_landlock(libc: ctypes.CDLL, readable: list[str], writable: list[str]) -> None:
    abi = landlock_abi()
    if abi < 1:
        raise ConfineError("the kernel has no Landlock (Linux 5.13 and later have it)")
    rights = _FIRST_RIGHTS
    rights |= _REFER if abi >= 2 else 0
    rights |= _TRUNCATE if abi >= 3 else 0
    rights |= _IOCTL_DEV if abi >= 5 else 0
    attributes = struct.pack("Q", rights)
    attributes += struct.pack("Q", _NET_TCP) if abi >= 4 else b""
    attributes += struct.pack("Q", _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS) if abi >= 6 else b""
    ruleset = libc.syscall(
        ctypes.c_long(_LANDLOCK_CREATE_RULESET), attributes, ctypes.c_size_t(len(attributes)), 0
    )
    _check(ruleset, "landlock_create_ruleset")
    try:
        for path in readable:
            _allow(libc, ruleset, path, _READ_FILE | _READ_DIR)
        for path in writable:
            _allow(libc, ruleset, path, rights & ~_EXECUTE & ~_IOCTL_DEV)
        restrict = ctypes.c_long(_LANDLOCK_RESTRICT_SELF)
        _check(libc.syscall(restrict, ctypes.c_int(ruleset), 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _ON_FILES
        rule = struct.pack("=Qi", rights, place)
        number = ctypes.c_long(_LANDLOCK_ADD_RULE)
        code = libc.syscall(number, ctypes.c_int(ruleset), _LANDLOCK_RULE_PATH_BENEATH, rule, 0)
        _check(code, f"landlock_add_rule of {path}")
    finally:
        os.close(place)


def _apply_seccomp(libc: ctypes.CDLL, program: bytes, pid_offsets: list[int]) -> None:
    instructions = bytearray(program)
    for offset in pid_offsets:
        struct.pack_into("=I", instructions, offset, os.getpid())
    buffer = ctypes.create_string_buffer(bytes(instructions), len(instructions))
    # struct sock_fprog: a count, padding, a pointer.
    descriptor = struct.pack("@HP", len(instructions) // 8, ctypes.addressof(buffer))
    code = libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, descriptor, 0, 0)
    _check(code, "PR_SET_SECCOMP")


def _check(code: int, what: str) -> None:
    if code < 0:
        raise ConfineError(f"{what}: {os.strerror(ctypes.get_errno())}")
