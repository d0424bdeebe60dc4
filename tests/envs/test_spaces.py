import pickle
import time
from copy import deepcopy

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Dict, Text, flatdim, flatten, flatten_space, unflatten
from gymnasium.vector.utils import (
    batch_differing_spaces,
    batch_space,
    create_empty_array,
    create_shared_memory,
    read_from_shared_memory,
    write_to_shared_memory,
)

from rllm_envs import EnvArgumentError, UnicodeText

TEXTS = ["", "plain", "\u00e9\u4e2d", "\U0001f600 emoji", "\ud800 lone", "a\nb\x00c"]


def test_it_is_a_gymnasium_text_space_that_holds_every_string_within_its_lengths():
    space = UnicodeText(10)
    assert isinstance(space, Text)
    assert "" in space
    assert "\U0001f600" * 10 in space
    assert "x" * 11 not in space
    assert 7 not in space
    assert "x" not in UnicodeText(10, min_length=2)


def test_it_costs_a_few_bytes_and_microseconds():
    space = UnicodeText(1 << 20)
    assert len(pickle.dumps(space)) < 500
    start = time.perf_counter()
    batch_space(UnicodeText(), 256)
    assert time.perf_counter() - start < 2.0
    assert repr(space) == "UnicodeText(0, 1048576)"


def test_equality_is_by_lengths_and_survives_copying():
    space = UnicodeText(5, min_length=1)
    assert space == pickle.loads(pickle.dumps(space)) == deepcopy(space)
    assert space != UnicodeText(6, min_length=1)
    assert space != Text(5, min_length=1)


def test_samples_are_short_printable_and_repeatable_by_seed():
    first, second = UnicodeText(1000, seed=3), UnicodeText(1000, seed=3)
    samples = [first.sample() for _ in range(50)]
    assert samples == [second.sample() for _ in range(50)]
    assert all(len(sample) <= 64 and (sample == "" or sample.isprintable()) for sample in samples)
    assert all(5 <= len(UnicodeText(9, min_length=5).sample()) <= 9 for _ in range(20))


def test_a_mask_of_strings_picks_one_of_them():
    space = UnicodeText(100, seed=0)
    assert {space.sample(mask=("[0]", "[4]")) for _ in range(40)} == {"[0]", "[4]"}
    assert len(space.sample(mask=(7, None))) == 7


def test_a_mask_over_characters_is_refused_with_what_is_allowed():
    with pytest.raises(EnvArgumentError, match="legal strings"):
        UnicodeText(9).sample(mask=(3, np.zeros(100, dtype=np.int8)))
    with pytest.raises(EnvArgumentError, match=r"\[0, 9\]"):
        UnicodeText(9).sample(mask=(10, None))


def test_lengths_out_of_order_are_refused():
    with pytest.raises(EnvArgumentError, match="min_length=5 and max_length=3"):
        UnicodeText(3, min_length=5)


@pytest.mark.parametrize("text", TEXTS)
def test_flatten_and_unflatten_give_back_every_text(text):
    space = UnicodeText(32)
    codes = flatten(space, text)
    assert codes.shape == (32,) == (flatdim(space),)
    assert codes in flatten_space(space)
    assert unflatten(space, codes) == text


def test_shared_memory_reads_what_was_written_last():
    space = UnicodeText(32)
    memory = create_shared_memory(space, n=2)
    view = read_from_shared_memory(space, memory, n=2)
    for text in TEXTS:
        write_to_shared_memory(space, 1, text, memory)
        assert view[1] == text
        assert deepcopy(view) == ("", text)
        assert type(deepcopy(view)) is tuple
    with pytest.raises(ValueError, match="33 characters does not fit"):
        write_to_shared_memory(space, 0, "x" * 33, memory)


def test_a_space_too_long_to_share_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match="shared_memory=False"):
        create_shared_memory(UnicodeText(65_537), n=1)


def test_batching_functions_know_the_space():
    assert len(batch_differing_spaces([UnicodeText(3), UnicodeText(4)]).spaces) == 2
    assert create_empty_array(UnicodeText(9, min_length=2), n=3) == ("  ",) * 3
    assert UnicodeText in batch_differing_spaces.registry


class CountingTextEnv(gym.Env):
    """Says its number and the step; plain or inside a Dict."""

    def __init__(self, number: int, nested: bool = False):
        self.number, self.nested, self.turn = number, nested, 0
        text = UnicodeText(100)
        self.observation_space = Dict({"text": text}) if nested else text
        self.action_space = UnicodeText(100)

    def _say(self):
        said = f"env {self.number} step {self.turn} \u4e2d"
        return {"text": said} if self.nested else said

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.turn = 0
        return self._say(), {}

    def step(self, action):
        self.turn += 1
        return self._say(), 0.0, self.turn == 3, False, {}


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("shared_memory", [False, True])
def test_async_vector_observations_are_those_of_each_step(nested, shared_memory):
    makers = [lambda n=n: CountingTextEnv(n, nested) for n in range(2)]
    envs = gym.vector.AsyncVectorEnv(makers, shared_memory=shared_memory)
    try:
        observations = [envs.reset(seed=0)[0]]
        observations += [envs.step(("a", "b"))[0] for _ in range(2)]
    finally:
        envs.close()
    for turn, observation in enumerate(observations):
        texts = observation["text"] if nested else observation
        assert tuple(texts) == tuple(f"env {n} step {turn} \u4e2d" for n in range(2))
