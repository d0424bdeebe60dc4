"""Collections of passages: rows, JSONL files, text files and folders of them."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rllm_envs.errors import DatasetError, EnvArgumentError, excerpt

Corpus = str | Path | Iterable[Mapping[str, Any]]
"""Rows with ``text`` (or ``contents``) and maybe ``title``, a file, or a folder."""
TEXT_FIELDS = ("text", "contents")
"""Fields of a row that may hold the passage; the first present counts."""
SUFFIXES = (".jsonl", ".md", ".txt")
"""Files of a folder that are read."""
MAX_CHUNK_LENGTH = 1000
"""Characters of a passage made of paragraphs of a text file; a longer paragraph stays whole."""
Stamp = tuple[tuple[str, int, int], ...]
"""Name, size and time of change of each file of a corpus."""


def stamp_of(path: Path) -> Stamp:
    """Return what changes when a file, or a file of a folder, changes.

    Raises:
        EnvArgumentError: There is no such file, no file in the folder, or it cannot be read.
    """
    try:
        stamp = []
        for file in _files_of(path):
            status = file.stat()
            stamp.append((str(file), status.st_size, status.st_mtime_ns))
    except OSError as error:
        raise EnvArgumentError(f"the corpus {str(path)!r} cannot be read: {error}") from error
    if not stamp:
        raise EnvArgumentError(f"the corpus {str(path)!r} has no .jsonl, .txt or .md file")
    return tuple(stamp)


def passages_of_path(path: Path) -> tuple[str, ...]:
    """Return the passages of a file or folder, in the order of names and of lines.

    Each row of a .jsonl file is a passage. A .md or .txt file is cut at empty lines into passages
    of up to ``MAX_CHUNK_LENGTH`` characters; its name without the ending is the title of each. Any
    other file counts as .jsonl where it is given itself, and is left out of a folder.

    Raises:
        DatasetError: A file cannot be read, or a row cannot be used; its number is named.
    """
    passages: list[str] = []
    for file in _files_of(path):
        try:
            if file.suffix.lower() in (".md", ".txt"):
                passages += _passages_of_text(file.read_text(encoding="utf-8-sig"), file.stem)
            else:
                passages += _passages_of_rows(file)
        except (OSError, UnicodeDecodeError) as error:
            raise DatasetError(f"the corpus {str(file)!r} cannot be read: {error}") from error
    return _checked(passages, str(path))


def passages_of_rows(rows: Iterable[Any]) -> tuple[str, ...]:
    """Return the passages of given rows.

    Raises:
        DatasetError: A row cannot be used; its number is named.
    """
    place = "the corpus"
    made = [_passage(row, f"{place}, row {number}") for number, row in enumerate(rows, start=1)]
    return _checked(made, place)


def _files_of(path: Path) -> list[Path]:
    if not path.is_dir():
        path.stat()
        return [path]
    found = (file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
    return sorted(file for file in found if file.is_file())


def _passages_of_rows(path: Path) -> list[str]:
    passages = []
    with path.open(encoding="utf-8-sig") as lines:
        for line in filter(str.strip, lines):
            place = f"{path}, row {len(passages) + 1}"
            passages.append(_passage(_parsed(line, place), place))
    return passages


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"{place}: not JSON ({error}): {excerpt(line)}") from None


def _passages_of_text(text: str, title: str) -> list[str]:
    """Return paragraphs, joined as long as they fit into ``MAX_CHUNK_LENGTH`` characters."""
    chunks: list[str] = []
    for paragraph in filter(None, map(str.strip, re.split(r"\n[ \t]*\n", text))):
        if chunks and len(chunks[-1]) + len(paragraph) + 2 <= MAX_CHUNK_LENGTH:
            chunks[-1] += f"\n\n{paragraph}"
        else:
            chunks.append(paragraph)
    return [f"{title}: {chunk}" for chunk in chunks]


def _passage(row: Any, place: str) -> str:
    """Return what is searched and shown of a row: its title, where it has one, and its text."""
    if not isinstance(row, Mapping):
        raise DatasetError(f"{place}: a row must be an object, got {excerpt(row)}")
    text = next((row[name] for name in TEXT_FIELDS if row.get(name) is not None), None)
    if not isinstance(text, str) or not text.strip():
        raise DatasetError(
            f"{place}: needs {' or '.join(TEXT_FIELDS)} with words, got {excerpt(row)}"
        )
    title = row.get("title")
    if title is not None and not isinstance(title, str):
        raise DatasetError(f"{place}: the title must be text, got {excerpt(title)}")
    passage = f"{title}: {text}" if title else text
    try:
        passage.encode()
    except UnicodeEncodeError:
        raise DatasetError(f"{place}: holds half of a character pair: {excerpt(row)}") from None
    return passage


def _checked(passages: list[str], place: str) -> tuple[str, ...]:
    if not passages:
        raise DatasetError(f"{place} has no rows; a corpus needs at least one passage")
    return tuple(passages)
