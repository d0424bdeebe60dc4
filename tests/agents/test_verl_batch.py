"""Token records in verl's layout: every array, number by number."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from rllm_agents import Episode, Step, TerminationReason, TokenRecord, Trajectory, TurnSpan
from rllm_agents.errors import UserError
from rllm_agents.evaluation import (
    VerlBatch,
    read_episodes,
    to_verl_batch,
    write_episodes,
    write_verl_batch,
)
from rllm_agents.evaluation.verl_batch import NON_TENSORS, TENSORS

PAD = 99
# Prompt 1 2 3; sampled 4 5; the environment 6; sampled 7 8.
LONG = TokenRecord(
    token_ids=(1, 2, 3, 4, 5, 6, 7, 8),
    logprobs=(0.0, 0.0, 0.0, -0.5, -0.25, 0.0, -1.0, -2.0),
    turns=(TurnSpan(3, 5, 0, 0), TurnSpan(6, 8, 1, 0)),
)
# Prompt 1; sampled 2 3.
SHORT = TokenRecord((1, 2, 3), (0.0, -0.125, -4.0), (TurnSpan(1, 3, 0, 0),))


def episode(name: str, task: Any, reward: float | None, *records: TokenRecord) -> Episode:
    num_steps = sum(len(record.turns) for record in records)
    trajectory = Trajectory(
        steps=[Step(reward=0.0) for _ in range(num_steps)], reward=reward, token_records=records
    )
    return Episode(
        id=name,
        task=task,
        termination_reason=TerminationReason.ENV_DONE,
        trajectories=[trajectory],
    )


def batch() -> VerlBatch:
    return to_verl_batch(
        [episode("0-0", {"q": 1}, 1.0, LONG), episode("0-1", {"q": 1}, -0.5, SHORT)],
        pad_token_id=PAD,
    )


def test_every_array_is_as_verl_lays_it_out() -> None:
    made = batch()
    assert tuple(made.tensors) == TENSORS
    assert len(made) == 2
    lists = {name: array.tolist() for name, array in made.tensors.items()}
    assert lists["prompts"] == [[1, 2, 3], [PAD, PAD, 1]]
    assert lists["responses"] == [[4, 5, 6, 7, 8], [2, 3, PAD, PAD, PAD]]
    assert lists["input_ids"] == [[1, 2, 3, 4, 5, 6, 7, 8], [PAD, PAD, 1, 2, 3, PAD, PAD, PAD]]
    assert lists["attention_mask"] == [[1] * 8, [0, 0, 1, 1, 1, 0, 0, 0]]
    assert lists["position_ids"] == [[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 1, 2, 2, 2, 2]]
    assert lists["response_mask"] == [[1, 1, 0, 1, 1], [1, 1, 0, 0, 0]]
    assert lists["rollout_log_probs"] == [[-0.5, -0.25, 0, -1, -2], [-0.125, -4, 0, 0, 0]]
    assert lists["rm_scores"] == [[0, 0, 0, 0, 1], [0, -0.5, 0, 0, 0]]
    assert lists["token_level_scores"] == lists["rm_scores"]
    kinds = {name: array.dtype for name, array in made.tensors.items()}
    assert {kinds[name] for name in TENSORS[:6]} == {np.dtype(np.int64)}
    assert {kinds[name] for name in TENSORS[6:]} == {np.dtype(np.float32)}


def test_groups_and_turns_stand_beside_the_tensors() -> None:
    made = to_verl_batch(
        [
            episode("0-0", {"q": 1, "a": 2}, 1.0, LONG),
            episode("1-0", {"q": 2}, 1.0, SHORT),
            episode("0-1", {"a": 2, "q": 1}, 1.0, SHORT),
        ],
        pad_token_id=PAD,
        data_source="rllm/Math-v0",
    ).non_tensors
    assert tuple(made) == NON_TENSORS
    assert made["uid"].tolist() == ["0", "1", "0"]
    assert made["uid"].dtype == object
    assert made["episode_id"].tolist() == ["0-0", "1-0", "0-1"]
    assert made["__num_turns__"].tolist() == [4, 2, 2]
    assert made["__num_turns__"].dtype == np.int32
    assert set(made["data_source"]) == {"rllm/Math-v0"}


def test_a_rewritten_history_is_several_rows_with_one_reward() -> None:
    made = to_verl_batch([episode("0", {}, 2.0, SHORT, LONG)], pad_token_id=PAD)
    assert made.non_tensors["record_index"].tolist() == [0, 1]
    assert made.tensors["rm_scores"].sum(axis=1).tolist() == [2.0, 2.0]


def test_given_lengths_are_those_of_the_arrays_and_must_suffice() -> None:
    one = [episode("7", {}, 1.0, SHORT)]
    made = to_verl_batch(one, pad_token_id=0, prompt_length=2, response_length=4).tensors
    assert made["input_ids"].tolist() == [[0, 1, 2, 3, 0, 0]]
    with pytest.raises(UserError, match="response_length=1, but episode '7' has 2 tokens there"):
        to_verl_batch(one, pad_token_id=0, response_length=1)
    with pytest.raises(UserError, match="prompt_length must be at least 1"):
        to_verl_batch(one, pad_token_id=0, prompt_length=0)


def test_what_has_no_reward_is_left_out_and_text_alone_is_refused() -> None:
    failed = dataclasses.replace(
        episode("1", {}, None, SHORT), termination_reason=TerminationReason.LLM_ERROR
    )
    unjudged = episode("2", {}, None, SHORT)
    made = to_verl_batch([failed, unjudged, episode("3", {}, 0.0, SHORT)], pad_token_id=0)
    assert made.non_tensors["episode_id"].tolist() == ["3"]
    with pytest.raises(UserError, match="no token record with a reward"):
        to_verl_batch([failed], pad_token_id=0)
    text = episode("4", {}, 1.0)
    text.trajectories[0].steps.append(Step(model_response="hi"))
    with pytest.raises(UserError, match="episode '4' has text and no token ids"):
        to_verl_batch([text], pad_token_id=0)


def test_saved_episodes_give_the_same_batch(tmp_path: Path) -> None:
    episodes = [episode("0-0", {"q": 1}, 1.0, LONG), episode("0-1", {"q": 1}, -0.5, SHORT)]
    write_episodes(tmp_path / "e.jsonl", episodes, with_tokens=True)
    made = to_verl_batch(read_episodes(tmp_path / "e.jsonl"), pad_token_id=PAD)
    for name, array in batch().tensors.items():
        np.testing.assert_array_equal(made.tensors[name], array)


def test_numpy_loads_what_was_saved_without_pickle(tmp_path: Path) -> None:
    write_verl_batch(tmp_path / "batch.npz", batch())
    with np.load(tmp_path / "batch.npz", allow_pickle=False) as loaded:
        assert set(loaded.files) == {*TENSORS, *NON_TENSORS}
        for name, array in batch().tensors.items():
            np.testing.assert_array_equal(loaded[name], array)
            assert loaded[name].dtype == array.dtype
        assert loaded["uid"].tolist() == ["0", "0"]


def test_torch_loads_what_was_saved_without_code(tmp_path: Path) -> None:
    write_verl_batch(tmp_path / "batch.pt", batch())
    loaded = torch.load(tmp_path / "batch.pt", weights_only=True)
    assert set(loaded) == {"tensors", "non_tensors"}
    assert {len(tensor) for tensor in loaded["tensors"].values()} == {2}
    torch.testing.assert_close(
        loaded["tensors"]["responses"], torch.tensor([[4, 5, 6, 7, 8], [2, 3, PAD, PAD, PAD]])
    )
    assert loaded["non_tensors"]["uid"] == ["0", "0"]


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"saved as \.npz or \.pt"):
        write_verl_batch(tmp_path / "batch.parquet", batch())
    with pytest.raises(UserError, match="cannot be written"):
        write_verl_batch(tmp_path / "no" / "batch.npz", batch())
