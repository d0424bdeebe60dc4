from __future__ import annotations

import pytest
import torch
from torch import nn

from rllm_learn.core.optimizer import LearningRate, Optimizers


def test_the_rate_rises_linearly_and_stays():
    rate = LearningRate(1.0, warmup_updates=4)
    assert [rate.at(i) for i in range(6)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])


def test_the_cosine_reaches_half_in_the_middle_and_zero_at_the_end():
    rate = LearningRate(2.0, warmup_updates=2, decay="cosine", total_updates=10)
    assert [rate.at(i) for i in (2, 6, 10, 12)] == pytest.approx([2.0, 1.0, 0.0, 0.0])


def test_adamw_alone_takes_its_first_step_by_the_sign_of_the_gradient():
    parameter = nn.Parameter(torch.tensor([1.0, 1.0]))
    optimizers = Optimizers({"w": parameter}, betas=(0.9, 0.99))
    parameter.grad = torch.tensor([3.0, -0.01])
    optimizers.step(0.1, peak=0.1)
    assert parameter.tolist() == pytest.approx([0.9, 1.1], rel=1e-4)


def test_muon_takes_inner_matrices_and_leaves_embeddings_and_vectors_to_adamw():
    parameters = {
        "embed_tokens.weight": nn.Parameter(torch.zeros(4, 4)),
        "layer.weight": nn.Parameter(torch.zeros(4, 4)),
        "norm.weight": nn.Parameter(torch.zeros(4)),
    }
    optimizers = Optimizers(parameters, betas=(0.9, 0.99), muon_learning_rate=0.02)
    assert len(optimizers.all) == 2
    for parameter in parameters.values():
        parameter.grad = torch.ones_like(parameter)
    optimizers.step(0.05, peak=0.1)  # half way up: Muon's rate is 0.01
    assert optimizers.all[1].param_groups[0]["lr"] == pytest.approx(0.01)
    assert parameters["norm.weight"].tolist() == pytest.approx([-0.05] * 4, rel=1e-4)
    # Adam would move each entry by the rate; Muon makes the update orthogonal, so that the rank-1
    # gradient of ones moves its one direction only.
    moved = parameters["layer.weight"].detach()
    assert torch.linalg.matrix_rank(moved, tol=1e-4).item() == 1
