r"""Verdicts per second of the math grader, with math-verify called plainly beside it.

The mixture: the references of GSM8K and MATH-500, each graded against itself, against a changed
value (wrong) and against another spelling of its value (right). Nothing is asked twice, so no
remembered verdict helps; our grader has read the references of the mixture before the clock starts,
as an environment does at `reset`. Every verdict is checked: the last column counts the wrong ones.
Seconds are CPU seconds where one thread does the work, and wall-clock where processes do.

Run it with `RLLM_DATA_DIR=... uv run python benchmarks/performance/math_grading.py`. It takes a
minute or two.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

from math_verify import LatexExtractionConfig, parse, verify

from rllm_envs import Dataset
from rllm_envs.grading import symbolic
from rllm_envs.grading.math_grader import grade_answer, read_reference
from rllm_envs.rewards import references_of

NUM_NUMBERS = 40_000
NUM_PLAIN = 2_000
THREADS = 8

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
    name: str, grade: Callable[[Question], bool], questions: list[Question], threads: int = 1
) -> tuple[float, int]:
    """Grade all questions, print a row, and return the seconds and how many verdicts were wrong."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    start = clock()
    if threads == 1:
        verdicts = list(map(grade, questions))
    else:
        with ThreadPoolExecutor(threads) as pool:
            verdicts = list(pool.map(grade, questions))
    seconds = clock() - start
    wrong = sum(verdict != row[2] for verdict, row in zip(verdicts, questions, strict=True))
    show(name, len(questions), seconds, wrong)
    return seconds, wrong


def show(name: str, count: int, seconds: float, wrong: int) -> None:
    """Print a row of the table."""
    print(f"| {name} | {count:,} | {count / seconds:,.0f} | {wrong:,} |", flush=True)


def main() -> None:
    """Print a Markdown table."""
    directory = os.environ.get("RLLM_DATA_DIR")
    if not directory:
        sys.exit("needs real data: set RLLM_DATA_DIR to the directory that holds gsm8k and math500")
    files = [Path(directory) / name for name in ("gsm8k/test.jsonl", "math500/test.jsonl")]
    references = [references_of(row)[0] for file in files for row in Dataset.from_file(file)]
    mixture = questions_about(references)
    is_number = {text: read_reference(text).number is not None for text in references}
    parts = {
        "numbers": [row for row in mixture if is_number[row[0]]],
        "expressions": [row for row in mixture if not is_number[row[0]]],
    }
    numbers = questions_about_numbers()
    # Starts the processes.
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(with_our_grader, [("x+1", f"x+{n}", False) for n in range(THREADS)]))
    ours = f"ours, {symbolic.default_num_workers()} processes"
    print("| questions | grader | verdicts | a second | wrong |")
    print("|---|---|---|---|---|")
    measure("exact numbers | ours, one thread", with_our_grader, numbers)
    measure("exact numbers | math-verify", with_math_verify, numbers[:NUM_PLAIN])
    for name, grade, threads in ((ours, with_our_grader, THREADS),
                                 ("math-verify", with_math_verify, 1)):  # fmt: skip
        results = [
            measure(f"GSM8K and MATH-500, {part} | {name}", grade, rows, threads)
            for part, rows in parts.items()
        ]
        seconds, wrong = (sum(column) for column in zip(*results, strict=True))
        show(f"GSM8K and MATH-500, all | {name}", len(mixture), seconds, int(wrong))


if __name__ == "__main__":
    main()
