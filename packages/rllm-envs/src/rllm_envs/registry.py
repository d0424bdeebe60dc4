"""Data sets by name, kept as JSONL files under ``$RLLM_HOME/datasets`` or ``~/.rllm/datasets``."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rllm_envs.datasets import find_benchmark, load_benchmark, load_for_env
from rllm_envs.errors import DatasetError, DatasetNotFoundError
from rllm_envs.tasks import SUFFIXES, Dataset, write_jsonl

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class DatasetRegistry:
    """The data sets that this user has registered; all methods are class methods.

    A data set has a name and one or more splits. Each split is one file, replaced as a whole.
    """

    @classmethod
    def register_dataset(
        cls,
        name: str,
        data: str | Path | Iterable[Mapping[str, Any]],
        split: str = "default",
    ) -> Dataset:
        """Store rows under a name and return them.

        Args:
            name: Letters, digits, ``.``, ``_`` and ``-``, at most 100.
            data: Rows, or the path of a JSONL or JSON file.
            split: Which part of the data set this is; same characters as ``name``.

        Raises:
            DatasetError: A name is not allowed, or a row cannot be used.
        """
        folder = cls._folder(name)
        target = folder / f"{_checked_name(split, 'split')}.jsonl"
        if isinstance(data, str | Path):
            dataset = Dataset.from_file(data, name=name, split=split)
        else:
            dataset = Dataset(data, name=name, split=split)
        folder.mkdir(parents=True, exist_ok=True)
        # Written beside the target and then renamed, so that a reader never sees half a file.
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".writing-")
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                write_jsonl(dataset, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return dataset

    @classmethod
    def load_dataset(cls, name: str, split: str = "default") -> Dataset:
        """Return a registered data set, or a public one of ``rllm_envs.datasets``.

        A registered data set comes before a public one of the same name. Of a public one, "default"
        is the split that results are reported on.

        Raises:
            DatasetNotFoundError: There is no such name or split; the message lists what exists.
            DatasetError: A row of a public data set cannot be used.
            MissingDependencyError: A public one is not on this machine, nor the library to fetch
                it.
        """
        if not cls.dataset_exists(name) and find_benchmark(name) is not None:
            return load_benchmark(name, None if split == "default" else split)
        splits = cls.get_dataset_splits(name)
        if split not in splits:
            raise DatasetNotFoundError(
                f"data set {name!r} has no split {split!r}; it has {', '.join(splits)}"
            )
        path = cls._folder(name) / f"{split}.jsonl"
        return _read_unchanged(path, name, split)

    @classmethod
    def get_dataset_names(cls) -> list[str]:
        """Return the registered names, sorted."""
        root = _root()
        if not root.is_dir():
            return []
        return sorted(folder.name for folder in root.iterdir() if any(folder.glob("*.jsonl")))

    @classmethod
    def get_dataset_splits(cls, name: str) -> list[str]:
        """Return the splits of a data set, sorted.

        Raises:
            DatasetNotFoundError: There is no such name; the message lists what exists.
        """
        splits = sorted(path.stem for path in cls._folder(name).glob("*.jsonl"))
        if not splits:
            existing = ", ".join(cls.get_dataset_names()) or "none"
            raise DatasetNotFoundError(
                f"no data set is registered as {name!r}; registered: {existing}. Register one with "
                f"DatasetRegistry.register_dataset({name!r}, rows_or_path). Public data sets are "
                "those of rllm_envs.datasets.BENCHMARKS"
            )
        return splits

    @classmethod
    def dataset_exists(cls, name: str, split: str | None = None) -> bool:
        """Return whether a data set is registered, or has the split if one is named."""
        pattern = "*.jsonl" if split is None else f"{_checked_name(split, 'split')}.jsonl"
        return any(cls._folder(name).glob(pattern))

    @classmethod
    def remove_dataset(cls, name: str, split: str | None = None) -> None:
        """Delete a data set, or one split of it.

        Raises:
            DatasetNotFoundError: There is no such name or split; the message lists what exists.
        """
        splits = cls.get_dataset_splits(name)
        if split is not None and split not in splits:
            raise DatasetNotFoundError(
                f"data set {name!r} has no split {split!r}; it has {', '.join(splits)}"
            )
        if split is None or splits == [split]:
            shutil.rmtree(cls._folder(name))
        else:
            (cls._folder(name) / f"{split}.jsonl").unlink()

    @classmethod
    def _folder(cls, name: str) -> Path:
        return _root() / _checked_name(name, "data set name")


def load_rows(name_or_path: str | Path, split: str = "train") -> Dataset:
    """Return the rows that an environment's ``dataset=`` argument stands for.

    A file is one split, so all of its rows are returned whatever ``split`` says. Of a registered
    data set, ``split`` is taken; "all" stands for all its splits together, and a data set whose
    only split is "default" is used as a file is. Of a public data set (``rllm_envs.datasets``),
    "test" is the part that results are reported on. Files that do not change are read once per
    process.

    Args:
        name_or_path: A file ending in .jsonl, .json, or either with .gz; a registered name; or the
            name of a public data set, such as "gsm8k".
        split: "train", "test", "all", or another split of the data set.

    Raises:
        DatasetNotFoundError: There is no such file, name or split; the message lists what exists.
        DatasetError: The file is of another kind or has a bad row.
    """
    text = str(name_or_path)
    path = Path(text).expanduser()
    if path.is_file() or isinstance(name_or_path, Path):
        return _read_unchanged(path, path.name, None)
    if text.endswith(SUFFIXES) or os.sep in text or _NAME.fullmatch(text) is None:
        raise DatasetNotFoundError(f"dataset {text!r}: no such file (in {Path.cwd()})")
    if not DatasetRegistry.dataset_exists(text) and find_benchmark(text) is not None:
        return load_for_env(text, split)
    splits = DatasetRegistry.get_dataset_splits(text)
    if split in splits:
        return DatasetRegistry.load_dataset(text, split)
    if splits == ["default"]:
        return DatasetRegistry.load_dataset(text)
    if split == "all":
        return _all_splits(text, tuple(DatasetRegistry.load_dataset(text, s) for s in splits))
    raise DatasetNotFoundError(
        f"data set {text!r} has no split {split!r}; it has {', '.join(splits)}"
    )


def _root() -> Path:
    home = os.environ.get("RLLM_HOME")
    return (Path(home) if home else Path.home() / ".rllm") / "datasets"


def _checked_name(name: Any, what: str) -> str:
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise DatasetError(
            f"{what} {name!r:.80} is not allowed; use 1 to 100 letters, digits, '.', '_' and '-', "
            "starting with a letter or a digit"
        )
    return name


def _read_unchanged(path: Path, name: str, split: str | None) -> Dataset:
    try:
        status = path.stat()
    except OSError as error:
        raise DatasetNotFoundError(f"{path}: {error.strerror}") from None
    return _read_version(path.absolute(), (status.st_mtime_ns, status.st_size), name, split)


@lru_cache(maxsize=8)
def _read_version(path: Path, version: tuple[int, int], name: str, split: str | None) -> Dataset:
    return Dataset.from_file(path, name=name, split=split)


@lru_cache(maxsize=8)
def _all_splits(name: str, parts: tuple[Dataset, ...]) -> Dataset:
    return Dataset.concatenate(parts, name, "all")
