from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rllm_agents.errors import UserError
from rllm_agents.limits import RolloutLimits
from rllm_agents.types import TerminationReason


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
    with pytest.raises(UserError, match=f"^{name.removesuffix('_seconds')} must be"):
        RolloutLimits(**{name: value})  # type: ignore[arg-type]


def test_timeouts_may_be_switched_off_but_not_that_of_close() -> None:
    RolloutLimits(step_timeout_seconds=None, trajectory_timeout_seconds=None)
    with pytest.raises(UserError, match="close_timeout must be"):
        RolloutLimits(close_timeout_seconds=None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("num_prompt", "num_first", "room", "room_of_each_turn"),
    [(10, 10, 7, 7), (11, 11, 0, 0), (4, 4, 7, 7), (9, 4, 2, 7), (11, 4, 0, 0), (10, 9, 6, 7)],
)
def test_room_is_what_the_trajectory_or_the_turn_has_left(
    num_prompt: int, num_first: int, room: int, room_of_each_turn: int
) -> None:
    limits = RolloutLimits(max_prompt_length=10, max_response_length=7)
    assert limits.room(num_prompt, num_first) == room
    each = replace(limits, enforce_max_prompt_length=True)
    assert each.room(num_prompt, num_first) == room_of_each_turn


def test_an_episode_without_room_ends_for_the_bound_that_took_it() -> None:
    limits = RolloutLimits()
    assert limits.too_long(is_first=True) is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
    assert limits.too_long(is_first=False) is TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED
    each = replace(limits, enforce_max_prompt_length=True)
    assert each.too_long(is_first=False) is TerminationReason.MAX_PROMPT_LENGTH_EXCEEDED
