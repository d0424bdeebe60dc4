from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.core.losses import (
    clipped_surrogate,
    clipped_weight,
    cross_entropy_loss,
    score_function,
    sequence_log_ratio,
    squared_value_error,
)


def variable(*values: float) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient", "is_clipped"),
    [
        (1.0, 2.0, -2.0, -2.0, False),  # -r A, d/dlogp = -r A
        (1.1, 2.0, -2.2, -2.2, False),
        (1.5, 2.0, -2.4, 0.0, True),  # clipped at 1.2: nothing more to earn
        (0.5, 2.0, -1.0, -1.0, False),  # the pessimistic bound keeps the gradient
        (0.5, -2.0, 1.6, 0.0, True),  # clipped at 0.8
        (1.5, -2.0, 3.0, 3.0, False),
    ],
)
def test_the_clipped_surrogate_worked_by_hand(ratio, advantage, loss, gradient, is_clipped):
    log_ratio = variable(math.log(ratio))
    found = clipped_surrogate(log_ratio, torch.tensor([[advantage]]), clip_low=0.2, clip_high=0.2)
    found.values.sum().backward()
    assert log_ratio.grad is not None and found.clipped is not None
    assert found.values.item() == pytest.approx(loss)
    assert log_ratio.grad.item() == pytest.approx(gradient)
    assert found.clipped.item() is is_clipped


def test_the_two_bounds_are_separate():
    log_ratio = variable(math.log(1.25), math.log(0.75))
    advantages = torch.tensor([[1.0, -1.0]])
    found = clipped_surrogate(log_ratio, advantages, clip_low=0.1, clip_high=0.28)
    assert found.values.tolist()[0] == pytest.approx([-1.25, 0.9])


def test_the_score_function_is_the_logprob_times_the_advantage():
    logprobs = variable(-1.0, -2.0)
    found = score_function(logprobs, torch.tensor([[3.0, -0.5]]))
    found.values.sum().backward()
    assert logprobs.grad is not None
    assert found.values.tolist() == [[3.0, -1.0]]
    assert logprobs.grad.tolist() == [[-3.0, 0.5]]


def test_a_bounded_weight_keeps_the_gradient_of_every_token():
    # Ratios 8 and 0.1: weights 5 and 0.1; the gradient is -weight A, also where it is bounded.
    logprobs = variable(-1.0, -2.0)
    log_ratio = logprobs - (logprobs.detach() - torch.tensor([[math.log(8.0), math.log(0.1)]]))
    found = clipped_weight(logprobs, log_ratio, torch.tensor([[2.0, -1.0]]), max_ratio=5.0)
    found.values.sum().backward()
    assert logprobs.grad is not None and found.clipped is not None
    assert found.values.tolist()[0] == pytest.approx([10.0, -0.2])
    assert logprobs.grad.tolist()[0] == pytest.approx([-10.0, 0.1])
    assert found.clipped.tolist() == [[True, False]]


def test_the_ratio_of_a_sequence_is_the_geometric_mean_over_its_sampled_tokens():
    log_ratio = torch.tensor([[0.3, 0.0, -0.1], [0.0, 0.0, 0.4]], dtype=torch.float64)
    mask = torch.tensor([[True, False, True], [False, False, True]])
    found = sequence_log_ratio(log_ratio, mask)
    assert found[mask].tolist() == pytest.approx([0.1, 0.1, 0.4])


def test_the_gradient_of_a_sequence_ratio_is_that_of_its_definition():
    mask = torch.tensor([[True, False, True]])
    one, other = variable(0.3, 0.0, -0.1), variable(0.3, 0.0, -0.1)
    # Three quarters of a token's loss at each of its tokens, against s itself times their number.
    (0.75 * sequence_log_ratio(one, mask).exp())[mask].sum().backward()
    (2 * 0.75 * (other[mask].sum() / 2).exp()).backward()
    assert one.grad is not None and other.grad is not None
    assert one.grad.tolist()[0] == pytest.approx(other.grad.tolist()[0])


def test_cross_entropy_sums_over_imitated_tokens_only():
    loss = cross_entropy_loss(
        torch.tensor([[0.0, -0.5, -2.0], [0.0, -1.0, 0.0]]),
        torch.tensor([[False, True, False], [False, True, False]]),
    )
    assert loss.total.item() == pytest.approx(1.5)
    assert loss.count == 2


@pytest.mark.parametrize(
    ("value", "old", "target", "clips", "loss", "gradient", "is_clipped"),
    [
        (0.5, 0.0, 1.0, (None, None), 0.25, -1.0, False),
        (0.1, 0.0, 1.0, (0.2, None), 0.81, -1.8, False),
        (0.5, 0.0, 1.0, (0.2, None), 0.64, 0.0, True),  # (0.2 - 1)^2: moved far enough
        (-0.5, 0.0, 1.0, (0.2, None), 2.25, -3.0, False),  # moved the wrong way: comes back
        (1.5, 0.0, 1.0, (0.2, None), 0.64, 0.0, True),  # beyond the target, further than 0.2
        (2.5, 0.0, 1.0, (0.2, None), 2.25, 3.0, False),  # so far beyond that it comes back
        (3.0, 3.0, 1.0, (None, 2.0), 2.0, 0.0, True),  # the error is beyond its bound
        (2.0, 3.0, 1.0, (None, 2.0), 1.0, 2.0, False),
        (0.5, 0.0, 1.0, (0.2, 0.5), 0.5, 0.0, True),
    ],
)
def test_the_error_of_a_value_worked_by_hand(value, old, target, clips, loss, gradient, is_clipped):
    values = variable(value)
    before, returns = (torch.tensor([[x]], dtype=torch.float64) for x in (old, target))
    found = squared_value_error(values, before, returns, value_clip=clips[0], max_error=clips[1])
    found.values.sum().backward()
    assert values.grad is not None and found.clipped is not None
    assert found.values.item() == pytest.approx(loss)
    assert values.grad.item() == pytest.approx(gradient)
    assert found.clipped.item() is is_clipped
