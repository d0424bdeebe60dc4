"""Sequences in one row, each prompt once: where everything stands, worked out by hand."""

from __future__ import annotations

import torch

from rllm_learn.core.packing import PackedRow

# Two sequences that begin with 5, 6; one of its own; one that begins with 5, 6 again, too late.
SEQUENCES = ([5, 6, 7, 8], [5, 6, 9], [4, 3], [5, 6, 1])
PROMPTS = ((0, 2), (0, 2), (1, 1), (0, 2))
PADDED = torch.tensor([[5, 6, 7, 8], [5, 6, 9, 0], [4, 3, 0, 0], [5, 6, 1, 0]])
ROW = PackedRow.of([4, 3, 2, 3], PROMPTS)


def test_a_prompt_stands_once_for_those_that_follow_each_other():
    assert PackedRow(shared=(0, 2, 0, 0), own=(4, 1, 2, 3)) == ROW
    ids, positions = ROW.of_padded(PADDED)
    assert ids.tolist() == [[5, 6, 7, 8, 9, 4, 3, 5, 6, 1]]
    assert positions.tolist() == [[0, 1, 2, 3, 2, 0, 1, 0, 1, 2]]


def test_three_of_one_prompt_share_that_of_the_first():
    row = PackedRow.of([3, 3, 3], [(0, 2)] * 3)
    assert row == PackedRow(shared=(0, 2, 2), own=(3, 1, 1))
    assert row.places(torch.tensor([2, 2, 2]), torch.tensor([0, 1, 2])).tolist() == [0, 1, 4]


def test_each_position_of_each_sequence_is_found_in_the_row():
    ids = ROW.of_padded(PADDED)[0][0]
    for row, sequence in enumerate(SEQUENCES):
        rows, columns = torch.full((len(sequence),), row), torch.arange(len(sequence))
        assert ids[ROW.places(rows, columns)].tolist() == sequence


def test_whole_sequences_are_made_of_the_row_and_the_row_of_them():
    ids = ROW.of_padded(PADDED)[0][0]
    whole, kept = ROW.unshared(torch.device("cpu"))
    assert ids[whole].tolist() == [5, 6, 7, 8, 5, 6, 9, 4, 3, 5, 6, 1]
    assert ids[whole][kept].tolist() == ids.tolist()
