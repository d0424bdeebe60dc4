"""What Dr. GRPO, GSPO and CISPO do with the rewards of a group."""

from __future__ import annotations

import pytest
from learn_fakes import sequence

from rllm_learn.algorithms import CISPO, GSPO, CISPOConfig, DrGRPO, DrGRPOConfig, GSPOConfig
from rllm_learn.core.batch import Rollout
from rllm_learn.errors import ConfigError

# Rewards 1, 0, 0, 0: mean 0.25, standard deviation 0.5.
ROLLOUTS = [
    Rollout(0, reward, (sequence([1] * 5, sampled=[1, 2, 4]).sampled,))
    for reward in (1.0, 0.0, 0.0, 0.0)
]


@pytest.mark.parametrize(
    ("algorithm", "advantages"),
    [
        (DrGRPO(DrGRPOConfig(length_constant=20)), [0.75, -0.25, -0.25, -0.25]),
        (GSPO(GSPOConfig()), [1.5, -0.5, -0.5, -0.5]),
        (CISPO(CISPOConfig()), [1.5, -0.5, -0.5, -0.5]),
    ],
    ids=["dr_grpo", "gspo", "cispo"],
)
def test_the_advantages_of_a_group(algorithm, advantages):
    sequences = algorithm.credit(ROLLOUTS, {}).sequences
    assert [s.advantages[1] for s in sequences] == pytest.approx(advantages, abs=1e-5)
    assert len(algorithm.plan(3)) == 24


def test_dr_grpo_divides_by_a_constant_and_not_by_lengths():
    for item in DrGRPO(DrGRPOConfig(length_constant=20)).credit(ROLLOUTS, {}).sequences:
        assert (item.weight, item.count) == (0.05, 1.0)


def test_gspo_weighs_rollouts_equally():
    for item in GSPO(GSPOConfig()).credit(ROLLOUTS, {}).sequences:
        assert (item.weight, item.count) == (1 / 3, 1.0)


def test_the_constant_of_dr_grpo_comes_from_the_run_or_must_be_given():
    with pytest.raises(ConfigError, match=r"length_constant must be at least 1.*max_response"):
        DrGRPOConfig()
    with pytest.raises(ConfigError, match="length_constant=9 does nothing"):
        DrGRPOConfig(aggregation="token_mean", length_constant=9)


def test_a_weight_bounded_below_one_is_refused():
    with pytest.raises(ConfigError, match=r"max_ratio must be at least 1, got 0\.5"):
        CISPOConfig(max_ratio=0.5)
