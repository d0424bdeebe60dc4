"""The hostile programs of docs/security.md, over each level that this machine reaches."""

import os
import subprocess
import sys

import hostile_programs
import pytest

from rllm_envs.errors import SandboxUnavailableError
from rllm_envs.sandbox import LEVELS, Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the programs attack Linux")


@pytest.fixture(scope="module", params=[*LEVELS, "lockdown in fresh interpreters"])
def sandbox(request):
    level, _, fresh = request.param.partition(" ")
    try:
        with Sandbox(level, fork_server=not fresh, modules=["numpy"], allow_unsafe=True) as made:
            yield made
    except SandboxUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def machine():
    with hostile_programs.attacked_machine() as attacked:
        yield attacked


@pytest.mark.parametrize("row", hostile_programs.ROWS, ids=lambda row: row.name)
def test_the_program_is_stopped(sandbox, machine, row):
    if row.must_hold_from == "lockdown" and sandbox.level == "process":
        pytest.skip("not stopped by resource limits, as documented")
    assert row.is_stopped(sandbox, machine)


def test_the_programs_do_harm_where_nothing_confines_them(machine):
    """The rows can fail: most do at the level that only limits resources."""
    with Sandbox("process", fork_server=False, allow_unsafe=True) as sandbox:
        names = ("read /etc/passwd", "an abstract unix socket", "a shell, by subprocess")
        rows = [row for row in hostile_programs.ROWS if row.name.startswith(names)]
        assert [row.is_stopped(sandbox, machine) for row in rows] == [False] * len(names)


@pytest.mark.skipif(os.geteuid() != 0, reason="the tests run as an unprivileged user already")
def test_lockdown_holds_for_an_unprivileged_user(tmp_path):
    """Run by a user of its own, where the interpreter can be read by one."""
    script = (
        "import os, sys\n"
        f"sys.path[:0] = [{os.path.dirname(hostile_programs.__file__)!r}]\n"
        "import hostile_programs as h\n"
        "from rllm_envs.sandbox import Sandbox\n"
        "with Sandbox('lockdown', modules=[]) as s, h.attacked_machine() as m:\n"
        "    bad = [r.name for r in h.ROWS if not r.is_stopped(s, m)]\n"
        "print(os.getuid(), bad)\n"
    )
    (tmp_path / "run.py").write_text(script)
    as_nobody = {"user": 65534, "group": 65534, "extra_groups": [], "cwd": "/"}
    try:
        subprocess.run([sys.executable, "-c", "import rllm_envs"], check=True, **as_nobody)
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("another user cannot read this interpreter")
    tmp_path.chmod(0o755)
    result = subprocess.run(
        [sys.executable, str(tmp_path / "run.py")],
        capture_output=True,
        text=True,
        timeout=120,
        **as_nobody,
    )
    assert result.stdout.strip() == "65534 []", result.stderr
