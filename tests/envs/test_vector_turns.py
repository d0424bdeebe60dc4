import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Sequence
from hypothesis import given, settings
from hypothesis import strategies as st

from rllm_envs.errors import EnvProcessError
from rllm_envs.spaces import UnicodeText
from rllm_envs.vector.turns import (
    Turn,
    batch_infos,
    batch_observations,
    batch_turns,
    blank_observation,
)
from rllm_envs.vector.wire import decode_line, encode_line

DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "values",
    [
        [3, 2.5],
        [True, "n/a"],
        [True, 2],
        [3, "x"],
        [3, None],
        [10**40, 1],
        [-(2**63), 2**63 - 1],
        [(1, 2), [3]],
        ["a", "bb"],
        [[1, 2], [3, 4]],
    ],
)
def test_values_stay_what_they_are(values):
    infos = batch_infos([{"key": value} for value in values])
    assert infos["_key"].tolist() == [True, True]
    assert infos["key"].shape == (2,)
    assert [type(v) for v in infos["key"].tolist()] == [type(v) for v in values]
    assert infos["key"].tolist() == values


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([True, False], np.bool_), ([1, 2], np.int64), ([1.0, 2.5], np.float64), (["a", "b"], object)],
)
def test_equal_types_give_arrays_of_that_type(values, dtype):
    assert batch_infos([{"key": value} for value in values])["key"].dtype == dtype


def test_a_key_of_some_envs_has_a_mask():
    infos = batch_infos([{"a": 1}, {}, {"a": 3, "b": "x", "c": {"d": 2.0}}])
    assert (infos["a"].tolist(), infos["_a"].tolist()) == ([1, 0, 3], [True, False, True])
    assert (infos["b"].tolist(), infos["_b"].tolist()) == ([None, None, "x"], [False, False, True])
    assert (infos["c"]["d"].tolist(), infos["c"]["_d"].tolist()) == (
        [0.0, 0.0, 2.0],
        [False, False, True],
    )


def test_dicts_beside_other_values_and_arrays_of_other_shapes_are_kept():
    infos = batch_infos([{"task": {"a": 1}}, {"task": None}])
    assert infos["task"].tolist() == [{"a": 1}, None]
    arrays = [np.zeros(2), np.zeros(3)]
    kept = batch_infos([{"key": array} for array in arrays])["key"]
    assert [array.shape for array in kept] == [(2,), (3,)]
    stacked = batch_infos([{"key": np.ones(2, np.float32)}, {}])["key"]
    assert (stacked.shape, stacked.dtype, stacked[1].tolist()) == ((2, 2), np.float32, [0, 0])


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abc"), DATA, max_size=3), max_size=4))
def test_any_infos_can_be_read_back(infos):
    batch = batch_infos(infos)
    for place, info in enumerate(infos):
        assert {key for key in "abc" if f"_{key}" in batch and batch[f"_{key}"][place]} == set(info)
        for key, value in info.items():
            if not isinstance(batch[key], dict):
                assert batch[key][place] == value


def test_turns_become_gymnasiums_five_values():
    turns = [Turn(4, "a", 1.5, True, False, {"x": 1}), Turn(2, "b", 0.0, False, True, {})]
    observations, rewards, terminated, truncated, infos = batch_turns(UnicodeText(), turns)
    assert observations == ("a", "b")
    assert rewards.tolist() == [1.5, 0.0]
    assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, True])
    assert infos["env_id"].tolist() == [4, 2]


def test_blank_observations_lie_in_their_spaces():
    spaces = [
        UnicodeText(),
        UnicodeText(9, min_length=2),
        Dict({"text": UnicodeText(), "x": Box(0, 1, (2,))}),
        Sequence(Dict({"role": UnicodeText(), "content": UnicodeText()})),
    ]
    for space in spaces:
        assert blank_observation(space) in space
    assert batch_observations(spaces[2], [blank_observation(spaces[2])] * 2)["text"] == ("", "")


@settings(deadline=None)
@given(DATA)
def test_data_crosses_to_a_process_unchanged(value):
    line = encode_line(value)
    assert line.count(b"\n") == 1 and line.endswith(b"\n") and line.isascii()
    again = decode_line(line)
    assert repr(again) == repr(value)


def test_numpy_values_keep_their_types():
    value = {"n": np.float32(0.5), "b": np.bool_(True), "a": np.arange(6, dtype="i2").reshape(2, 3)}
    again = decode_line(encode_line(value))
    assert (type(again["n"]), type(again["b"])) == (np.float32, np.bool_)
    assert again["a"].dtype == np.int16
    assert again["a"].tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("kind", ["object", "set", "bytes", "integer of 6,000 digits"])
def test_what_is_no_data_is_refused(kind):
    value = {"object": object(), "set": {"a": {1, 2}}, "bytes": b"x"}.get(kind, [1 << 20_000])
    with pytest.raises(EnvProcessError):
        encode_line(value)
