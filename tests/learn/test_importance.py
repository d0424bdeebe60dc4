from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from learn_fakes import sequence

from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import Scores, collate
from rllm_learn.core.importance import importance_weights
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.errors import ConfigError

# Ratios of the rows' tokens: 3, 0.5, 1.5 and 1.2, (not sampled), 0.25.
POLICY = torch.tensor([[3.0, 0.5, 1.5], [1.2, 1.0, 0.25]]).log() - 5.0
SAMPLER = torch.full((2, 3), -5.0)
MASK = torch.tensor([[True, True, True], [True, False, True]])


def weights(kind: str, level: str, cap: float, floor: float) -> list[list[float]]:
    sampler = SAMPLER.clone()
    sampler[1, 1] = math.inf  # what was not sampled must not matter
    found = importance_weights(
        POLICY, sampler, mask=MASK, kind=kind, level=level, cap=cap, floor=floor
    )
    return found.masked_fill(~MASK, -1.0).tolist()


@pytest.mark.parametrize(
    ("kind", "level", "cap", "floor", "expected"),
    [
        ("truncated", "token", 2.0, 0.5, [[2.0, 0.5, 1.5], [1.2, -1.0, 0.25]]),
        ("masked", "token", 2.0, 0.5, [[0.0, 0.5, 1.5], [1.2, -1.0, 0.0]]),
        # IcePop's own bounds: 0.5 and 5 are kept, 0.25 is not.
        ("masked", "token", 5.0, 0.5, [[3.0, 0.5, 1.5], [1.2, -1.0, 0.0]]),
        # Products: 3 * 0.5 * 1.5 = 2.25 and 1.2 * 0.25 = 0.3.
        ("truncated", "sequence", 2.0, 0.5, [[2.0, 2.0, 2.0], [0.3, -1.0, 0.3]]),
        ("masked", "sequence", 3.0, 1 / 3, [[2.25, 2.25, 2.25], [0.0, -1.0, 0.0]]),
        # MIS: only what is too likely is left out.
        ("masked", "sequence", 2.0, 0.0, [[0.0, 0.0, 0.0], [0.3, -1.0, 0.3]]),
    ],
)
def test_the_weights_worked_by_hand(kind, level, cap, floor, expected):
    for found, row in zip(weights(kind, level, cap, floor), expected, strict=True):
        assert found == pytest.approx(row, rel=1e-5)


def test_equal_policies_need_no_correction():
    for kind in ("truncated", "masked"):
        for level in ("token", "sequence"):
            found = importance_weights(SAMPLER, SAMPLER, mask=MASK, kind=kind, level=level, cap=1.0)
            assert found.tolist() == [[1.0] * 3] * 2


def test_the_floor_of_the_settings_is_the_inverse_of_the_cap_unless_it_is_given():
    # One token four times less likely than when sampled: w = 0.25.
    item = sequence([0, 1], sampled=[1], logprobs=-1.0)
    scores = Scores(policy=(0.0, -1.0 - math.log(4.0)))
    scored = replace(item, sampled=replace(item.sampled, scores=scores))
    batch = collate([scored], device=torch.device("cpu"))
    output = PolicyOutput(torch.tensor([scores.policy]), torch.zeros(1, 2))
    losses = {}
    for floor in (None, 0.2, 0.3):
        config = GRPOConfig(importance="masked", importance_cap=5.0, importance_floor=floor)
        losses[floor] = GRPO(config).loss(output, batch).total.item()
    assert losses == {None: pytest.approx(-0.25), 0.2: pytest.approx(-0.25), 0.3: 0.0}
    with pytest.raises(ConfigError, match=r"importance_floor=0\.2 does nothing where.*truncated"):
        GRPOConfig(importance="truncated", importance_floor=0.2)
    with pytest.raises(ConfigError, match="importance_floor must be in"):
        GRPOConfig(importance="masked", importance_floor=1.5)
