"""Write the tables of figures in docs/*.md from the result files under benchmarks/results/.

uv run python scripts/write_performance_page.py            # write the pages
uv run python scripts/write_performance_page.py --check    # exit 1 where one is out of date

What stands between a mark and its end is written: command, table, and what it was taken on. The
first two marks name a result of performance, and one of its tables where it has several; the third
names some learning curves.

    <!-- figures: execution_engine -->
    <!-- figures: vector_envs start -->
    <!-- learning: calculator-rft-lora calculator-dpo-lora -->
    <!-- end of figures -->

Every result of performance and each of its tables stands on some page.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks" / "performance"))

from results import Table  # noqa: E402

MARK = re.compile(r"<!-- (figures|learning): (.+) -->")
LIKE_A_MARK = re.compile(r"<!--\s*(figures|learning|end of figures)\b")
END = "<!-- end of figures -->"


class PageError(ValueError):
    """A mark or a result file that cannot be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Results:
    """Where result files are."""

    performance: Path
    learning: Path

    def read(self, folder: Path, name: str) -> dict[str, Any]:
        """Return a result file's content.

        Raises:
            PageError: There is no such file, or it holds no JSON object.
        """
        path = folder / f"{name}.json"
        if not path.is_file():
            known = ", ".join(sorted(file.stem for file in folder.glob("*.json"))) or "none"
            raise PageError(f"there is no result {name!r} in {folder.name}; there are: {known}")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise PageError(f"{path.name} is not JSON: {error}") from error
        if not isinstance(content, dict):
            raise PageError(f"{path.name} holds no object")
        return content

    def tables(self, name: str) -> dict[str, Table]:
        """Return the tables of a result of performance by their keys.

        Raises:
            PageError: It has none, or one that is no table.
        """
        content = self.read(self.performance, name)
        remedy = "run its script with --write"
        if not isinstance(content.get("tables"), dict) or not content["tables"]:
            raise PageError(f"result {name!r} has no tables: {remedy}")
        try:
            return {key: Table.of(**given) for key, given in content["tables"].items()}
        except (TypeError, ValueError, AttributeError) as error:
            raise PageError(f"result {name!r} has a malformed table ({error}): {remedy}") from error


def new_pages(docs: Path, results: Results) -> dict[Path, str]:
    """Return the text of each page that holds marks.

    Raises:
        PageError: A mark cannot be followed, or a table of a result stands on no page.
    """
    shown: set[tuple[str, str]] = set()
    pages = {}
    for path in sorted(docs.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        written = "\n".join(_lines(path.name, text.splitlines(), results, shown)) + "\n"
        if LIKE_A_MARK.search(text):
            pages[path] = written
    for file in sorted(results.performance.glob("*.json")):
        for key in results.tables(file.stem):
            if (file.stem, key) not in shown:
                raise PageError(
                    f"no page shows table {key!r} of {file.name}: put `<!-- figures: {file.stem} "
                    f"{key} -->` and `{END}` where it belongs, or delete the file"
                )
    return pages


def _lines(
    page: str, lines: Sequence[str], results: Results, shown: set[tuple[str, str]]
) -> Iterator[str]:
    """Yield a page's lines with the blocks between marks written again; adds to what is shown."""
    opened: tuple[int, str] | None = None
    for number, line in enumerate(lines, 1):
        place = f"{page}:{number}"
        if line == END:
            if opened is None:
                raise PageError(f"{place}: `{END}` without a mark before it")
            opened = None
            yield line
        elif LIKE_A_MARK.match(line.strip()):
            if opened is not None:
                raise PageError(f"{page}:{opened[0]}: `{opened[1]}` is not closed by `{END}`")
            opened = (number, line)
            yield line
            try:
                yield from _block(line, results, shown)
            except PageError as error:
                raise PageError(f"{place}: {error}") from error
        elif opened is None:
            yield line
    if opened is not None:
        raise PageError(f"{page}:{opened[0]}: `{opened[1]}` is not closed by `{END}`")


def _block(mark: str, results: Results, shown: set[tuple[str, str]]) -> Iterator[str]:
    """Yield what belongs under a mark."""
    match = MARK.fullmatch(mark)
    if match is None:
        raise PageError(
            f"`{mark}` is no mark; there are `<!-- figures: RESULT [TABLE] -->`, "
            "`<!-- learning: RESULT ... -->`, and `" + END + "`, alone in their lines"
        )
    kind, names = match[1], match[2].split()
    if kind == "figures":
        name, key, content, table = _figures(names, results)
        shown.add((name, key))
        yield from _written([content], [_shown_command(content.get("command"))], table)
    else:
        contents = [results.read(results.learning, name) for name in names]
        try:
            table = curves(contents)
        except KeyError as error:
            raise PageError(f"{' '.join(names)}: a run has no {error}") from error
        yield from _written(contents, [_learning_command(c) for c in contents], table)


def _figures(names: list[str], results: Results) -> tuple[str, str, dict[str, Any], Table]:
    """Return name, key, content and table of a mark."""
    if len(names) > 2:
        raise PageError(f"{' '.join(names)!r}: a result, and at most one of its tables")
    name = names[0]
    content, tables = results.read(results.performance, name), results.tables(name)
    keys = ", ".join(tables)
    if len(names) == 1 and len(tables) > 1:
        raise PageError(f"result {name!r} has several tables, name one of them: {keys}")
    key = names[1] if len(names) == 2 else next(iter(tables))
    if key not in tables:
        raise PageError(f"result {name!r} has no table {key!r}; it has: {keys}")
    return name, key, content, tables[key]


def _written(contents: list[dict[str, Any]], commands: list[str], table: Table) -> Iterator[str]:
    """Yield commands, table and small print."""
    yield ""
    if len(commands) == 1:
        yield f"`{commands[0]}`"
    else:
        yield from ("```bash", *commands, "```")
    yield from ("", *table.markdown().splitlines(), "")
    prints = dict.fromkeys(_small_print(content) for content in contents)
    yield f"<sub>{'; '.join(prints)}.</sub>"
    yield ""


def _small_print(content: dict[str, Any]) -> str:
    """Return when, on what and with what a result was taken, as far as it says so."""
    load = content.get("load_average")
    versions = content.get("versions") or {}
    parts = [
        content.get("date"),
        content.get("machine"),
        None if load is None else f"load {load}",
        ", ".join(f"{name} {version}" for name, version in versions.items()),
    ]
    return "; ".join(part for part in parts if part)


def _shown_command(command: object) -> str:
    """Return a command as it is typed at the repository's root."""
    if not isinstance(command, str):
        raise PageError("the result does not say its command")
    return re.sub(r"^((?:\w+=\S+ )*)python ", r"\1uv run python ", command)


def _learning_command(content: dict[str, Any]) -> str:
    """Return the command of a learning curve; a plain `rllm train` was started for each seed."""
    settings = _shown_command(content.get("command"))
    if not settings.startswith("rllm train"):
        return settings
    seeds = " ".join(str(run["seed"]) for run in content["runs"])
    script = f"uv run python benchmarks/learning_curves/run.py {content['name']}"
    return f"{script}{settings.removeprefix('rllm train')} --seeds {seeds}"


def curves(contents: Sequence[dict[str, Any]]) -> Table:
    """Return a row for each seed of some learning curves: scores by step, seconds."""
    runs = [(content["name"], run) for content in contents for run in content["runs"]]
    steps = sorted({point["step"] for _, run in runs for point in run["curve"]})
    greedy = any("eval/greedy_pass_at_1" in point for _, run in runs for point in run["curve"])
    columns = ["run", *("before" if step == 0 else f"after {step}" for step in steps)]
    columns[1] = f"pass@1 {columns[1]}"
    columns += ["greedy before", "at the end"] if greedy else []
    rows = []
    for name, run in runs:
        sampled = {p["step"]: f"{p['eval/pass_at_1']:.3f}" for p in run["curve"]}
        row = [_run_name(name, run, len(contents)), *(sampled.get(step, "") for step in steps)]
        if greedy:
            ends = (run["curve"][0], run["curve"][-1])
            scores = [point.get("eval/greedy_pass_at_1") for point in ends]
            row += ["" if score is None else f"{score:.3f}" for score in scores]
        rows.append([*row, f"{run['seconds']:,.0f}", f"{run['cpu_seconds']:,.0f}"])
    return Table.of([*columns, "seconds", "CPU seconds"], rows)


def _run_name(name: str, run: dict[str, Any], count: int) -> str:
    seed = f"seed {run['seed']}"
    return seed if count == 1 else f"{name}, {seed}"


def main() -> int:
    """Write or check the pages; return the exit code."""
    folder = ROOT / "benchmarks" / "results"
    results = Results(folder / "performance", folder / "learning_curves")
    try:
        pages = new_pages(ROOT / "docs", results)
    except PageError as error:
        print(error, file=sys.stderr)
        return 2
    stale = [path for path, text in pages.items() if path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path.name} is out of date: run `make docs`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        path.write_text(pages[path], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
