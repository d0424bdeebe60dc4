from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.core.logprobs import scores_of


def test_both_worked_by_hand():
    # softmax([0, log 3]) = [1/4, 3/4]; softmax([0, 0]) = [1/2, 1/2].
    logits = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
    logprobs, entropies = scores_of(logits, torch.tensor([1, 0]))
    assert logprobs.tolist() == pytest.approx([math.log(3 / 4), math.log(1 / 2)])
    quarter = 0.25 * math.log(4) + 0.75 * math.log(4 / 3)
    assert entropies.tolist() == pytest.approx([quarter, math.log(2)])


def test_temperature_divides_the_logits():
    # At temperature 2, log 9 becomes log 3.
    logits = torch.tensor([[0.0, math.log(9)]])
    result, _ = scores_of(logits, torch.tensor([0]), temperature=2.0)
    assert result.item() == pytest.approx(math.log(1 / 4))


def test_low_precision_is_raised():
    logits = torch.tensor([[0.0, 1.0]], dtype=torch.bfloat16)
    assert {t.dtype for t in scores_of(logits, torch.tensor([0]))} == {torch.float32}
    assert {t.dtype for t in scores_of(logits.double(), torch.tensor([0]))} == {torch.float64}


@pytest.mark.parametrize("read", [slice(0, 1), slice(1, 2), slice(0, 2)])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_gradients_are_those_of_differences(read, temperature):
    torch.manual_seed(0)
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    ids = torch.tensor([[0, 4, 2], [1, 1, 3]])
    assert torch.autograd.gradcheck(
        lambda z: scores_of(z, ids, temperature=temperature)[read], logits
    )


def test_a_gradient_of_the_gradient_is_refused():
    logits = torch.randn(3, 5, requires_grad=True)
    logprobs, _ = scores_of(logits, torch.tensor([0, 1, 2]))
    (gradient,) = torch.autograd.grad(logprobs.square().sum(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        gradient.square().sum().backward()
