"""Tables of figures on pages: what a mark becomes, and which marks and results are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from write_performance_page import PageError, Results, Table, new_pages

END = "<!-- end of figures -->"
SPEED = {
    "name": "speed",
    "command": "OMP_NUM_THREADS=1 python benchmarks/performance/speed.py --write",
    "date": "2026-01-02",
    "machine": "a processor, 2 cores",
    "load_average": 0.5,
    "versions": {"Python": "3.11.7", "torch": "2.13.0"},
    "tables": {"turns": {"columns": ["way", "per second"], "rows": [["a|b", "12 (10 to 13)"]]}},
}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    (tmp_path / "docs").mkdir()
    (tmp_path / "performance").mkdir()
    (tmp_path / "learning").mkdir()
    return Results(tmp_path / "performance", tmp_path / "learning")


def pages(results: Results, text: str, name: str = "page.md") -> dict[str, str]:
    docs = results.performance.parent / "docs"
    (docs / name).write_text(text, "utf-8")
    return {path.name: written for path, written in new_pages(docs, results).items()}


def keep(folder: Path, name: str, content: Any) -> None:
    (folder / f"{name}.json").write_text(json.dumps(content), "utf-8")


def run_of(seed: int, scores: dict[int, float], **more: Any) -> dict[str, Any]:
    curve = [{"step": step, "eval/pass_at_1": score} for step, score in scores.items()]
    return {"seed": seed, "seconds": 1234.4, "cpu_seconds": 56.5, "curve": curve, **more}


def test_a_mark_gets_command_table_and_small_print(results):
    keep(results.performance, "speed", SPEED)
    text = f"# Title\n\n<!-- figures: speed -->\nold figures\n{END}\nProse.\n"
    expected = """# Title

<!-- figures: speed -->

`OMP_NUM_THREADS=1 uv run python benchmarks/performance/speed.py --write`

| way | per second |
|---|---|
| a\\|b | 12 (10 to 13) |

<sub>2026-01-02; a processor, 2 cores; load 0.5; Python 3.11.7, torch 2.13.0.</sub>

<!-- end of figures -->
Prose.
"""
    assert pages(results, text) == {"page.md": expected}
    assert pages(results, expected) == {"page.md": expected}


def test_small_print_leaves_out_what_a_result_does_not_say(results):
    bare = {"command": "python x.py", "date": "2026-01-02", "tables": SPEED["tables"]}
    keep(results.performance, "speed", bare)
    written = pages(results, f"<!-- figures: speed -->\n{END}\n")["page.md"]
    assert "<sub>2026-01-02.</sub>" in written
    assert "`uv run python x.py`" in written


def test_pages_without_marks_are_left_alone(results):
    assert pages(results, "Prose.\n\n<!-- a remark -->\n") == {}


def test_each_table_of_a_result_has_its_place(results):
    two = {
        "a": {"columns": ["x"], "rows": [["1"]]},
        "b": {"columns": ["y"], "rows": [["2"]]},
    }
    keep(results.performance, "speed", SPEED | {"tables": two})
    with pytest.raises(PageError, match=r"page\.md:1: .*several tables.*: a, b"):
        pages(results, f"<!-- figures: speed -->\n{END}\n")
    with pytest.raises(PageError, match="no table 'c'; it has: a, b"):
        pages(results, f"<!-- figures: speed c -->\n{END}\n")
    with pytest.raises(PageError, match=r"no page shows table 'a' of speed\.json"):
        pages(results, f"<!-- figures: speed b -->\n{END}\n")
    with pytest.raises(PageError, match="at most one of its tables"):
        pages(results, f"<!-- figures: speed a b -->\n{END}\n")
    first = pages(results, f"<!-- figures: speed b -->\n{END}\n<!-- figures: speed a -->\n{END}\n")
    lines = first["page.md"].splitlines()
    assert lines.index("| 2 |") < lines.index("| 1 |")


def test_a_table_may_stand_on_another_page(results):
    keep(results.performance, "speed", SPEED)
    pages_of_first = pages(results, f"<!-- figures: speed -->\n{END}\n", "a.md")
    assert set(pages_of_first) == {"a.md"}
    assert set(pages(results, "Prose.\n", "b.md")) == {"a.md"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<!-- figures: slow -->\n" + END, r"page\.md:1: there is no result 'slow'.*: speed"),
        ("a\n<!-- learning: slow -->\n" + END, r"page\.md:2: there is no result 'slow'.*: none"),
        ("<!-- figures: speed -->\nProse.", r"page\.md:1: .*figures: speed.*is not closed"),
        (
            f"<!-- figures: speed -->\n<!-- figures: speed -->\n{END}",
            r"page\.md:1: .*is not closed",
        ),
        (f"Prose.\n{END}", r"page\.md:2: .*without a mark before it"),
        ("<!-- figures -->\n" + END, r"page\.md:1: .*is no mark"),
        ("  <!-- figures: speed -->\n" + END, r"page\.md:1: .*alone in their lines"),
        ("Prose.", r"no page shows table 'turns' of speed\.json"),
    ],
)
def test_what_cannot_be_followed_is_one_clear_error(results, text, message):
    keep(results.performance, "speed", SPEED)
    with pytest.raises(PageError, match=message):
        pages(results, text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "speed.json holds no object"),
        ({"command": "python x.py"}, "'speed' has no tables: run its script with --write"),
        ({"tables": {"a": {"columns": ["x"], "rows": [["1", "2"]]}}}, "2 cells for 1 columns"),
        ({"tables": {"a": {"titles": []}}}, "malformed table"),
        ({"tables": SPEED["tables"]}, "does not say its command"),
    ],
)
def test_a_result_that_cannot_be_shown_is_named(results, content, message):
    keep(results.performance, "speed", content)
    with pytest.raises(PageError, match=message):
        pages(results, f"<!-- figures: speed -->\n{END}\n")


def test_a_learning_curve_has_a_row_for_each_seed(results):
    greedy = [
        {"step": 0, "eval/pass_at_1": 0.25, "eval/greedy_pass_at_1": 0.0},
        {"step": 20, "eval/pass_at_1": 0.9766, "eval/greedy_pass_at_1": 1.0},
    ]
    runs = [run_of(0, {}, curve=greedy), run_of(1, {0: 0.5, 20: 0.75})]
    content = {"name": "grpo", "command": "rllm train env=e", "machine": "m", "runs": runs}
    keep(results.learning, "grpo", content)
    written = pages(results, f"<!-- learning: grpo -->\n{END}\n")["page.md"].splitlines()
    assert written[2] == "`uv run python benchmarks/learning_curves/run.py grpo env=e --seeds 0 1`"
    assert written[4:8] == [
        "| run | pass@1 before | after 20 | greedy before | at the end | seconds | CPU seconds |",
        "|---|---|---|---|---|---|---|",
        "| seed 0 | 0.250 | 0.977 | 0.000 | 1.000 | 1,234 | 56 |",
        "| seed 1 | 0.500 | 0.750 |  |  | 1,234 | 56 |",
    ]
    assert written[9] == "<sub>m.</sub>"


def test_several_learning_curves_share_a_table(results):
    for name, steps in (("rft", {0: 0.1, 20: 0.2}), ("dpo", {0: 0.3, 40: 0.4})):
        content = {"name": name, "command": f"python {name}.py", "runs": [run_of(3, steps)]}
        keep(results.learning, name, content)
    written = pages(results, f"<!-- learning: rft dpo -->\n{END}\n")["page.md"].splitlines()
    assert written[2:6] == ["```bash", "uv run python rft.py", "uv run python dpo.py", "```"]
    assert written[7:11] == [
        "| run | pass@1 before | after 20 | after 40 | seconds | CPU seconds |",
        "|---|---|---|---|---|---|",
        "| rft, seed 3 | 0.100 | 0.200 |  | 1,234 | 56 |",
        "| dpo, seed 3 | 0.300 |  | 0.400 | 1,234 | 56 |",
    ]


def test_a_curve_of_other_figures_is_refused(results):
    run = run_of(0, {}, curve=[{"step": 0, "eval/score/random": 0.5}])
    keep(results.learning, "play", {"name": "play", "command": "rllm train", "runs": [run]})
    with pytest.raises(PageError, match="play: a run has no 'eval/pass_at_1'"):
        pages(results, f"<!-- learning: play -->\n{END}\n")


def test_a_written_result_is_read_back_as_it_was(results):
    # Found beside the page's writer, which puts its folder on the path.
    from results import with_quartiles, with_range, write_result

    # Sorted 1, 2, 3, 6, 8: the median is the third, quartiles are the second and the fourth.
    laps = [3.0, 8.0, 1.0, 6.0, 2.0]
    assert with_range(laps, ".0f") == "3 (1 to 8)"
    assert with_quartiles(laps, ".1f") == "3.0 (2.0 to 6.0)"
    assert with_range(laps[:1], ".1f") == with_quartiles(laps[:1], ".1f") == "3.0"
    table = Table.of(["way", "s"], [["a", with_range(laps, ".0f")]])
    path = write_result(
        "speed", {"laps": 5}, {"a": laps}, {"s": table}, {"torch": "2"}, results.performance
    )
    content = json.loads(path.read_text("utf-8"))
    assert content["figures"] == {"a": laps}
    assert content["versions"]["torch"] == "2"
    assert "cores" in content["machine"]
    assert results.tables("speed") == {"s": table}
