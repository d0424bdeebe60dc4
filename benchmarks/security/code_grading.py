"""Grade HumanEval's own solutions, their stubs, and solutions with one operator changed.

    RLLM_DATA_DIR=... uv run python benchmarks/security/code_grading.py

Every own solution should pass, no stub should, and few changed ones; those that pass are printed,
since a change that makes no difference to the tests is no fault of the grader.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
from pathlib import Path
from typing import Any

from rllm_envs.grading.code.grader import CodeGrader
from rllm_envs.grading.code.tests import read_tests

SWAPS: dict[type, ast.AST] = {
    **{ast.Add: ast.Sub(), ast.Sub: ast.Add(), ast.Mult: ast.Add(), ast.Div: ast.Mult()},
    **{ast.FloorDiv: ast.Mult(), ast.Mod: ast.Mult(), ast.Pow: ast.Mult()},
    **{ast.Lt: ast.GtE(), ast.Gt: ast.LtE(), ast.LtE: ast.Gt(), ast.GtE: ast.Lt()},
    **{ast.Eq: ast.NotEq(), ast.NotEq: ast.Eq(), ast.In: ast.NotIn(), ast.NotIn: ast.In()},
    **{ast.And: ast.Or(), ast.Or: ast.And()},
}


def main() -> None:
    """Print the counts and what passed that should not."""
    parser = argparse.ArgumentParser(description="Grade HumanEval and changes of it.")
    default = Path(os.environ.get("RLLM_DATA_DIR", "")) / "humaneval" / "HumanEval.jsonl.gz"
    parser.add_argument("--file", type=Path, default=default)
    with gzip.open(parser.parse_args().file, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    grader = CodeGrader()

    def passes(row: dict[str, Any], solution: str) -> bool:
        return grader.grade(solution, read_tests(row)).is_correct

    own = sum(passes(row, row["prompt"] + row["canonical_solution"]) for row in rows)
    stubs = sum(passes(row, row["prompt"] + "    pass\n") for row in rows)
    print(f"own solutions that pass: {own} of {len(rows)}; stubs that pass: {stubs}")
    changed = [(row, change) for row in rows if (change := with_one_operator_changed(row))]
    alive = [(row, what) for row, (source, what) in changed if passes(row, source)]
    print(f"solutions with an operator: {len(changed)}; changed ones that pass: {len(alive)}")
    for row, what in alive:
        print(f"  {row['task_id']}: {what}")


def with_one_operator_changed(row: dict[str, Any]) -> tuple[str, str] | None:
    """Return the solution with its first operator changed, and the change; None without one."""
    tree = ast.parse(row["prompt"] + row["canonical_solution"])
    function = next(
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == row["entry_point"]
    )
    for node in ast.walk(function):
        before = ast.unparse(node) if isinstance(node, ast.expr | ast.AugAssign) else ""
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
            node.op = SWAPS[type(node.op)]  # type: ignore[assignment]
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            node.ops[0] = SWAPS[type(node.ops[0])]  # type: ignore[call-overload]
        else:
            continue
        return ast.unparse(tree), f"{before}  ->  {ast.unparse(node)}"
    return None


if __name__ == "__main__":
    main()
