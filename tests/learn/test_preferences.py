from __future__ import annotations

import math

import torch

from rllm_learn.core.preferences import preference_terms


def test_an_even_pair_costs_log_2_and_is_pulled_at_half_of_beta():
    losses, pulls = preference_terms(torch.zeros(1), beta=0.2)
    assert math.isclose(losses.item(), math.log(2), rel_tol=1e-6)
    assert math.isclose(pulls.item(), 0.1, rel_tol=1e-6)


def test_values_worked_by_hand():
    # sigmoid(0.5 * 2) = 1 / (1 + e^-1) = 0.7310586
    losses, pulls = preference_terms(torch.tensor([2.0, -2.0], dtype=torch.float64), beta=0.5)
    expected = torch.tensor([-math.log(0.7310585786), -math.log(1 - 0.7310585786)]).double()
    assert torch.allclose(losses, expected, atol=1e-7)
    assert torch.allclose(pulls, torch.tensor([0.5 * 0.2689414214, 0.5 * 0.7310585786]).double())


def test_the_pull_is_the_slope_of_the_loss():
    margins = torch.linspace(-30, 30, 13, dtype=torch.float64, requires_grad=True)
    losses, pulls = preference_terms(margins, beta=0.7)
    (slope,) = torch.autograd.grad(losses.sum(), margins)
    assert torch.allclose(pulls, -slope, atol=1e-12)


def test_margins_beyond_float_range_stay_finite():
    losses, pulls = preference_terms(torch.tensor([1e6, -1e6]), beta=1.0)
    assert torch.isfinite(losses).all()
    assert pulls.tolist() == [0.0, 1.0]
