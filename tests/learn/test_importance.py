from __future__ import annotations

import math

import pytest
import torch

from rllm_learn.core.importance import importance_weights

# Ratios of the rows' tokens: 3, 0.5, 1.5 and 1.2, (not sampled), 0.25.
POLICY = torch.tensor([[3.0, 0.5, 1.5], [1.2, 1.0, 0.25]]).log() - 5.0
SAMPLER = torch.full((2, 3), -5.0)
MASK = torch.tensor([[True, True, True], [True, False, True]])


def weights(kind: str, level: str, cap: float) -> list[list[float]]:
    sampler = SAMPLER.clone()
    sampler[1, 1] = math.inf  # what was not sampled must not matter
    found = importance_weights(POLICY, sampler, mask=MASK, kind=kind, level=level, cap=cap)
    return found.masked_fill(~MASK, -1.0).tolist()


@pytest.mark.parametrize(
    ("kind", "level", "cap", "expected"),
    [
        ("truncated", "token", 2.0, [[2.0, 0.5, 1.5], [1.2, -1.0, 0.25]]),
        ("masked", "token", 2.0, [[0.0, 0.5, 1.5], [1.2, -1.0, 0.0]]),
        # Products: 3 * 0.5 * 1.5 = 2.25 and 1.2 * 0.25 = 0.3.
        ("truncated", "sequence", 2.0, [[2.0, 2.0, 2.0], [0.3, -1.0, 0.3]]),
        ("masked", "sequence", 3.0, [[2.25, 2.25, 2.25], [0.0, -1.0, 0.0]]),
    ],
)
def test_the_weights_worked_by_hand(kind, level, cap, expected):
    for found, row in zip(weights(kind, level, cap), expected, strict=True):
        assert found == pytest.approx(row, rel=1e-5)


def test_equal_policies_need_no_correction():
    for kind in ("truncated", "masked"):
        for level in ("token", "sequence"):
            found = importance_weights(SAMPLER, SAMPLER, mask=MASK, kind=kind, level=level, cap=1.0)
            assert found.tolist() == [[1.0] * 3] * 2
