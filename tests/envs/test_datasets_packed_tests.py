import base64
import json
import os
import pickle
import zlib

import pytest

from rllm_envs import DatasetError
from rllm_envs.datasets.packed_tests import unpacked_tests

TESTS = [{"input": "1\n", "output": "é\n", "testtype": "stdin"}] * 3


def packed(content, protocol=4):
    return base64.b64encode(zlib.compress(pickle.dumps(content, protocol))).decode()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_packed_tests_are_those_that_were_packed(protocol):
    row = {"private": packed(json.dumps(TESTS), protocol)}
    assert unpacked_tests(row, "private") == TESTS


@pytest.mark.parametrize("value", [TESTS, json.dumps(TESTS), json.dumps(TESTS, indent=2)])
def test_tests_that_are_not_packed_are_read_as_they_are(value):
    assert unpacked_tests({"public": value}, "public") == TESTS


def test_no_tests_are_an_empty_list():
    assert unpacked_tests({}, "public") == []
    assert unpacked_tests({"public": ""}, "public") == []


class Hostile:
    def __reduce__(self):
        return os.mkdir, ("hostile-was-here",)


@pytest.mark.parametrize("content", [Hostile(), ["[]", Hostile()], {"a": 1}, 7, ["a", "b"], b"[]"])
def test_a_pickle_of_anything_but_a_text_is_refused_and_never_loaded(
    content, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DatasetError, match=r"'private'.*pickle"):
        unpacked_tests({"private": packed(content)}, "private")
    assert not (tmp_path / "hostile-was-here").exists()


@pytest.mark.parametrize(
    "value",
    ["!!!", base64.b64encode(b"no").decode(), packed(json.dumps(TESTS))[:40], packed("{}"),
     packed("[1,"), "[1,", 5, {"a": 1},
     base64.b64encode(zlib.compress(b"\x80\x04")).decode()],
)  # fmt: skip
def test_what_cannot_be_read_is_named(value):
    with pytest.raises(DatasetError, match="'private'"):
        unpacked_tests({"private": value}, "private")


def test_what_unpacks_to_too_much_is_refused():
    bomb = base64.b64encode(zlib.compress(b"\x00" * (65 << 20))).decode()
    with pytest.raises(DatasetError, match="more than"):
        unpacked_tests({"private": bomb}, "private")
