r"""Verdicts per second of the math grader, with math-verify called plainly beside it.

The mixture: the references of GSM8K and MATH-500, each graded against itself, against a changed
value (wrong) and against another spelling of its value (right). Nothing is asked twice, so no
remembered verdict helps; our grader has read the references of the mixture before the clock starts,
as an environment does at `reset`. Every verdict is checked, and the wrong ones are counted. Seconds
are CPU seconds where one thread does the work, and wall-clock where processes do. Each lap is a
process of its own, as both remember what they have seen; the table has medians and ranges over
laps.

Run it with `RLLM_DATA_DIR=... uv run python benchmarks/performance/math_grading.py --write`. A lap
takes a minute or two.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from math_verify import LatexExtractionConfig, parse, verify

from results import Table, installed, with_range, write_result
from rllm_envs import Dataset
from rllm_envs.grading import symbolic
from rllm_envs.grading.math_grader import grade_answer, read_reference
from rllm_envs.rewards import references_of

NUM_NUMBERS = 40_000
NUM_PLAIN = 2_000
THREADS = 8
EXACT = "exact numbers, one thread"
MIXTURE = "references of GSM8K and MATH-500, rewritten and perturbed, ours in processes"
NUMBERS = "of these, numbers"
EXPRESSIONS = "of these, expressions"
KINDS = (EXACT, MIXTURE, NUMBERS, EXPRESSIONS)
"""Rows of the table."""

Question = tuple[str, str, bool]
"""Reference, answer, whether the answer is right."""


def questions_about_numbers() -> list[Question]:
    """Return questions that exact comparison answers, no two alike."""
    rows: list[Question] = []
    for n in range(1000, 1000 + NUM_NUMBERS // 8):
        rows += [
            (str(n), f"{n}.0", True),
            (str(n), str(n + 1), False),
            (str(n), f"{n:,}", True),
            (str(n), rf"\frac{{{2 * n}}}{{2}}", True),
            (f"{n}.5", rf"{n}\frac{{1}}{{2}}", True),
            (f"{n}/7", f"{n + 1}/7", False),
            (f"{n}", rf"\${n}", True),
            (f"{n}", f"{n} dollars", True),
        ]
    return rows


def questions_about(references: Sequence[str]) -> list[Question]:
    """Return each reference with itself, a changed value and another spelling."""
    rows: list[Question] = []
    for reference in dict.fromkeys(references):
        read = read_reference(reference)
        rows.append((reference, reference, True))
        if read.number is not None:
            rows += _of_number(reference, read.number.value)
        elif read.is_words:
            rows += [
                (reference, "another word", False),
                (reference, rf"\text{{{read.text}}}", True),
            ]
        elif any(mark in read.text for mark in ("=", ",", r"\cup", r"\begin")):
            rows += [(reference, "17", False), (reference, rf"\displaystyle {reference}", True)]
        else:
            rows += [
                (reference, f"{read.text} + 1", False),
                (reference, rf"\frac{{2({read.text})}}{{2}}", True),
            ]
    return rows


def _of_number(reference: str, value: Fraction) -> list[Question]:
    top, bottom = value.numerator, value.denominator
    return [
        (reference, f"{top + bottom}/{bottom}", False),
        (reference, rf"\frac{{{3 * top}}}{{{3 * bottom}}}", True),
    ]


def with_our_grader(question: Question) -> bool:
    """Return the verdict of this package."""
    return grade_answer(question[1], [question[0]]).is_correct


def with_math_verify(question: Question) -> bool:
    """Return math-verify's verdict, asked as its documentation shows, without its alarms."""
    config = [LatexExtractionConfig()]
    gold = parse(rf"\boxed{{{question[0]}}}", config, parsing_timeout=None)  # type: ignore[arg-type]
    answer = parse(rf"\boxed{{{question[1]}}}", config, parsing_timeout=None)  # type: ignore[arg-type]
    return verify(gold, answer, timeout_seconds=None)


def measure(
    grade: Callable[[Question], bool], questions: list[Question], threads: int = 1
) -> dict[str, float]:
    """Grade all questions; return how many, the seconds, and how many verdicts were wrong."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    start = clock()
    if threads == 1:
        verdicts = list(map(grade, questions))
    else:
        with ThreadPoolExecutor(threads) as pool:
            verdicts = list(pool.map(grade, questions))
    seconds = clock() - start
    wrong = sum(verdict != row[2] for verdict, row in zip(verdicts, questions, strict=True))
    return {"questions": len(questions), "seconds": seconds, "wrong": wrong}


def lap(references: list[str], numbers: int) -> dict[str, dict[str, dict[str, float]]]:
    """Grade everything once; returns figures by kind of question, and by grader.

    Args:
        references: Of the mixture.
        numbers: How many questions about numbers our grader is asked.
    """
    mixture = questions_about(references)
    is_number = {text: read_reference(text).number is not None for text in references}
    parts = {
        NUMBERS: [row for row in mixture if is_number[row[0]]],
        EXPRESSIONS: [row for row in mixture if not is_number[row[0]]],
    }
    exact = questions_about_numbers()[:numbers]
    # Starts the processes.
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(with_our_grader, [("x+1", f"x+{n}", False) for n in range(THREADS)]))
    figures = {
        EXACT: {
            "ours": measure(with_our_grader, exact),
            "math-verify": measure(with_math_verify, exact[:NUM_PLAIN]),
        }
    }
    for part, rows in parts.items():
        figures[part] = {
            "ours": measure(with_our_grader, rows, THREADS),
            "math-verify": measure(with_math_verify, rows),
        }
    figures[MIXTURE] = {
        grader: {key: sum(figures[part][grader][key] for part in parts) for key in found}
        for grader, found in figures[NUMBERS].items()
    }
    return figures


def table(laps: list[dict[str, dict[str, dict[str, float]]]]) -> Table:
    """Return verdicts a second and wrong verdicts of both graders, by kind of question."""
    columns = ["questions"]
    for name in ("ours", "math-verify"):
        columns += [f"{name}, verdicts a second", "wrong"]
    rows = []
    for kind in KINDS:
        cells = [kind]
        for grader in ("ours", "math-verify"):
            found = [figures[kind][grader] for figures in laps]
            rates = [row["questions"] / row["seconds"] for row in found]
            wrong = max(row["wrong"] for row in found)
            cells += [with_range(rates, ",.0f"), f"{wrong:,} of {found[0]['questions']:,}"]
        rows.append(cells)
    return Table.of(columns, rows)


def read_references(directory: Path, limit: int | None) -> list[str]:
    """Return the references of both data sets, the first `limit` of each."""
    files = [directory / name for name in ("gsm8k/test.jsonl", "math500/test.jsonl")]
    return [
        references_of(row)[0] for file in files for row in list(Dataset.from_file(file))[:limit]
    ]


def main() -> None:
    """Print a Markdown table, and write the result where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--numbers", type=int, default=NUM_NUMBERS, help="Questions about numbers.")
    parser.add_argument(
        "--references", type=int, help="Of each data set; all where it is left out."
    )
    parser.add_argument("--laps", type=int, default=3)
    parser.add_argument("--write", action="store_true", help="Write the result file.")
    options = parser.parse_args()
    directory = os.environ.get("RLLM_DATA_DIR")
    if not directory:
        sys.exit("needs real data: set RLLM_DATA_DIR to the directory that holds gsm8k and math500")
    references = read_references(Path(directory), options.references)
    laps: list[dict[str, Any]] = []
    for _ in range(options.laps):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            laps.append(alone.submit(lap, references, options.numbers).result())
        print(f"lap {len(laps)} of {options.laps}", file=sys.stderr)
    shown = table(laps)
    print(shown.markdown())
    if options.write:
        settings = {"laps": options.laps, "processes": symbolic.default_num_workers()}
        versions = installed("math_verify", "sympy")
        print(write_result("math_grading", settings, {"laps": laps}, {"verdicts": shown}, versions))


if __name__ == "__main__":
    main()
