from __future__ import annotations

from collections import Counter

import pytest

from rllm_learn.errors import ConfigError
from rllm_learn.task_sources import DatasetTasks, SeedTasks, hold_out


def test_no_two_steps_share_a_seed_and_a_step_always_has_the_same():
    source = SeedTasks(seed=3)
    steps = [source.batch(32 * step, 32) for step in range(50)]
    assert len({task["seed"] for batch in steps for task in batch}) == 50 * 32
    assert SeedTasks(seed=3).batch(7 * 32, 32) == steps[7]
    assert not {t["seed"] for t in SeedTasks(seed=4).batch(0, 32)} & {t["seed"] for t in steps[0]}


def test_each_row_is_played_once_an_epoch_in_an_order_of_its_own():
    rows = [{"question": str(i)} for i in range(10)]
    source = DatasetTasks(rows, seed=1)
    played = [task["question"] for step in range(5) for task in source.batch(4 * step, 4)]
    assert Counter(played) == {str(i): 2 for i in range(10)}
    assert sorted(played[:10]) == sorted(str(i) for i in range(10))
    assert played[:10] != played[10:]
    assert DatasetTasks(rows, seed=1).batch(12, 4) == [{"question": q} for q in played[12:16]]


def test_rows_held_out_are_not_trained_on_even_where_they_are_repeated():
    rows = [{"question": str(i % 12)} for i in range(24)]
    training, held_out = hold_out(rows, 100)
    assert [r["question"] for r in held_out] == ["7", "3", "11"]
    assert {r["question"] for r in training}.isdisjoint({"7", "3", "11"})
    assert len(training) == 24 - 6
    assert len(hold_out(rows, 2)[1]) == 2


def test_too_few_rows_are_refused_with_the_remedy():
    with pytest.raises(ConfigError, match=r"env\.eval_dataset"):
        hold_out([{"question": "1"}] * 7, 10)
    with pytest.raises(ConfigError, match="no rows"):
        DatasetTasks([], seed=0)
