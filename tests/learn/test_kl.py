from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.core.kl import kl_estimate


@pytest.mark.parametrize(
    ("estimator", "value", "gradient"),
    [
        # p = 0.5, reference 0.2: d = log 2.5 = 0.916291.
        ("k1", 0.916291, 1.0),
        ("k2", 0.419794, 0.916291),  # d^2 / 2, gradient d
        ("k3", 0.316291, 0.6),  # 0.2 / 0.5 - 1 + d, gradient 1 - 0.4
    ],
)
def test_the_estimates_worked_by_hand(estimator, value, gradient):
    logprob = torch.tensor([math.log(0.5)], dtype=torch.float64, requires_grad=True)
    estimate = kl_estimate(logprob, torch.tensor([math.log(0.2)]), estimator)
    estimate.sum().backward()
    assert logprob.grad is not None
    assert estimate.item() == pytest.approx(value, abs=1e-6)
    assert logprob.grad.item() == pytest.approx(gradient, abs=1e-6)


def test_the_mean_of_k1_and_of_k3_over_the_policy_is_the_divergence():
    p = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    q = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64)
    divergence = sum(a * math.log(a / b) for a, b in zip(p.tolist(), q.tolist(), strict=True))
    for estimator in ("k1", "k3"):
        mean = (p * kl_estimate(p.log(), q.log(), estimator)).sum().item()
        assert mean == pytest.approx(divergence)


def test_the_mean_gradient_of_k2_is_that_of_the_divergence_and_of_k1_is_nothing():
    logits = torch.tensor([0.3, -0.2, 1.0], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.2, 0.2, 0.6], dtype=torch.float64)

    def gradient(estimator: str | None) -> list[float]:
        logp = logits.log_softmax(-1)
        if estimator is None:
            value = (logp.exp() * (logp - q.log())).sum()
        else:  # tokens are drawn from the policy: probabilities weigh, without gradient
            value = (logp.exp().detach() * kl_estimate(logp, q.log(), estimator)).sum()
        return torch.autograd.grad(value, logits)[0].tolist()

    assert gradient("k2") == pytest.approx(gradient(None))
    assert gradient("k1") == pytest.approx([0.0, 0.0, 0.0], abs=1e-12)


def test_an_unknown_estimator_is_named():
    with pytest.raises(ValueError, match="k1, k2, k3, got 'k4'"):
        kl_estimate(torch.zeros(1), torch.zeros(1), "k4")
