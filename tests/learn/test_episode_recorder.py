from __future__ import annotations

import json

import pytest
from transformers import AutoTokenizer

from rllm_agents import Episode, TerminationReason, TokenRecord, Trajectory
from rllm_agents.models import resolve_model_path
from rllm_agents.types import TurnSpan
from rllm_learn.core.batch import TokenSequence
from rllm_learn.episode_recorder import EpisodeRecorder
from rllm_learn.records import to_sampled_sequence


def played(number: int) -> Episode:
    """An episode of two given ids and two sampled ones; all episodes have equal ids."""
    record = TokenRecord(
        tuple(range(1, 5)), (0.0, 0.0, -0.5, -1.5), (TurnSpan(2, 4, 0, weights_version=7),)
    )
    return Episode(
        id=str(number),
        task={"seed": number},
        termination_reason=TerminationReason.ENV_DONE,
        trajectories=[Trajectory(reward=float(number), token_records=(record,))],
    )


def learned(episode: Episode, advantage: float) -> TokenSequence:
    (record,) = episode.trajectories[0].token_records
    return TokenSequence(to_sampled_sequence(record), (advantage,) * 4, weight=0.5)


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_equal_token_sequences_get_the_advantages_of_their_own_episode(tmp_path):
    episodes = [played(n) for n in range(3)]
    sequences = [learned(episodes[2], 1.0), learned(episodes[0], -1.0)]
    recorder = EpisodeRecorder(tmp_path, None, num_episodes=3)
    recorder.write_training(5, episodes, sequences)
    written = lines(tmp_path / "episodes" / "train.jsonl")
    assert [r["step"] for r in written] == [5, 5, 5]
    records = [r["token_records"][0] for r in written]
    assert [r.get("advantages") for r in records] == [[-1.0] * 4, None, [1.0] * 4]
    assert records[0]["weight"] == 0.5
    assert records[0]["logprobs"] == [0.0, 0.0, -0.5, -1.5]
    assert "texts" not in records[0]


def test_several_trajectories_keep_their_own_advantages(tmp_path):
    white, black = played(0), played(1)
    both = Episode(id="g", trajectories=white.trajectories + black.trajectories)
    recorder = EpisodeRecorder(tmp_path, None, num_episodes=1)
    recorder.write_training(1, [both], [learned(black, 2.0)])
    (written,) = lines(tmp_path / "episodes" / "train.jsonl")
    first, second = (t["token_records"][0] for t in written["trajectories"])
    assert "advantages" not in first
    assert second["advantages"] == [2.0] * 4


@pytest.mark.parametrize(("num_episodes", "kept"), [(0, 0), (2, 2), (9, 4)])
def test_the_number_of_episodes_is_bounded(tmp_path, num_episodes, kept):
    episodes = [played(n) for n in range(4)]
    recorder = EpisodeRecorder(tmp_path, None, num_episodes=num_episodes)
    recorder.write_training(1, episodes, [])
    recorder.write_evaluation("eval", 1, episodes)
    assert len(lines(tmp_path / "episodes" / "train.jsonl")) == kept
    evaluated = lines(tmp_path / "episodes" / "eval-000001.jsonl")
    assert ["token_records" in r for r in evaluated] == [n < num_episodes for n in range(4)]


def test_a_resumed_run_drops_the_episodes_that_will_be_played_again(tmp_path):
    first = EpisodeRecorder(tmp_path, None, num_episodes=2)
    for step in (1, 2, 3):
        first.write_training(step, [played(0), played(1)], [])
    path = tmp_path / "episodes" / "train.jsonl"
    with path.open("a") as file:
        file.write('{"step": 1, "cut by a ki')
    EpisodeRecorder(tmp_path, None, num_episodes=2, resume_step=2)
    assert [r["step"] for r in lines(path)] == [1, 1, 2, 2]


def test_texts_of_tokens_join_to_the_text(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(resolve_model_path("tiny"), local_files_only=True)
    ids = tokenizer("7 plus é is ✓", add_special_tokens=False)["input_ids"]
    episode = played(0)
    mark = tuple(0.0 for _ in ids)
    episode.trajectories[0].token_records = (TokenRecord(tuple(ids), mark, ()),)
    EpisodeRecorder(tmp_path, tokenizer, num_episodes=1).write_training(1, [episode], [])
    (written,) = lines(tmp_path / "episodes" / "train.jsonl")
    texts = written["token_records"][0]["texts"]
    assert len(texts) == len(ids)
    assert "".join(texts) == tokenizer.decode(ids)
