"""Environments that raise, hang or die harm themselves alone, and nothing is left behind."""

import os
import select
import signal
import subprocess
import sys
import threading

import gymnasium
import numpy as np
import pytest
from walk_envs import GATES, RELEASE

from rllm_envs import EnvArgumentError
from rllm_envs.errors import EnvProcessError
from rllm_envs.vector import TextVectorEnv
from rllm_envs.wrappers import DictObservation

EXECUTORS = {"inline": {}, "threads": {"deadline": 60.0}, "processes": {"isolation": "process"}}
FAILURE = {"success": False, "invalid": False, "turns_left": 0}
LIMIT = 30.0
THREE = {"length": 6, "salt": 1}


@pytest.fixture(autouse=True)
def _let_hanging_steps_go():
    RELEASE.clear()
    yield
    RELEASE.set()


def faulty_pool(num_envs, mode="Disabled", **arguments):
    return TextVectorEnv.from_ids(["test/Faulty-v0"] * num_envs, autoreset_mode=mode, **arguments)


def walk_alone(seed, actions):
    env = gymnasium.make("test/Walk-v0")
    return [env.reset(seed=seed)[0]] + [env.step(action)[0] for action in actions]


def threads_of_pools():
    return {thread for thread in threading.enumerate() if thread.name == "rllm-vector"}


def descriptors():
    return set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()


def seed_of_length(length):
    """A seed whose walk is long enough for what a test does."""
    env = gymnasium.make("test/Walk-v0")
    for seed in range(100):
        env.reset(seed=seed)
        if env.unwrapped.task["length"] >= length:
            return seed
    raise AssertionError("no such walk")


SEED = seed_of_length(4)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_env_that_raises_is_truncated_and_made_afresh(executor):
    envs = faulty_pool(3, **EXECUTORS[executor])
    try:
        envs.reset(seed=[SEED] * 3)
        for place, fault in ((1, "raise"), (2, "exit")):
            actions = ["a", "a", "a"]
            actions[place] = fault
            observations, rewards, terminated, truncated, infos = envs.step(actions)
            assert truncated.tolist() == [n == place for n in range(3)]
            assert not terminated.any()
            assert (observations[place], rewards[place]) == ("", 0.0)
            assert infos["_error"].tolist() == [n == place for n in range(3)]
        assert infos["error"][2].startswith("step failed: SystemExit: 4")
        assert envs.infos_list[2] == {
            **FAILURE, "turn": 2, "env_id": 2, "error": infos["error"][2]
        }  # fmt: skip
        observations, *_ = envs.step(["a", None, None])
        alone = walk_alone(SEED, ["a"] * 3)
        assert observations[0] == alone[3]
        mask = np.array([False, True, True])
        observations, _ = envs.reset(seed=SEED - 1, options={"reset_mask": mask})
        assert observations[0] == alone[3]
        assert observations[1] == alone[0]
        assert not envs.step(["a"] * 3)[3][1:].any()
    finally:
        envs.close()


def test_the_error_says_what_was_raised():
    envs = faulty_pool(1)
    envs.reset(seed=SEED)
    *_, infos = envs.step(["raise"])
    assert infos["error"][0] == "step failed: ValueError: out of bread"
    envs.close()


def test_same_step_goes_on_with_the_next_episode_and_is_reproducible():
    def play():
        envs = faulty_pool(2, "SameStep")
        envs.reset(seed=[SEED, SEED])
        observations, _, terminated, truncated, infos = envs.step(["raise", "a"])
        assert (terminated.tolist(), truncated.tolist()) == ([False, False], [True, False])
        assert observations[0].startswith("start ")
        assert infos["final_obs"][0] == ""
        assert infos["final_info"]["error"][0] == infos["error"][0]
        assert infos["turn"].tolist() == [0, 1]
        shown = [observations, envs.step(["a", "a"])[0], envs.step(["raise", "a"])[0]]
        assert not any(observation[0] == "" for observation in shown)
        envs.close()
        return shown

    assert play() == play()


def test_next_step_makes_the_env_afresh_with_the_action_after():
    envs = faulty_pool(1, "NextStep")
    envs.reset(seed=SEED)
    assert envs.step(["raise"])[3].tolist() == [True]
    observations, _, _, truncated, infos = envs.step(["a"])
    assert observations[0].startswith("start ")
    assert (truncated.tolist(), infos["turn"].tolist()) == ([False], [0])
    envs.close()


def test_a_reset_that_raises_is_a_truncated_turn():
    envs = TextVectorEnv.from_ids(["test/Unlucky-v0"] * 2, autoreset_mode="Disabled")
    observations, infos = envs.reset(seed=[2, 3])
    assert observations == (walk_alone(2, [])[0], "")
    assert infos["error"][1] == "reset failed: OSError: odd"
    assert envs.running.tolist() == [True, False]
    envs.async_reset([1], seeds=[5])
    assert envs.recv()[3].tolist() == [True]
    envs.async_reset([1], seeds=[4])
    assert envs.recv()[0] == (walk_alone(4, [])[0],)
    envs.close()


def test_a_bad_task_in_async_reset_is_a_truncated_turn_and_keeps_the_env():
    envs = TextVectorEnv.from_ids(["rllm/Calculator-v0"])
    envs.async_reset(options={"task": {"expression": "two"}})
    observations, _, _, truncated, infos = envs.recv()
    assert (observations, truncated.tolist()) == (("",), [True])
    assert "TaskError" in infos["error"][0]
    envs.async_reset(options={"task": {"expression": "2 * 3"}})
    assert "2 * 3" in envs.recv()[0][0]
    envs.close()


def test_the_blank_observation_fits_the_space():
    envs = TextVectorEnv(
        [lambda: DictObservation(gymnasium.make("test/Faulty-v0"))], autoreset_mode="Disabled"
    )
    envs.reset(seed=SEED)
    observations, *_ = envs.step(["raise"])
    assert observations == {"question": ("",)}
    assert observations in envs.observation_space
    envs.close()


@pytest.mark.parametrize("mode", ["Disabled", "SameStep"])
def test_a_step_past_the_deadline_is_truncated_and_others_go_on(mode):
    envs = faulty_pool(3, mode, deadline=0.5, max_threads=2)
    before = threads_of_pools()
    envs.reset(seed=[SEED] * 3)
    observations, _, _, truncated, infos = envs.step(["a", "hang", "a"])
    assert truncated.tolist() == [False, True, False]
    assert infos["error"][1] == "step took longer than deadline=0.5 s"
    alone = walk_alone(SEED, ["a", "a"])
    assert (observations[0], observations[2]) == (alone[1], alone[1])
    if mode == "Disabled":
        assert observations[1] == ""
        envs.reset(options={"reset_mask": np.array([False, True, False])})
    else:
        assert observations[1].startswith("start ")
    observations, _, _, truncated, _ = envs.step(["a"] * 3)
    assert (observations[0], truncated.tolist()) == (alone[2], [False] * 3)
    hanging = threads_of_pools() - before
    envs.close()
    RELEASE.set()
    for thread in hanging:
        thread.join(LIMIT)
    assert not threads_of_pools() - before


def test_hanging_envs_do_not_use_up_the_threads():
    envs = faulty_pool(4, deadline=0.5, max_threads=1)
    envs.reset(seed=[SEED] * 4)
    _, _, _, truncated, _ = envs.step(["hang", "hang", "hang", "a"])
    assert truncated.tolist() == [True, True, True, False]
    envs.close()


def test_send_and_recv_keep_the_deadline():
    envs = faulty_pool(2, deadline=0.5)
    envs.reset(seed=[SEED] * 2)
    envs.send(["hang", "a"])
    assert envs.recv(1)[4]["env_id"].tolist() == [1]
    *_, truncated, infos = envs.recv(1)
    assert (infos["env_id"].tolist(), truncated.tolist()) == ([0], [True])
    envs.close()


@pytest.mark.skipif(sys.platform != "linux", reason="pause() and SIGIO as on Linux")
def test_processes_that_die_or_hang_harm_themselves_alone():
    before = descriptors()
    envs = faulty_pool(4, isolation="process", deadline=1.0)
    try:
        envs.reset(seed=[SEED] * 4)
        observations, _, _, truncated, infos = envs.step(["a", "die", "hold", "shout"])
        assert truncated.tolist() == [False, True, True, False]
        alone = walk_alone(SEED, ["a", "a"])
        assert observations[0] == alone[1]
        assert observations[3].startswith("shout ")
        assert "SIGSEGV" in infos["error"][1]
        assert infos["error"][2] == "step failed: took longer than 1 s, killed"
        mask = np.array([False, True, True, False])
        observations, _ = envs.reset(seed=SEED - 1, options={"reset_mask": mask})
        assert (observations[0], observations[1]) == (alone[1], alone[0])
        assert envs.step(["a"] * 4)[0][0] == alone[2]
    finally:
        envs.close()
    assert descriptors() == before


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_close_ends_processes_that_are_in_the_middle_of_a_step():
    before = threads_of_pools()
    envs = faulty_pool(2, isolation="process")
    envs.reset(seed=[SEED] * 2)
    pids = envs.call("np_random_seed"), [slot.env.pid for slot in envs._pool.slots]
    handles = [os.pidfd_open(pid) for pid in pids[1]]
    envs.send(["hold"], [0])
    envs.close()
    for handle in handles:
        assert select.select([handle], [], [], LIMIT)[0]
        os.close(handle)
    assert threads_of_pools() == before


SCRIPT = """
import os, walk_envs
from rllm_envs.vector import TextVectorEnv

envs = TextVectorEnv.from_ids(["test/Faulty-v0"] * 2, isolation="process")
envs.reset(seed=[{seed}, {seed}])
envs.send(["hold"], [0])
print(os.getpid(), *[slot.env.pid for slot in envs._pool.slots], flush=True)
envs.recv()
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_processes_end_when_the_parent_is_killed_and_need_no_main_guard(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(seed=SEED))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
    )
    pids = [int(word) for word in parent.stdout.readline().split()]
    handles = [os.pidfd_open(pid) for pid in pids[1:]]
    os.kill(pids[0], signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert len(handles) == 2
    for handle in handles:
        assert select.select([handle], [], [], LIMIT)[0]
        os.close(handle)


def test_a_script_may_end_without_closing():
    code = (
        "import rllm_envs\n"
        "from rllm_envs.vector import TextVectorEnv\n"
        "ids = ['rllm/Math-v0'] * 2\n"
        "kinds = {'isolation': 'process'}, {'deadline': 30}, {}\n"
        "pools = [TextVectorEnv.from_ids(ids, **kind) for kind in kinds]\n"
        "[pool.reset(seed=0) for pool in pools]\n"
        "[pool.send(['x', 'y']) for pool in pools]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_closing_leaves_no_thread_and_no_descriptor():
    threads, before = threads_of_pools(), descriptors()
    for arguments in EXECUTORS.values():
        envs = faulty_pool(2, **arguments)
        envs.reset(seed=0)
        envs.step(["a", "a"])
        envs.close()
        envs.close()
    assert threads_of_pools() == threads
    assert descriptors() == before


def test_closing_while_steps_wait_drops_them():
    kwargs = [{"gate": 0}, {"gate": 1}]
    envs = TextVectorEnv.from_ids(["test/Gate-v0"] * 2, env_kwargs=kwargs, max_threads=1)
    before = threads_of_pools()
    envs.reset()
    envs.send(["a", "b"])
    threading.Timer(0.05, GATES[0].release).start()
    envs.close()
    assert not threads_of_pools() - before


def test_a_process_reports_what_it_cannot_do():
    envs = faulty_pool(1, isolation="process")
    try:
        assert envs.get_attr("max_turns") == (4,)
        envs.set_attr("max_turns", 3)
        assert envs.call("get_wrapper_attr", "max_turns") == (3,)
        with pytest.raises(EnvProcessError, match="only texts, numbers"):
            envs.get_attr("np_random")
        with pytest.raises(EnvProcessError, match="AttributeError"):
            envs.get_attr("colour")
        with pytest.raises(EnvArgumentError, match="colour"):
            envs.reset(options={"colour": 1})
        assert envs.reset(seed=SEED)[0] == (walk_alone(SEED, [])[0],)
    finally:
        envs.close()
