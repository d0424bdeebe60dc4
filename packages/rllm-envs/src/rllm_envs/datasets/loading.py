"""``load_benchmark``: the tasks of a public data set, from files on this machine or from the hub.

Rows come from outside. Each is checked before a task is made of it, and an error names the row and
the field.
"""

import os
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from rllm_envs.datasets.benchmark import Benchmark
from rllm_envs.datasets.catalog import benchmark_named
from rllm_envs.datasets.hub import hub_rows
from rllm_envs.datasets.local_files import data_files, rows_of_file
from rllm_envs.errors import (
    DatasetError,
    DatasetNotFoundError,
    MissingDependencyError,
    excerpt,
)
from rllm_envs.tasks import ID_FIELDS, MAX_SKIPPED_SHARE, Dataset, Task, checked_row

DATA_VARIABLE = "RLLM_DATA_DIR"
"""Environment variable that names a folder with one folder or file per benchmark."""


def load_benchmark(
    name: str | Benchmark,
    split: str | None = None,
    path: str | Path | None = None,
    *,
    revision: str | None = None,
    on_bad_row: Literal["error", "skip"] = "error",
) -> Dataset:
    """Return the tasks of a split of a public data set.

    Rows are taken from ``path``; else from ``$RLLM_DATA_DIR/<name>``, a folder or a file with one
    of the endings of ``local_files.DATA_SUFFIXES``; else, through the library ``datasets``, from
    its cache or from the hub.

    Args:
        name: A name of ``BENCHMARKS`` or an alias, or a benchmark of your own.
        split: Our name of the split or the hub's; the one that results are reported on by default.
        path: A file that holds the split, or a folder of files; with the columns of the hub.
        revision: Branch, tag or commit of the hub's repository; only without files of your own.
        on_bad_row: "error" stops at the first bad row; "skip" leaves bad rows out and counts them
            in ``num_skipped``, but stops when more than 1 % are bad.

    Raises:
        DatasetNotFoundError: There is no such benchmark or split, or no rows are to be had; the
            message says what to do.
        DatasetError: A row cannot be used, or a file cannot be read.
        MissingDependencyError: Nothing is on this machine, and the library is not installed.
    """
    if on_bad_row not in ("error", "skip"):
        raise DatasetError(f'on_bad_row must be "error" or "skip", got {on_bad_row!r:.40}')
    benchmark = name if isinstance(name, Benchmark) else benchmark_named(name)
    split = benchmark.split_named(split)
    place = Path(path).expanduser() if path is not None else _data_folder(benchmark)
    if path is not None and revision is not None:
        raise DatasetError("give path or revision, not both: a revision is the hub's")
    absence = "nothing on this machine"
    if place is not None and revision is None:
        try:
            files = data_files(benchmark, split, place)
        except DatasetNotFoundError as error:
            if path is not None:
                raise
            absence = str(error)
        else:
            limit = benchmark.max_row_bytes
            rows = chain.from_iterable(rows_of_file(file, limit) for file in files)
            return _tasks_of(benchmark, split, rows, on_bad_row)
    rows = _hub_rows(benchmark, split, revision, absence)
    return _tasks_of(benchmark, split, rows, on_bad_row)


def load_for_env(name: str, split: str) -> Dataset:
    """Return what ``dataset=`` of an environment stands for, read once while files do not change.

    Args:
        name: A name of ``BENCHMARKS`` or an alias.
        split: As ``load_benchmark``; "all" stands for all splits together.

    Raises:
        DatasetNotFoundError: As ``load_benchmark``.
        DatasetError: As ``load_benchmark``.
        MissingDependencyError: As ``load_benchmark``.
    """
    benchmark = benchmark_named(name)
    place = _data_folder(benchmark)
    splits = tuple(benchmark.splits) if split == "all" else (benchmark.split_named(split),)
    return _load_version(benchmark.name, splits, None if place is None else _versions(place))


@lru_cache(maxsize=8)
def _load_version(name: str, splits: tuple[str, ...], version: object) -> Dataset:
    parts = [load_benchmark(name, split) for split in splits]
    return parts[0] if len(parts) == 1 else Dataset.concatenate(parts, name, "all")


def _versions(place: Path) -> tuple[tuple[str, int, int], ...]:
    """Return what changes when files are changed: their names, sizes and times."""
    files = [place] if place.is_file() else sorted(place.rglob("*"))
    return tuple((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files if f.is_file())


def _data_folder(benchmark: Benchmark) -> Path | None:
    """Return the folder or file of a benchmark under ``$RLLM_DATA_DIR``, if it is there."""
    root = os.environ.get(DATA_VARIABLE)
    if not root:
        return None
    for name in (benchmark.name, *benchmark.aliases):
        folder = Path(root).expanduser() / name
        if folder.is_dir():
            return folder
        for file in folder.parent.glob(f"{name}.*"):
            if file.is_file():
                return file
    return None


def _hub_rows(
    benchmark: Benchmark, split: str, revision: str | None, absence: str
) -> Iterator[tuple[str, Any]]:
    root = os.environ.get(DATA_VARIABLE) or f"${DATA_VARIABLE} (not set)"
    remedy = (
        f"Fetch https://huggingface.co/datasets/{benchmark.hub_id} elsewhere and give "
        f"load_benchmark({benchmark.name!r}, path=...) its file or folder (JSONL, JSON, CSV, "
        f"parquet, Arrow), or put it at {root}/{benchmark.name}/{split}.jsonl"
    )
    if benchmark.is_gated:
        remedy += "; the hub gives it only to those who accepted its conditions"
    try:
        yield from hub_rows(benchmark, split, revision)
    except (DatasetNotFoundError, MissingDependencyError) as error:
        raise type(error)(
            f"benchmark {benchmark.name!r}, split {split!r}: {absence}, and nothing from the hub "
            f"({error}). {remedy}"
        ) from error


def _tasks_of(
    benchmark: Benchmark, split: str, rows: Iterable[tuple[str, Any]], on_bad_row: str
) -> Dataset:
    tasks: list[Task] = []
    bad: list[DatasetError] = []
    places: dict[tuple[str, Any], str] = {}
    num_rows = 0
    for where, raw in rows:
        num_rows += 1
        try:
            task = _task_of(benchmark, raw, where, places)
        except DatasetError as error:
            if on_bad_row == "error":
                raise
            bad.append(error)
            continue
        if task is not None:
            tasks.append(task)
    if len(bad) > MAX_SKIPPED_SHARE * num_rows:
        raise DatasetError(
            f"{benchmark.name}: {len(bad)} of {num_rows} rows are bad, more than "
            f"{MAX_SKIPPED_SHARE:.0%} may be skipped; the first: {bad[0]}"
        )
    dataset = Dataset(tasks, benchmark.name, split)
    dataset.num_skipped = len(bad)
    return dataset


def _task_of(
    benchmark: Benchmark, raw: Any, where: str, places: dict[tuple[str, Any], str]
) -> Task | None:
    row = checked_row(raw, where)
    try:
        task = benchmark.to_task(row)
    except DatasetError as error:
        raise DatasetError(f"{where}: {error}") from None
    for key in [] if task is None else [(name, task[name]) for name in ID_FIELDS if name in task]:
        if key in places:
            raise DatasetError(
                f"{where}: {key[0]} {excerpt(key[1])} is also that of {places[key]}; ids must "
                "differ"
            )
        places[key] = where
    return task
