from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.core.logprobs import entropies_of, logprobs_of


def test_logprobs_worked_by_hand():
    # softmax([0, log 3]) = [1/4, 3/4]; softmax([0, 0]) = [1/2, 1/2].
    logits = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
    result = logprobs_of(logits, torch.tensor([1, 0])).tolist()
    assert result == pytest.approx([math.log(3 / 4), math.log(1 / 2)])


def test_temperature_divides_the_logits():
    # At temperature 2, log 9 becomes log 3.
    logits = torch.tensor([[0.0, math.log(9)]])
    result = logprobs_of(logits, torch.tensor([0]), temperature=2.0)
    assert result.item() == pytest.approx(math.log(1 / 4))


def test_low_precision_is_raised():
    logits = torch.tensor([[0.0, 1.0]], dtype=torch.bfloat16)
    assert logprobs_of(logits, torch.tensor([0])).dtype == torch.float32
    assert logprobs_of(logits.double(), torch.tensor([0])).dtype == torch.float64


def test_entropies_worked_by_hand():
    logits = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]], requires_grad=True)
    result = entropies_of(logits)
    quarter = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    assert result.tolist() == pytest.approx([quarter, math.log(2)])
    assert result.requires_grad
