"""Tasks as data: one problem is a ``Task``, many are a ``Dataset``, and names live in a registry.

Rows come from outside, so each is checked when it is read: strict JSON, no duplicate keys, no text
that cannot be encoded again, bounded size. An error names the row and shows its start.
"""

import copy
import gzip
import hashlib
import json
import math
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Literal, cast, overload

from rllm_envs.errors import DatasetError, TaskError, excerpt

Task = dict[str, Any]
"""One problem, data only: JSON values under string keys. It may hold the answer."""

MAX_ROW_BYTES = 1 << 20
MAX_JSON_FILE_BYTES = 256 << 20
MAX_SKIPPED_SHARE = 0.01
ID_FIELDS = ("id", "unique_id", "task_id")
"""Columns whose values must differ from row to row."""
SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz")

_TEST_BYTE_LIMIT = 32
_PLAIN = frozenset({str, int, float, bool, type(None)})
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(task: Mapping[str, Any]) -> str:
    """Return the one JSON text of a task: sorted keys, no spaces, ASCII.

    Raises:
        TaskError: The task holds something that is not JSON.
    """
    try:
        return _CANONICAL.encode(task)
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskError(f"a task must be JSON, got {excerpt(task)}: {error}") from None


def copied(value: Any) -> Any:
    """Return a copy that shares nothing that can be changed with a value.

    Lists and dicts, of which tasks and infos are made, take a third of what `copy.deepcopy` needs.

    Raises:
        RecursionError: A list or a dict holds itself.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is list:
        return [copied(item) for item in value]
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    return copy.deepcopy(value)


def task_split(task: Mapping[str, Any]) -> Literal["train", "test"]:
    """Return the side on which a generated instance always falls, whatever the seed.

    An instance is in "test" iff the first byte of the SHA-256 of its canonical JSON is below 32, so
    one in eight is, and no instance is ever on both sides.
    """
    digest = hashlib.sha256(canonical_json(task).encode("ascii")).digest()
    return "test" if digest[0] < _TEST_BYTE_LIMIT else "train"


class Dataset(Sequence[Task]):
    """An immutable sequence of tasks.

    Items are shallow copies, so that a reader who adds a key changes nothing for the next.

    Args:
        rows: One mapping per task; values must be JSON.
        name: Name to show, if any.
        split: Split to show, if any.

    Raises:
        DatasetError: There are no rows, or one breaks a rule; the message names it.
    """

    def __init__(
        self,
        rows: Iterable[Mapping[str, Any]],
        name: str | None = None,
        split: str | None = None,
    ) -> None:
        source = name or "data set"
        checked = [checked_row(row, f"{source}, row {n}") for n, row in enumerate(rows, start=1)]
        self._take(checked, name, split)
        _check_ids(checked, source)

    def _take(self, rows: list[Task], name: str | None, split: str | None) -> None:
        if not rows:
            raise DatasetError(f"{name or 'data set'} has no rows; at least one is needed")
        self._rows = rows
        self.name = name
        self.split = split
        self.num_skipped = 0

    @classmethod
    def _of_checked(cls, rows: list[Task], name: str | None, split: str | None) -> "Dataset":
        dataset = cls.__new__(cls)
        dataset._take(rows, name, split)
        return dataset

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        on_bad_row: Literal["error", "skip"] = "error",
        name: str | None = None,
        split: str | None = None,
    ) -> "Dataset":
        """Read a JSONL file (one object per line) or a JSON file (a list of objects), UTF-8.

        Args:
            path: File ending in .jsonl, .json, or either with .gz.
            on_bad_row: "error" stops at the first bad row; "skip" leaves bad rows out and counts
                them in ``num_skipped``, but stops when more than 1 % are bad.
            name: Name to show; the file's name by default.
            split: Split to show.

        Raises:
            DatasetError: The file is missing, empty, of another kind, or has a bad row.
        """
        if on_bad_row not in ("error", "skip"):
            raise DatasetError(f'on_bad_row must be "error" or "skip", got {on_bad_row!r}')
        path = Path(path)
        rows: list[Task] = []
        bad: list[DatasetError] = []
        for where, raw in raw_rows(path):
            try:
                rows.append(checked_row(raw, where))
            except DatasetError as error:
                if on_bad_row == "error":
                    raise
                bad.append(error)
        if len(bad) > MAX_SKIPPED_SHARE * (len(rows) + len(bad)):
            raise DatasetError(
                f"{path}: {len(bad)} of {len(rows) + len(bad)} rows are bad, more than "
                f"{MAX_SKIPPED_SHARE:.0%} may be skipped; the first: {bad[0]}"
            )
        _check_ids(rows, str(path))
        dataset = cls._of_checked(rows, name or path.name, split)
        dataset.num_skipped = len(bad)
        return dataset

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> "Dataset": ...
    def __getitem__(self, index: int | slice) -> "Task | Dataset":
        if isinstance(index, slice):
            return self._of_checked(self._rows[index], self.name, self.split)
        return dict(self._rows[index])

    def __iter__(self) -> Iterator[Task]:
        return map(dict, self._rows)

    def __repr__(self) -> str:
        return f"Dataset(name={self.name!r}, split={self.split!r}, rows={len(self)})"

    @classmethod
    def concatenate(cls, parts: Iterable["Dataset"], name: str, split: str) -> "Dataset":
        """Return the rows of all ``parts``, one part after the other."""
        return cls._of_checked([row for part in parts for row in part], name, split)

    def repeat(self, n: int) -> "Dataset":
        """Return each row ``n`` times, the copies adjacent: ``a a b b`` for ``n=2``."""
        if n < 1:
            raise DatasetError(f"repeat needs n >= 1, got {n}")
        return self._of_checked(
            [row for row in self._rows for _ in range(n)], self.name, self.split
        )

    def shuffle(self, seed: int) -> "Dataset":
        """Return the rows in an order that depends on ``seed`` alone."""
        order = list(self._rows)
        random.Random(seed).shuffle(order)
        return self._of_checked(order, self.name, self.split)

    def select(self, indices: Iterable[int]) -> "Dataset":
        """Return the rows at ``indices``, in that order.

        Raises:
            DatasetError: An index is outside ``[0, len)``, or there is none.
        """
        chosen = list(indices)
        for index in chosen:
            if not 0 <= index < len(self):
                raise DatasetError(
                    f"select: index {index} is out of range for {len(self)} rows (0 to "
                    f"{len(self) - 1})"
                )
        return self._of_checked([self._rows[index] for index in chosen], self.name, self.split)


def write_jsonl(rows: Iterable[Mapping[str, Any]], file: IO[str]) -> None:
    """Write one JSON object per line, so that ``Dataset.from_file`` reads the same rows."""
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=True, allow_nan=False) + "\n")


def raw_rows(path: Path, max_row_bytes: int = MAX_ROW_BYTES) -> Iterator[tuple[str, bytes | Any]]:
    """Yield (place, undecoded line) of a JSONL file, or (place, decoded object) of a JSON file.

    Raises:
        DatasetError: The file is missing, of another kind, or cannot be read to its end; or a line
            is longer than ``max_row_bytes``.
    """
    if not path.name.endswith(SUFFIXES):
        raise DatasetError(f"{path}: a data file must end in one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    opener = gzip.open if path.name.endswith(".gz") else open
    is_lines = path.name.endswith((".jsonl", ".jsonl.gz"))
    count = 0
    try:
        with cast(IO[bytes], opener(path, "rb")) as file:
            rows = _lines(file, path, max_row_bytes) if is_lines else _list_items(file, path)
            for row in rows:
                count += 1
                yield row
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: cannot be read after row {count}: {error}") from None


def _lines(file: IO[bytes], path: Path, limit: int) -> Iterator[tuple[str, bytes]]:
    # A binary file ends lines at "\n" only; text splitting would also break rows at U+2028.
    number = 0
    while line := file.readline(limit + 1):
        number += 1
        where = f"{path}, row {number}"
        if len(line) > limit:
            raise DatasetError(f"{where}: longer than {limit} bytes: {excerpt(line)}")
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if line.strip():
            yield where, line


def _list_items(file: IO[bytes], path: Path) -> Iterator[tuple[str, Any]]:
    content = file.read(MAX_JSON_FILE_BYTES + 1)
    if len(content) > MAX_JSON_FILE_BYTES:
        raise DatasetError(
            f"{path}: larger than {MAX_JSON_FILE_BYTES} bytes; write it as .jsonl instead"
        )
    items = _decode(content.removeprefix(b"\xef\xbb\xbf"), str(path))
    if not isinstance(items, list):
        raise DatasetError(
            f"{path}: a .json file must hold a list of objects, got {excerpt(items)}"
        )
    for number, item in enumerate(items, start=1):
        where = f"{path}, row {number}"
        if not isinstance(item, dict):
            raise DatasetError(f"{where}: not a JSON object: {excerpt(item)}")
        yield where, item


def _decode(raw: bytes, where: str) -> Any:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DatasetError(f"{where}: not UTF-8 ({error.reason}): {excerpt(raw)}") from None
    try:
        return json.loads(text, object_pairs_hook=_unique_pairs, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{where}: not valid JSON ({error}): {excerpt(text.strip())}") from None


def _unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} appears twice")
    return dict(pairs)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def checked_row(row: Any, where: str) -> Task:
    """Return a row, decoded first where it is a line of JSON, once it is known to be a task.

    Raises:
        DatasetError: It is no JSON object, or holds what JSON or UTF-8 cannot: NaN, a NUL, half of
            a character pair; the message starts with ``where``.
    """
    row = _decode(row, where) if isinstance(row, bytes) else row
    if not isinstance(row, Mapping):
        raise DatasetError(f"{where}: not a JSON object: {excerpt(row)}")
    try:
        problem = _first_problem(row, depth=0)
    except RecursionError:
        problem = "nested too deeply"
    if problem:
        raise DatasetError(f"{where}: {problem}: {excerpt(row)}")
    return dict(row)


def _first_problem(value: Any, depth: int) -> str | None:
    if depth > 64:
        return "nested more than 64 levels deep"
    if isinstance(value, str):
        return _text_problem(value)
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                return f"the key {key!r} is not a string"
            problem = _text_problem(key) or _first_problem(item, depth + 1)
            if problem:
                return f"field {key[:40]!r}: {problem}" if depth == 0 else problem
        return None
    if isinstance(value, list | tuple):
        return next(filter(None, (_first_problem(item, depth + 1) for item in value)), None)
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not a finite number"
    if value is None or isinstance(value, bool | int | float):
        return None
    return f"a {type(value).__name__} is not JSON"


def _text_problem(text: str) -> str | None:
    if "\x00" in text:
        return "contains a NUL character"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "contains a lone surrogate, which cannot be encoded"
    return None


def _check_ids(rows: Sequence[Task], source: str) -> None:
    for field in ID_FIELDS:
        seen: dict[Any, int] = {}
        for number, row in enumerate(rows, start=1):
            value = row.get(field)
            if not isinstance(value, str | int):
                continue
            if value in seen:
                raise DatasetError(
                    f"{source}, row {number}: {field} {excerpt(value)} is also that of row "
                    f"{seen[value]}; ids must differ"
                )
            seen[value] = number
