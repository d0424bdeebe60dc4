from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.core.losses import clipped_policy_loss, cross_entropy_loss


def clipped(ratio: float, advantage: float, *, low: float = 0.2, high: float = 0.2):
    logprobs = torch.tensor([[0.0, math.log(0.2 * ratio)]], requires_grad=True)
    loss = clipped_policy_loss(
        logprobs,
        torch.tensor([[0.0, math.log(0.2)]]),
        advantages=torch.tensor([[0.0, advantage]]),
        mask=torch.tensor([[False, True]]),
        clip_low=low,
        clip_high=high,
    )
    loss.total.backward()
    assert logprobs.grad is not None
    return loss, logprobs.grad[0, 1].item()


@pytest.mark.parametrize(
    ("ratio", "advantage", "total", "gradient", "clip_fraction"),
    [
        (1.0, 2.0, -2.0, -2.0, 0),  # -r A, d/dlogp = -r A
        (1.1, 2.0, -2.2, -2.2, 0),
        (1.5, 2.0, -2.4, 0.0, 1),  # clipped at 1.2: nothing more to earn
        (0.5, 2.0, -1.0, -1.0, 0),  # the pessimistic bound keeps the gradient
        (0.5, -2.0, 1.6, 0.0, 1),  # clipped at 0.8
        (1.5, -2.0, 3.0, 3.0, 0),
    ],
)
def test_the_clipped_loss_worked_by_hand(ratio, advantage, total, gradient, clip_fraction):
    loss, grad = clipped(ratio, advantage)
    assert loss.total.item() == pytest.approx(total, rel=1e-5)
    assert grad == pytest.approx(gradient, rel=1e-5, abs=1e-7)
    assert loss.stats["clip_fraction"].item() == clip_fraction
    assert loss.count == 1
    assert loss.stats["kl"].item() == pytest.approx(ratio - 1 - math.log(ratio), abs=1e-6)


def test_the_two_bounds_are_separate():
    loss, grad = clipped(1.25, 1.0, high=0.28)
    assert loss.total.item() == pytest.approx(-1.25, rel=1e-5)
    assert grad == pytest.approx(-1.25, rel=1e-5)


def test_masked_positions_carry_neither_loss_nor_gradient_even_when_they_are_extreme():
    logprobs = torch.tensor([[0.0, -1.0, -5000.0]], requires_grad=True)
    loss = clipped_policy_loss(
        logprobs,
        torch.tensor([[0.0, -1.0, 0.0]]),
        advantages=torch.full((1, 3), 1.0),
        mask=torch.tensor([[False, True, False]]),
        clip_low=0.2,
        clip_high=0.2,
    )
    loss.total.backward()
    assert loss.total.item() == pytest.approx(-1.0)
    assert logprobs.grad is not None
    assert logprobs.grad[0].tolist() == pytest.approx([0.0, -1.0, 0.0])


def test_cross_entropy_sums_over_imitated_tokens_only():
    loss = cross_entropy_loss(
        torch.tensor([[0.0, -0.5, -2.0], [0.0, -1.0, 0.0]]),
        torch.tensor([[False, True, False], [False, True, False]]),
    )
    assert loss.total.item() == pytest.approx(1.5)
    assert loss.count == 2
