import json

import gymnasium
import pytest
import walk_envs
from gymnasium.envs.registration import EnvSpec

from rllm_envs import DatasetError
from rllm_envs.vector import TextVectorEnv
from rllm_envs.wrappers import ChatObservation, RecordEpisodes, replay_episode

REPLAYED = ("observations", "rewards", "infos", "terminated", "truncated")


def rows_of(path):
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def play_oracle(env, **reset):
    env.reset(**reset)
    is_over = False
    while not is_over:
        *_, terminated, truncated, _ = env.step(env.get_wrapper_attr("oracle_action")())
        is_over = terminated or truncated


def test_a_row_holds_the_episode(tmp_path):
    path = tmp_path / "episodes.jsonl"
    env = RecordEpisodes(gymnasium.make("rllm/Calculator-v0", max_turns=4), path)
    task = {"expression": "47 * 83"}
    env.reset(seed=3, options={"task": task})
    env.step("<calc>47 * 83</calc>")
    assert not path.exists()
    env.step(r"\boxed{3901}")
    (row,) = rows_of(path)
    assert (row["id"], row["kwargs"]) == ("rllm/Calculator-v0", {"max_turns": 4})
    assert (row["seed"], row["random_state"], row["options"]) == (3, None, {"task": task})
    assert row["task"] == {"expression": "47 * 83", "answer": "3901"}
    assert row["actions"] == ["<calc>47 * 83</calc>", r"\boxed{3901}"]
    assert [text[:12] for text in row["observations"]] == ["What is 47 *", "Result: 3901", ""]
    assert (row["rewards"], row["return"], row["length"]) == ([0.0, 1.0], 1.0, 2)
    assert [info["turn"] for info in row["infos"]] == [0, 1, 2]
    assert (row["terminated"], row["truncated"], row["is_complete"]) == (True, False, True)


def test_every_row_can_be_replayed_with_a_seed_or_without(tmp_path):
    path = tmp_path / "episodes.jsonl"
    env = RecordEpisodes(gymnasium.make("test/Walk-v0"), path)
    for reset in ({"seed": 9}, {}, {}, {"options": {"task": {"length": 3, "salt": 1}}}):
        play_oracle(env, **reset)
    fresh = RecordEpisodes(gymnasium.make("test/Walk-v0"), path)
    play_oracle(fresh)
    rows = rows_of(path)
    assert len(rows) == 5
    assert [row["seed"] for row in rows] == [9, None, None, None, None]
    assert len({row["observations"][1] for row in rows}) == 5
    for row in rows:
        again = replay_episode(row)
        assert {key: row[key] for key in REPLAYED} == again


def test_a_changed_action_replays_to_something_else(tmp_path):
    path = tmp_path / "episodes.jsonl"
    play_oracle(RecordEpisodes(gymnasium.make("test/Walk-v0"), path), seed=2)
    (row,) = rows_of(path)
    row["actions"][0] = "stay"
    assert replay_episode(row)["observations"] != row["observations"]


def test_wrappers_inside_are_replayed_and_tuples_are_rows_of_json(tmp_path):
    path = tmp_path / "episodes.jsonl"
    env = RecordEpisodes(ChatObservation(gymnasium.make("rllm/Calculator-v0"), "Hm."), path)
    play_oracle(env, seed=2)
    (row,) = rows_of(path)
    assert row["observations"][0][0] == {"role": "system", "content": "Hm."}
    assert replay_episode(row)["observations"] == row["observations"]
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    play_oracle(again, seed=2)
    assert rows_of(path) == [row, row]


def test_unfinished_episodes_are_marked_and_empty_ones_left_out(tmp_path):
    path = tmp_path / "episodes.jsonl"
    env = RecordEpisodes(gymnasium.make("rllm/Calculator-v0"), path)
    env.reset(seed=1)
    env.step("hm")
    env.reset(seed=2)
    env.reset(seed=3)
    env.step("hm \ud800 \u00e9")
    env.close()
    rows = rows_of(path)
    assert [(row["seed"], row["is_complete"]) for row in rows] == [(1, False), (3, False)]
    assert rows[1]["actions"] == ["hm \ud800 \u00e9"]


def test_an_env_without_a_spec_is_replayed_in_a_given_one(tmp_path):
    path = tmp_path / "episodes.jsonl"
    play_oracle(RecordEpisodes(walk_envs.WalkEnv(max_turns=3), path), seed=4)
    (row,) = rows_of(path)
    assert (row["id"], row["spec"]) == (None, None)
    with pytest.raises(DatasetError, match="env="):
        replay_episode(row)
    assert replay_episode(row, walk_envs.WalkEnv(max_turns=3))["infos"] == row["infos"]


@pytest.mark.parametrize("arguments", [{"deadline": 60.0}, {"isolation": "process"}])
def test_many_envs_may_record_into_one_file(tmp_path, arguments):
    path = tmp_path / "episodes.jsonl"
    spec = RecordEpisodes(gymnasium.make("test/Walk-v0"), path).spec
    envs = TextVectorEnv([spec] * 3, **arguments)
    envs.reset(seed=5)
    num_ended = 0
    for turn in range(8):
        *_, terminated, truncated, _ = envs.step([f"{turn}"] * 3)
        num_ended += (terminated | truncated).sum()
    envs.close()
    rows = rows_of(path)
    assert sum(row["is_complete"] for row in rows) == num_ended
    assert sum(row["length"] for row in rows) == 24
    assert replay_episode(rows[-1])["observations"] == rows[-1]["observations"]
