"""Rows of the data set hub and of its cache, through the library ``datasets``."""

from collections.abc import Iterator
from typing import Any

from rllm_envs.datasets.benchmark import Benchmark
from rllm_envs.datasets.local_files import check_row_size
from rllm_envs.errors import DatasetNotFoundError, MissingDependencyError

_READERS = {"jsonl": "json", "arrow": "arrow", "parquet": "parquet"}
"""What the library calls the files of each ending."""


def hub_rows(benchmark: Benchmark, split: str, revision: str | None) -> Iterator[tuple[str, Any]]:
    """Yield (place, row) of a split, from the cache or from the hub. No code of it is run.

    Raises:
        DatasetNotFoundError: It is neither cached nor reachable; the message is the library's.
        MissingDependencyError: The library is not installed.
    """
    try:
        import datasets  # an optional library
    except ImportError as error:
        raise MissingDependencyError(
            f"fetching {benchmark.name!r} needs the library datasets: pip install 'rllm-envs[data]'"
        ) from error
    try:
        rows = _load(datasets, benchmark, split, revision)
    except Exception as error:
        # The library lets through the errors of each layer below it: of the hub, of the network,
        # of files. All of them mean that there are no rows.
        text = " ".join(str(error).split())[:300]
        raise DatasetNotFoundError(f"{type(error).__name__}: {text}") from error
    for number, row in enumerate(rows, start=1):
        where = f"{benchmark.hub_id}, {benchmark.splits[split]}, row {number}"
        check_row_size(row, where, benchmark.max_row_bytes)
        yield where, row


def _load(datasets: Any, benchmark: Benchmark, split: str, revision: str | None) -> Any:
    if not benchmark.data_files:
        return datasets.load_dataset(
            benchmark.hub_id, benchmark.config, split=benchmark.splits[split], revision=revision
        )
    at = f"@{revision}" if revision else ""
    pattern = benchmark.data_files[split]
    files = f"hf://datasets/{benchmark.hub_id}{at}/{pattern}"
    reader = _READERS[pattern.rpartition(".")[2]]
    return datasets.load_dataset(reader, data_files={split: files}, split=split)
