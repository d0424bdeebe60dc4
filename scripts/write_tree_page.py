"""Write docs/source-tree.md: one line per file, the first sentence of what the file says of itself.

`uv run python scripts/write_tree_page.py` writes it; with `--check` it writes nothing and leaves
with exit code 1 where the page is out of date.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "source-tree.md"
HEAD = """\
# The source tree

Each file in a line, as it says of itself; written by `make docs`.
[One datum](one-datum.md) follows a task through them.

"""
WIDTH = 36

TOP = {
    "AGENTS.md": "where things go, commands, conventions, pitfalls",
    "CONTRIBUTING.md": "how to add a thing; which library is used for what, and why",
    "Makefile": "commands of every day",
    "pyproject.toml": "the workspace and its tools' settings",
    "uv.lock": "pinned versions, without addresses",
    ".ci/run": "everything on a clean machine",
    "docs/": "short pages; start at docs/index.md",
    "tests/": "mirrors the packages",
}
SOURCES = (
    "packages/rllm-envs/src/rllm_envs",
    "packages/rllm-agents/src/rllm_agents",
    "packages/rllm-learn/src/rllm_learn",
    "benchmarks",
    "examples",
    "scripts",
)


def tree() -> str:
    """Return the tree's text."""
    lines = [_line(name, meaning) for name, meaning in TOP.items()]
    for source in SOURCES:
        lines += ["", f"{source}/", *_files(ROOT / source, indent=2)]
    return "\n".join(lines) + "\n"


def _files(directory: Path, *, indent: int) -> Iterator[str]:
    """Yield the lines of a directory: its files, then its directories."""
    entries = sorted(directory.iterdir(), key=lambda p: (p.is_dir(), p.name))
    for entry in entries:
        name = " " * indent + entry.name
        if entry.is_dir() and any(entry.rglob("*.py")) and entry.name != "__pycache__":
            yield _line(f"{name}/", _first_sentence(entry / "__init__.py"))
            yield from _files(entry, indent=indent + 2)
        elif entry.suffix == ".py" and entry.name != "__init__.py":
            yield _line(name, _first_sentence(entry))


def _first_sentence(path: Path) -> str:
    if not path.exists():
        return ""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(docstring.partition("\n\n")[0].split())
    sentence = re.split(r"(?<=\.)\s", paragraph)[0]
    return sentence.replace("``", "`").rstrip(".")


def _line(name: str, meaning: str) -> str:
    return f"{name:<{WIDTH}}{meaning}".rstrip()


def main() -> int:
    """Write or check the page; return the exit code."""
    text = f"{HEAD}```\n{tree()}```\n"
    if "--check" in sys.argv[1:]:
        if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
            return 0
        print("docs/source-tree.md is out of date: run `make docs`", file=sys.stderr)
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
