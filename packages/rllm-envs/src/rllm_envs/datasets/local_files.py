"""Rows of data files on this machine: JSONL, JSON, CSV, parquet and Arrow."""

import csv
import importlib
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from rllm_envs.datasets.benchmark import Benchmark
from rllm_envs.errors import DatasetError, DatasetNotFoundError, MissingDependencyError
from rllm_envs.tasks import SUFFIXES, raw_rows

TABLE_SUFFIXES = (".csv", ".parquet", ".arrow")
DATA_SUFFIXES = (*SUFFIXES, *TABLE_SUFFIXES)
"""Endings of the files that can be read."""

_STEMS = {"validation": ("validation", "dev", "val", "valid"), "test": ("test", "eval")}
"""Usual names of the file of a split."""


def data_files(benchmark: Benchmark, split: str, place: Path) -> list[Path]:
    """Return the files at ``place`` that hold a split of a benchmark.

    A file is the split as it is. In a folder they are named after the split, as the hub names it
    or as we do: ``test.jsonl``, ``test-00000-of-00002.parquet`` or ``test/data-00000.arrow``, also
    in a folder ``data`` or in one that is named after the configuration. Where neither is there, a
    folder with one single file serves a benchmark that has one single split.

    Raises:
        DatasetNotFoundError: Nothing is there, or no file of the split.
        DatasetError: The file is of a kind that cannot be read.
    """
    if place.is_file():
        if not place.name.endswith(DATA_SUFFIXES):
            raise DatasetError(
                f"{place}: a data file must end in one of {', '.join(DATA_SUFFIXES)}"
            )
        return [place]
    if not place.is_dir():
        raise DatasetNotFoundError(f"{place}: no such file or folder")
    folders = [place, place / "data"]
    if benchmark.config is not None:
        folders = [place / benchmark.config, *folders]
    for stem in _stems(benchmark, split):
        for folder in folders:
            found = _named_files(folder, stem)
            if found:
                return found
    present = [path for folder in folders for path in _files_in(folder)]
    if len(present) == 1 and len(benchmark.splits) == 1:
        return present
    raise DatasetNotFoundError(
        f"{place} has no file of split {split!r}: it needs {split}.jsonl, or another name of "
        f"{', '.join(_stems(benchmark, split))} with one of {', '.join(DATA_SUFFIXES)}; it has "
        f"{', '.join(path.name for path in present[:10]) or 'no data files'}"
    )


def rows_of_file(path: Path, max_row_bytes: int) -> Iterator[tuple[str, Any]]:
    """Yield (place, row) of a file; rows of JSONL are undecoded lines.

    Raises:
        DatasetError: The file cannot be read to its end.
        MissingDependencyError: It is a parquet or Arrow file, and pyarrow is not installed.
    """
    if not path.name.endswith(TABLE_SUFFIXES):
        yield from raw_rows(path, max_row_bytes)
        return
    rows = _csv_rows(path) if path.suffix == ".csv" else _arrow_rows(path)
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        check_row_size(row, where, max_row_bytes)
        yield where, row


def check_row_size(row: Any, where: str, max_row_bytes: int) -> None:
    """Raise ``DatasetError`` where a row is longer than ``max_row_bytes`` as JSON."""
    # What JSON cannot hold is refused later, with a better message.
    if len(json.dumps(row, ensure_ascii=False, default=repr)) > max_row_bytes:
        raise DatasetError(f"{where}: longer than {max_row_bytes} bytes")


def _stems(benchmark: Benchmark, split: str) -> list[str]:
    hubs = benchmark.splits[split]
    names = [hubs, *_STEMS.get(hubs, ()), split, *_STEMS.get(split, ())]
    return list(dict.fromkeys(names))


def _named_files(folder: Path, stem: str) -> list[Path]:
    """Return the files of a split in one folder, of one kind, in order."""
    for suffix in DATA_SUFFIXES:
        path = folder / f"{stem}{suffix}"
        if path.is_file():
            return [path]
        for pattern in (f"{stem}-*{suffix}", f"{stem}/*{suffix}"):
            found = sorted(path for path in folder.glob(pattern) if path.is_file())
            if found:
                return found
    return []


def _files_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.endswith(DATA_SUFFIXES))


def _csv_rows(path: Path) -> Iterator[dict[str, Any]]:
    count = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            for row in reader:
                count += 1
                if None in row:
                    raise DatasetError(f"{path}, row {count}: more fields than the first line has")
                yield row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(f"{path}: cannot be read after row {count}: {error}") from None


def _arrow_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        # By name, because it is not declared: the library datasets brings it.
        pyarrow = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingDependencyError(
            f"reading {path.name} needs pyarrow: pip install 'rllm-envs[data]'"
        ) from error
    count = 0
    try:
        with path.open("rb") as file:
            for batch in _batches(pyarrow, file, path.suffix):
                for row in batch.to_pylist():
                    count += 1
                    yield row
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise DatasetError(f"{path}: cannot be read after row {count}: {error}") from None


def _batches(pyarrow: Any, file: Any, suffix: str) -> Iterable[Any]:
    if suffix == ".parquet":
        return pyarrow.parquet.ParquetFile(file).iter_batches(batch_size=256)
    start = file.read(6)
    file.seek(0)
    if start == b"ARROW1":
        reader = pyarrow.ipc.open_file(file)
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    return chain(pyarrow.ipc.open_stream(file))
