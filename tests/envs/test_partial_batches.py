import asyncio
import gc
import random
import threading

import gymnasium
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walk_envs import GATES

from rllm_envs import EnvArgumentError, EpisodeError
from rllm_envs.vector import TextVectorEnv

LIMIT = 30.0
"""Seconds after which a wait counts as lost."""


def gate_pool(num_envs, **arguments):
    GATES[:] = [threading.Semaphore(0) for _ in GATES]
    kwargs = [{"gate": place} for place in range(num_envs)]
    return TextVectorEnv.from_ids(["test/Gate-v0"] * num_envs, env_kwargs=kwargs, **arguments)


def walk_pool(num_envs, **arguments):
    return TextVectorEnv.from_ids(["test/Walk-v0"] * num_envs, **arguments)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), num_envs=st.integers(1, 8), max_threads=st.integers(8, 16))
def test_no_step_is_lost_or_doubled_whatever_becomes_ready_when(seed, num_envs, max_threads):
    rng = random.Random(seed)
    envs = gate_pool(num_envs, max_threads=max_threads)
    counts, sent = [0] * num_envs, {}
    envs.async_reset()
    observations, *_, infos = envs.recv(num_envs)
    assert sorted(infos["env_id"]) == list(range(num_envs))
    try:
        for number in range(40):
            idle = [place for place in range(num_envs) if place not in sent]
            places = rng.sample(idle, rng.randint(0, len(idle)))
            if places:
                actions = [f"{place}-{number}" for place in places]
                envs.send(actions, places)
                sent |= dict(zip(places, actions, strict=True))
            released = rng.sample(sorted(sent), rng.randint(0, len(sent)))
            for place in released:
                GATES[place].release()
            if not released:
                continue
            observations, rewards, *_, infos = envs.recv(len(released), timeout=LIMIT)
            assert sorted(infos["env_id"]) == sorted(released)
            assert len(rewards) == len(released)
            for place, text in zip(infos["env_id"], observations, strict=True):
                counts[place] += 1
                assert text == f"{place}: {counts[place]} {sent.pop(int(place))}"
    finally:
        for place in sent:
            GATES[place].release()
        envs.close()


def test_transcripts_do_not_depend_on_who_is_ready_first():
    def transcripts(rng):
        envs = walk_pool(4, deadline=LIMIT)
        told = [[] for _ in range(4)]
        envs.async_reset(seeds=[1, 2, 3, 4])
        while min(map(len, told)) < 15:
            observations, rewards, *_, infos = envs.recv(rng.randint(1, 4))
            ready = infos["env_id"].tolist()
            for row, place in enumerate(ready):
                told[place].append((observations[row], rewards[row]))
            rng.shuffle(ready)
            envs.send([f"{place}.{len(told[place])}" for place in ready], ready)
        envs.recv(4)
        envs.close()
        return [turns[:15] for turns in told]

    assert transcripts(random.Random(1)) == transcripts(random.Random(2))


def test_envs_that_do_not_wait_are_ready_at_once_without_a_thread():
    before = threading.active_count()
    envs = walk_pool(3)
    envs.async_reset(seeds=5)
    observations, rewards, *_, infos = envs.recv(3, timeout=0)
    assert list(observations) == [
        gymnasium.make("test/Walk-v0").reset(seed=5 + place)[0] for place in range(3)
    ]
    assert infos["env_id"].tolist() == [0, 1, 2]
    assert rewards.tolist() == [0.0] * 3
    assert threading.active_count() == before
    envs.close()


def test_envs_that_do_not_wait_are_not_kept_by_those_that_do():
    GATES[0] = threading.Semaphore(0)
    envs = TextVectorEnv.from_ids(["test/Gate-v0", "test/Walk-v0"])
    envs.reset(seed=1, options={"task": {"length": 3, "salt": 0}})
    envs.send(["a", "b"])
    observations, *_, infos = envs.recv(1, timeout=0)
    assert infos["env_id"].tolist() == [1]
    assert observations[0].startswith("b ")
    envs.send(["c"], [1])
    GATES[0].release()
    assert sorted(envs.recv(2, timeout=LIMIT)[4]["env_id"]) == [0, 1]
    envs.close()


def test_each_env_gets_its_own_seed_and_options():
    envs = walk_pool(3)
    task = {"length": 2, "salt": 9}
    envs.async_reset([2, 0], seeds=[None, 8], options=[{"task": task}, None])
    observations, *_, infos = envs.recv(2)
    assert infos["env_id"].tolist() == [2, 0]
    alone = gymnasium.make("test/Walk-v0").reset(seed=8)[0]
    assert observations == ("start 2 9", alone)
    envs.async_reset([1], options={"task": task})
    assert envs.recv()[0] == ("start 2 9",)
    envs.close()


def test_finished_envs_may_stay_idle_and_are_reset_one_by_one():
    envs = walk_pool(2, autoreset_mode="Disabled")
    envs.async_reset(options={"tasks": [{"length": 1, "salt": 0}, {"length": 3, "salt": 0}]})
    envs.recv(2)
    envs.send(["a", "a"])
    envs.recv(2)
    envs.send(["b"], [1])
    with pytest.raises(EpisodeError, match="0 is finished"):
        envs.send(["b"], [0])
    assert envs.recv()[4]["env_id"].tolist() == [1]
    envs.async_reset([0])
    envs.recv()
    envs.send(["c", "c"])
    assert envs.recv(2)[2].tolist()[1] is True
    envs.close()


def test_a_timeout_returns_what_is_ready_or_nothing():
    envs = gate_pool(2)
    envs.reset()
    envs.send(["a", "b"])
    observations, rewards, terminated, truncated, infos = envs.recv(1, timeout=0.01)
    assert (observations, len(rewards), len(terminated), len(truncated)) == ((), 0, 0, 0)
    assert infos["env_id"].tolist() == []
    assert envs.infos_list == []
    GATES[1].release()
    assert envs.recv(1, timeout=LIMIT)[0] == ("1: 1 b",)
    GATES[0].release()
    # Fewer are under way than are asked for.
    assert envs.recv(2, timeout=LIMIT)[0] == ("0: 1 a",)
    envs.close()


def test_what_is_under_way_is_protected():
    envs = gate_pool(2)
    with pytest.raises(EpisodeError, match="no episode"):
        envs.send(["a"], [0])
    envs.reset()
    with pytest.raises(EpisodeError, match="no turn is under way"):
        envs.recv()
    envs.send(["a"], [0])
    for call in (
        lambda: envs.send(["x", "x"], [1, 0]),
        lambda: envs.async_reset([0]),
        lambda: envs.step(["x", "x"]),
        envs.reset,
        lambda: envs.call("oracle_action"),
    ):
        with pytest.raises(EpisodeError, match="under way"):
            call()
    GATES[0].release()
    assert envs.recv(2, timeout=LIMIT)[0] == ("0: 1 a",)
    for places, actions in (([2], ["a"]), ([0, 0], ["a", "a"]), ([0], ["a", "b"]), (0, ["a"])):
        with pytest.raises(EnvArgumentError):
            envs.send(actions, places)
    envs.close()


def test_an_event_loop_goes_on_while_it_receives():
    async def play():
        envs = gate_pool(2)
        envs.reset()
        envs.send(["a", "b"])
        order = []

        async def release(place):
            order.append(f"release {place}")
            GATES[place].release()

        receiving = asyncio.ensure_future(envs.arecv(2))
        await release(1)
        await release(0)
        observations, *_ = await receiving
        order.append("received")
        envs.send(["c"], [0])
        nothing = await envs.arecv(1, timeout=0.01)
        GATES[0].release()
        last = await envs.arecv()
        envs.close()
        return order, sorted(observations), nothing[0], last[0]

    order, observations, nothing, last = asyncio.run(play())
    assert order == ["release 1", "release 0", "received"]
    assert observations == ["0: 1 a", "1: 1 b"]
    assert (nothing, last) == ((), ("0: 2 c",))


def test_at_most_so_many_calls_wait_at_the_same_time():
    envs = gate_pool(4, max_threads=2)
    before = threading.active_count()
    envs.reset()
    envs.send(["a"] * 4)
    assert threading.active_count() - before <= 2
    for place in range(4):
        GATES[place].release()
    assert sorted(envs.recv(4, timeout=LIMIT)[4]["env_id"]) == [0, 1, 2, 3]
    envs.close()


def test_a_pool_that_is_forgotten_ends_its_threads():
    def threads():
        return [t for t in threading.enumerate() if t.name == "rllm-vector"]

    envs = walk_pool(2, deadline=LIMIT)
    envs.reset(seed=0)
    mine = threads()
    assert mine
    del envs
    gc.collect()
    assert not set(mine) & set(threads())
