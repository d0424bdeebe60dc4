"""What `rllm eval` prints can be read in terminals of any width."""

from __future__ import annotations

from pathlib import Path

import pytest

from rllm_agents.cli.eval_display import print_result
from rllm_agents.evaluation.results import summarize
from rllm_agents.types import Episode, Step, TerminationReason, Trajectory


def episode(number: int, is_correct: bool) -> Episode:
    messages = [{"role": "user", "content": "why? " * 60}]
    step = Step(chat_completions=messages, reward=float(is_correct))
    return Episode(
        id=str(number),
        task={"seed": number},
        termination_reason=TerminationReason.ENV_DONE,
        is_correct=is_correct,
        trajectories=[Trajectory(steps=[step], reward=float(is_correct))],
    )


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_tasks_keep_their_figures_whatever_the_width(
    width: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = summarize([episode(0, True), episode(1, False)], num_tasks=2)
    print_result(result, None, seconds=1.0, run_dir=Path("runs/x"))
    lines = [line for line in capsys.readouterr().out.splitlines() if "of 1" in line]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    # The hardest first; Wilson's interval of none, and of one, in one trial.
    assert [row[:5] for row in cells] == [
        ["1", "0 of 1", "0.000", "0.000 to 0.793", "0.000"],
        ["0", "1 of 1", "1.000", "0.207 to 1.000", "1.000"],
    ]
    assert all(row[5].startswith("why? ") and len(row[5]) < 200 for row in cells)
    assert max(map(len, lines)) <= width
