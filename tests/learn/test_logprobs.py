from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.core.logprobs import token_entropies, token_logprobs


def test_logprobs_of_a_position_come_from_the_logits_before_it():
    # softmax([0, log 3]) = [1/4, 3/4]; softmax([0, 0]) = [1/2, 1/2]; the last logits predict
    # nothing.
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, 0.0], [9.0, -9.0]]])
    result = token_logprobs(logits, torch.tensor([[0, 1, 0]]))
    assert result[0].tolist() == pytest.approx([0.0, math.log(3 / 4), math.log(1 / 2)])


def test_temperature_divides_the_logits():
    # At temperature 2, log 9 becomes log 3.
    logits = torch.tensor([[[0.0, math.log(9)], [0.0, 0.0]]])
    result = token_logprobs(logits, torch.tensor([[0, 0]]), temperature=2.0)
    assert result[0, 1].item() == pytest.approx(math.log(1 / 4))


def test_entropies_worked_by_hand():
    logits = torch.tensor([[[0.0, math.log(3)], [0.0, 0.0], [1.0, 2.0]]])
    result = token_entropies(logits)[0].tolist()
    quarter = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    assert result == pytest.approx([0.0, quarter, math.log(2)])
