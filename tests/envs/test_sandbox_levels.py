import sys

import pytest

from rllm_envs.errors import SandboxError, SandboxUnavailableError
from rllm_envs.sandbox import levels
from rllm_envs.sandbox.launch import Confinement
from rllm_envs.sandbox.levels import describe, reach
from rllm_envs.sandbox.policy import Lockdown, lockdown_policy

linux = pytest.mark.skipif(sys.platform != "linux", reason="lockdown is for Linux")


@linux
def test_a_level_that_stops_nothing_is_not_taken_for_lockdown():
    with pytest.raises(SandboxError, match="not stopped from: read, write, connect, signal, fork"):
        levels._test("lockdown", Confinement(None))


@linux
def test_a_level_in_which_nothing_runs_is_not_taken():
    policy = lockdown_policy()
    assert policy is not None
    blind = Lockdown((), policy.seccomp, policy.pid_offsets, policy.capset)
    with pytest.raises(SandboxError, match="does not run"):
        levels._test("lockdown", Confinement(blind))


def test_root_is_refused_where_only_resources_are_limited(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    reach.cache_clear()
    with pytest.raises(SandboxUnavailableError, match="run as another user"):
        reach("process")
    assert reach("process", allow_unsafe=True) == Confinement(None)


def test_a_missing_program_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    reach.cache_clear()
    problem = "install the package bubblewrap" if lockdown_policy() else "for Linux"
    with pytest.raises(SandboxUnavailableError, match=problem):
        reach("bwrap")


@pytest.mark.parametrize("level", levels.LEVELS)
def test_a_level_says_what_it_does_not_stop(level):
    text = describe(level)
    assert text.startswith(f"python sandbox: {level} (")
    assert "not stopped: " in text
    assert "\n" not in text
