from __future__ import annotations

import os
from pathlib import Path

import gymnasium
import pytest

import rllm_envs  # noqa: F401
from rllm_envs.errors import EnvProcessError
from rllm_envs.vector.env_process import EnvHungError, EnvProcess, EnvRaisedError
from rllm_envs.vector.wire import UnsendableError

CLASS = {"do": "make", "class": "env_process_case:Case"}
SOURCE = """
import time

class Case:
    num_closed = 0

    def __init__(self, task):
        self.task = task

    @classmethod
    def from_dict(cls, task):
        return cls(task)

    def step(self, action):
        if action == "hang":
            time.sleep(600)
        if action == "raise":
            raise KeyError("k")
        return action * self.task.get("times", 1), Case.num_closed

    async def later(self, value):
        return value + 1

    def close(self):
        Case.num_closed += 1
"""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "env_process_case.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    process = EnvProcess()
    yield process
    process.close()
    assert not process.is_usable
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def step(action: str) -> dict:
    return {"do": "call", "name": "step", "arguments": (action,)}


def test_one_process_makes_environments_one_after_the_other(process: EnvProcess) -> None:
    process.ask({**CLASS, "task": {"times": 2}})
    assert process.ask(step("ab")) == ("abab", 0)
    assert process.ask({"do": "call", "name": "later", "arguments": (1,)}) == 2
    process.ask({"do": "release"})
    process.ask({**CLASS, "task": {}})
    assert process.ask(step("ab")) == ("ab", 1)
    spec = gymnasium.spec("rllm/Arithmetic-v0").to_json()
    process.ask({"do": "make", "spec": spec})
    observation, info = process.ask({"do": "call", "name": "reset", "named": {"seed": 1}})
    expected, expected_info = gymnasium.make("rllm/Arithmetic-v0").reset(seed=1)
    assert (observation, info) == (expected, expected_info)
    assert process.is_usable


def test_what_is_raised_is_told_with_all_its_classes(process: EnvProcess) -> None:
    process.ask({**CLASS, "task": {}})
    with pytest.raises(EnvRaisedError, match="KeyError: 'k'") as raised:
        process.ask(step("raise"))
    names = ("KeyError", "LookupError", "Exception", "BaseException", "object")
    assert raised.value.kinds == names
    with pytest.raises(EnvRaisedError, match="ModuleNotFoundError"):
        process.ask({"do": "make", "class": "no_such_module:Env", "task": {}})
    with pytest.raises(UnsendableError):
        process.ask(step(object()))  # type: ignore[arg-type]
    assert process.is_usable


def test_a_call_that_hangs_leaves_a_process_that_is_not_used_again(process: EnvProcess) -> None:
    process.ask({**CLASS, "task": {}})
    with pytest.raises(EnvHungError, match=r"longer than 0\.2 s"):
        process.ask(step("hang"), 0.2)
    assert not process.is_usable
    with pytest.raises(EnvProcessError, match="owes an answer"):
        process.ask(step("a"))


def test_an_answer_without_end_is_not_read(process: EnvProcess) -> None:
    process.ask({**CLASS, "task": {"times": 1_000_000}})
    process.max_reply_bytes = 100_000
    with pytest.raises(EnvProcessError, match="more than 100000 bytes"):
        process.ask(step("x"))
    assert not process.is_usable
