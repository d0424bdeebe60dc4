"""Figures of each task against those counted by hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rllm_agents import Episode, Step, TerminationReason, Trajectory
from rllm_agents.evaluation import summarize, task_figures, write_task_table


def played(task: dict[str, int], reward: float | None, tokens: int = 0) -> Episode:
    failed = reward is None
    reason = TerminationReason.LLM_ERROR if failed else TerminationReason.ENV_DONE
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"number {task['n']}?"},
    ]
    step = Step(response_ids=[0] * tokens, chat_completions=messages)
    trajectory = Trajectory(steps=[] if failed else [step], reward=reward)
    return Episode(
        task=task, termination_reason=reason, is_correct=reward == 1.0, trajectories=[trajectory]
    )


EPISODES = [
    played({"n": 1}, 1.0, 10),
    played({"n": 0}, 0.0, 2),
    played({"n": 1}, 0.5, 20),
    played({"n": 1}, None),
    played({"n": 2}, None),
    played({"n": 1}, 1.0, 30),
]


def test_attempts_are_counted_by_task_in_the_order_of_tasks() -> None:
    first, second, third = task_figures(EPISODES)
    assert [f.task["n"] for f in (first, second, third)] == [1, 0, 2]
    assert (first.num_episodes, first.num_failed, first.num_correct) == (4, 1, 2)
    assert first.pass_at_1 is not None
    assert first.pass_at_1.value == pytest.approx(2 / 3)
    # Wilson at 95 % for 2 of 3, from a table.
    assert (first.pass_at_1.low, first.pass_at_1.high) == pytest.approx((0.2077, 0.9385), abs=1e-4)
    assert first.mean_reward == pytest.approx(2.5 / 3)
    assert (first.mean_turns, first.mean_response_tokens) == (0.75, 15.0)
    assert first.question == "number 1?"
    assert second.pass_at_1 is not None and second.pass_at_1.value == 0.0
    assert (third.pass_at_1, third.mean_reward, third.question) == (None, None, "")


def test_every_k_up_to_the_most_judged_attempts_is_estimated() -> None:
    figures = summarize(EPISODES, num_tasks=3).figures()["pass_at_k"]
    # Task 1 has 2 of 3; task 0 has 0 of 1 and is in the estimate for k = 1 alone.
    assert {k: e["value"] for k, e in figures.items()} == pytest.approx(
        {"1": (2 / 3 + 0) / 2, "2": 1.0, "3": 1.0}
    )
    assert [e["num_tasks"] for e in figures.values()] == [2, 1, 1]


def test_the_table_is_a_csv_file(tmp_path: Path) -> None:
    write_task_table(tmp_path / "tasks.csv", task_figures(EPISODES))
    with (tmp_path / "tasks.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["task"] for row in rows] == ['{"n": 1}', '{"n": 0}', '{"n": 2}']
    assert (rows[0]["episodes"], rows[0]["failed"], rows[0]["correct"]) == ("4", "1", "2")
    assert float(rows[0]["pass_at_1"]) == pytest.approx(2 / 3)
    assert rows[0]["question"] == "number 1?"
    assert (rows[2]["pass_at_1"], rows[2]["low"], rows[2]["mean_reward"]) == ("", "", "")
