"""The system call filter, run by an interpreter of its instructions, for both architectures."""

import errno
import struct

import pytest

from rllm_envs.sandbox.policy import import_path, lockdown_policy, seccomp_filter

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50000 | 1, 0x50000 | errno.ENOSYS
ARCHITECTURES = {"x86-64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
PID = 4321


def verdict(column, number, *arguments, architecture=None):
    """What the kernel would answer: classic BPF over struct seccomp_data."""
    program, offsets = seccomp_filter(column)
    code = bytearray(program)
    for offset in offsets:
        struct.pack_into("=I", code, offset, PID)
    arguments = [*arguments, *[0] * (6 - len(arguments))]
    audit = architecture or list(ARCHITECTURES.values())[column][1]
    masked = [argument & 2**64 - 1 for argument in arguments]
    data = struct.pack("=iIQ6Q", number, audit, 0, *masked)
    instructions = list(struct.iter_unpack("=HBBI", bytes(code)))
    register, place = 0, 0
    while True:
        operation, if_true, if_false, value = instructions[place]
        place += 1
        if operation == 0x20:
            (register,) = struct.unpack_from("=I", data, value)
        elif operation == 0x54:
            register &= value
        elif operation == 0x06:
            return value
        else:
            holds = {
                0x15: register == value,
                0x35: register >= value,
                0x45: register & value != 0,
            }[operation]
            place += if_true if holds else if_false


# Numbers as the kernel's headers give them, x86-64 and aarch64.
ALLOWED = {"read": (0, 63), "openat": (257, 56), "futex": (202, 98), "exit_group": (231, 94)}
REFUSED = {
    **{"socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "execve": (59, 221)},
    **{"ptrace": (101, 117), "mount": (165, 40), "unshare": (272, 97), "setsid": (112, 157)},
    **{"chmod by descriptor": (91, 52), "truncate": (76, 45), "memfd_create": (319, 279)},
    **{"shmget": (29, 194), "bpf": (321, 280), "io_uring_setup": (425, 425), "keyctl": (250, 219)},
    **{"pidfd_send_signal": (424, 424), "pidfd_open": (434, 434), "setrlimit": (160, 164)},
    **{"userfaultfd": (323, 282), "perf_event_open": (298, 241), "process_vm_readv": (310, 270)},
    **{
        "setuid": (105, 146),
        "chroot": (161, 51),
        "rt_sigqueueinfo": (129, 138),
        "tkill": (200, 130),
    },
    **{"fchownat": (260, 54), "utimensat": (280, 88), "setxattr": (188, 5), "mknodat": (259, 33)},
    **{"landlock_create_ruleset": (444, 444), "seccomp": (317, 277), "setpgid": (109, 154)},
}


@pytest.fixture(params=ARCHITECTURES)
def column(request):
    return ARCHITECTURES[request.param][0]


@pytest.mark.parametrize("name", ALLOWED)
def test_calls_that_programs_need_are_allowed(column, name):
    assert verdict(column, ALLOWED[name][column]) == ALLOW


@pytest.mark.parametrize("name", REFUSED)
def test_calls_that_reach_out_are_refused(column, name):
    assert verdict(column, REFUSED[name][column]) == EPERM


def test_calls_with_arguments_behind_pointers_are_absent(column):
    assert verdict(column, 435) == ENOSYS  # clone3
    assert verdict(column, 437) == ENOSYS  # openat2


def test_another_architecture_is_killed(column):
    other = ARCHITECTURES["aarch64" if column == 0 else "x86-64"][1]
    assert verdict(column, 63, architecture=other) == KILL
    assert verdict(column, 0, architecture=0x40000003) == KILL  # i386


def test_x32_calls_are_killed():
    assert verdict(0, 0x40000000) == KILL


@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ((56, 220), (0x00010000 | 0x100,), ALLOW),  # a thread
        ((56, 220), (17,), EPERM),  # a process
        ((56, 220), (0x10010000,), EPERM),  # a thread in a new user name space
        ((62, 129), (PID, 9), ALLOW),
        ((62, 129), (PID + 1, 9), EPERM),
        ((62, 129), (0, 9), EPERM),
        ((62, 129), (-1, 9), EPERM),
        ((234, 131), (PID, PID, 9), ALLOW),
        ((234, 131), (1, 1, 9), EPERM),
        ((53, 199), (1, 1 | 0o2000000, 0), ALLOW),  # stream sockets, closed on exec
        ((53, 199), (1, 2, 0), EPERM),  # datagrams
        ((53, 199), (2, 1, 0), EPERM),  # not AF_UNIX
        ((302, 261), (0, 9, 0), ALLOW),  # read a limit
        ((302, 261), (0, 9, 0x7FFF12345678), EPERM),
        ((302, 261), (0, 9, 0x100000000), EPERM),  # a pointer whose low half is 0
        ((72, 25), (1, 3), ALLOW),  # F_GETFL
        ((72, 25), (1, 8), EPERM),  # F_SETOWN
        ((72, 25), (1, 10), EPERM),  # F_SETSIG
        ((72, 25), (1, 15), EPERM),  # F_SETOWN_EX
        ((16, 29), (1, 0x5413), ALLOW),  # TIOCGWINSZ
        ((16, 29), (1, 0x5412), EPERM),  # TIOCSTI
        ((16, 29), (1, 0x8901), EPERM),  # FIOSETOWN
        ((157, 167), (15,), ALLOW),  # PR_SET_NAME
        ((157, 167), (1,), EPERM),  # PR_SET_PDEATHSIG
        ((157, 167), (22,), EPERM),  # PR_SET_SECCOMP
        ((257, 56), (-100, 0, 0o1000), EPERM),  # read only, but emptied
        ((257, 56), (-100, 0, 0o1001), ALLOW),  # Landlock decides
    ],
)
def test_arguments_decide(column, call, arguments, expected):
    assert verdict(column, call[column], *arguments) == expected


def test_the_policy_names_what_may_be_read():
    policy = lockdown_policy()
    if policy is None:
        pytest.skip("there is no lockdown on this system")
    assert not {"/", "/etc", "/home", "/root", "/proc", "/tmp", "/sys"} & set(policy.readable)
    assert all(path.startswith("/") for path in (*policy.readable, *import_path()))
