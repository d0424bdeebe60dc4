from __future__ import annotations

import math

import pytest

from rllm_agents.errors import UserError
from rllm_agents.limits import RolloutLimits


def test_no_context_is_longer_than_both_token_limits_together() -> None:
    limits = RolloutLimits(max_prompt_length=10, max_response_length=7)
    assert limits.max_context_length == 17


@pytest.mark.parametrize("name", ["max_steps", "max_prompt_length", "max_response_length"])
@pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True])
def test_counts_must_be_whole_and_positive(name: str, value: object) -> None:
    with pytest.raises(UserError, match=name):
        RolloutLimits(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["step_timeout_seconds", "trajectory_timeout_seconds"])
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, "1"])
def test_timeouts_must_be_positive_and_finite(name: str, value: object) -> None:
    with pytest.raises(UserError, match=name):
        RolloutLimits(**{name: value})  # type: ignore[arg-type]


def test_timeouts_may_be_switched_off_but_not_that_of_close() -> None:
    RolloutLimits(step_timeout_seconds=None, trajectory_timeout_seconds=None)
    with pytest.raises(UserError, match="close_timeout_seconds"):
        RolloutLimits(close_timeout_seconds=None)  # type: ignore[arg-type]
