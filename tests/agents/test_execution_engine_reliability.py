"""The fault table of docs/reliability.md, small: see benchmarks/reliability."""

from __future__ import annotations

from typing import Any

import pytest
from fault_plan import KINDS, Deadlines, Kind, draw_faults, wall_bound
from fault_runs import Row, RunSetting, is_grading, run_row

DEADLINES = Deadlines(request_seconds=2.0, step_seconds=2.0, max_retries=1)
GROUPS = {
    place: [kind for kind in KINDS if kind.place == place and not kind.needs_process]
    for place in ("server", "env", "grader")
}


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def play(
    name: str, kinds: list[Kind], isolation: str = "thread", num_parallel: int = 32, **changes: Any
) -> Row:
    setting = RunSetting(isolation, num_parallel, DEADLINES)
    return run_row(name, draw_faults(kinds, 100), setting, **changes)


def test_there_are_26_kinds_of_faults() -> None:
    assert [len(GROUPS["server"]), len(GROUPS["env"]) + 1, len(GROUPS["grader"])] == [10, 12, 4]
    assert len({kind.name for kind in KINDS}) == 26


@pytest.mark.parametrize("place", GROUPS)
def test_a_hundred_episodes_under_all_faults_of_a_group_come_back_true(place: str) -> None:
    kinds = GROUPS[place]
    reasons = frozenset(reason for kind in kinds for reason in kind.reasons)
    row = play(place, kinds, allowed=reasons)
    assert row.holds, row
    assert (row.returned, row.lost, row.duplicated) == (100, 0, 0)
    assert row.completed + row.failed == 100
    assert set(row.reasons) <= reasons | {"env_done"}
    num_hit = sum(bool(faults) for faults in draw_faults(kinds, 100))
    assert 0 < row.failed <= num_hit


def test_environments_that_hang_or_crash_in_processes_leave_nothing_behind() -> None:
    names = ("synchronous hang", "segfault or SIGKILL", "SystemExit", "grader hangs")
    kinds = [kind for kind in KINDS if kind.name in names]
    reasons = frozenset(reason for kind in kinds for reason in kind.reasons)
    row = play("processes", kinds, isolation="process", num_parallel=8, allowed=reasons)
    assert row.holds, row
    assert (row.returned, row.stuck_threads, row.processes_left) == (100, 0, 0)
    assert row.retried > 0  # what was killed was played again, in a fresh process
    assert {"env_exit", "env_step_timeout"} <= set(row.reasons)


def test_a_run_that_is_stopped_ends_in_time_and_accounts_for_every_request() -> None:
    kinds = [*GROUPS["server"], *GROUPS["env"]]
    row = play("half", kinds, stop=lambda ended: len(ended) >= 50)
    assert row.holds, row
    assert 50 <= row.returned < 100
    row = play("grading", [], stop=is_grading, grade_seconds=0.3)
    assert row.holds, row
    assert row.cancelled > 0


def test_the_bound_is_that_of_list_scheduling() -> None:
    plan = [{"asynchronous hang": {}}, {"slow but good": {}}, {}]
    # Delays of 3 s (2 and the grace of 1), 1 s and 0 s: 4 / 2 + 3, and three times 0.5 s of work.
    assert wall_bound(plan, DEADLINES, 2, 0.5) == pytest.approx(6.5)
