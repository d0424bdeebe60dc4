from __future__ import annotations

import io

from rich.console import Console

from rllm_learn.display import Display, figures_view, sparkline

FIGURES = {"reward": "train/reward", "turns": "train/turns", "tokens": "t", "entropy": "e"}


def rows(num, **timed):
    return [
        {"step": i + 1, "train/reward": i / 10, "train/turns": 2.0, **timed} for i in range(num)
    ]


def run_of(num_steps, *, terminal):
    """What a run of that many steps shows, all of it."""
    file = io.StringIO()
    console = Console(file=file, force_terminal=terminal, width=100, _environ={"TERM": "xterm"})
    with Display(num_steps, figures=FIGURES, console=console) as display:
        display.line("[run] directory: x")
        for step in range(1, num_steps + 1):
            display.step(step, rows(step))
    return file.getvalue()


def test_without_a_terminal_there_are_ten_plain_lines():
    lines = run_of(40, terminal=False).splitlines()
    assert lines[0] == "[run] directory: x"
    assert len(lines) == 11
    assert lines[1] == "step 4/40  reward 0.3  turns 2"
    assert lines[10] == "step 40/40  reward 3.9  turns 2"


def test_a_short_run_prints_each_step():
    assert len(run_of(3, terminal=False).splitlines()) == 4


def test_on_a_terminal_the_view_is_drawn_and_the_lines_stay():
    shown = run_of(4, terminal=True)
    assert "[run] directory: x" in shown
    assert "reward" in shown
    assert "4/4" in shown
    assert "step 4/4  reward" not in shown  # no plain lines beside the view


def text_of(view):
    console = Console(file=io.StringIO(), width=120, color_system=None)
    for part in view:
        console.print(part)
    return console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def test_the_view_has_the_newest_value_and_the_last_ones_as_a_picture():
    shown = text_of(figures_view([*rows(3), {"step": 3, "e": None}], FIGURES))
    assert "reward" in shown
    assert "0.2" in shown
    assert "▁▅█" in shown
    assert "entropy" not in shown  # no row has it
    assert text_of(figures_view([], FIGURES)).strip() == ""


def test_the_time_of_a_step_is_shown_in_shares_of_the_whole():
    timed = {
        "time/step_seconds": 2.0,
        "time/sample_seconds": 1.0,
        "time/score_seconds": 0.0,
        "time/learn_seconds": 0.5,
        "time/sync_seconds": 0.1,
    }
    shown = text_of(figures_view(rows(1, **timed), FIGURES))
    assert "2.0 s a step" in shown
    assert "sampling 50%" in shown
    assert "learning 25%" in shown
    assert "sync 5%" in shown
    assert "other 20%" in shown
    assert shown.count("█") == 32


def test_a_sparkline_goes_from_the_lowest_to_the_highest_value():
    assert sparkline([0.0, 7.0, 3.0]) == "▁█▄"
    assert sparkline([5.0, 5.0]) == "▁▁"
