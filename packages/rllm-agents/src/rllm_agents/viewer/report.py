"""A run as one file for a colleague: HTML that holds its plots, or Markdown beside them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rllm_agents.errors import UserError
from rllm_agents.viewer.report_facts import Example, Facts, gather
from rllm_agents.viewer.report_plots import plots
from rllm_agents.viewer.visible import visible

_MAX_MESSAGES = 20
_MAX_CHARACTERS = 4000
_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .15rem 1rem .15rem 0; border-bottom: 1px solid #8886;
  overflow-wrap: anywhere; }
img { max-width: 100%; background: white; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid #8888;
  padding-left: .8rem; font-size: 13px; unicode-bidi: isolate; }
"""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def write_report(run: Path, directory: Path | None = None) -> list[Path]:
    """Write ``report.html``, ``report.md`` and its plots.

    Args:
        run: A run directory, or a JSONL file of episodes.
        directory: Where to write; by default ``report`` in the run directory, or beside the file.

    Returns:
        The files, ``report.html`` first.

    Raises:
        UserError: There is no run, nothing can be written, or Matplotlib is not installed.
    """
    facts = gather(run)
    drawn = plots(facts)
    target = directory or (run if run.is_dir() else run.parent) / "report"
    contents: dict[str, bytes] = {
        "report.html": html_page(facts, drawn).encode(),
        "report.md": markdown_page(facts, drawn).encode(),
        **{f"{name}.png": png for name, (_, png) in drawn.items()},
    }
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (target / name).write_bytes(content)
    except OSError as error:
        raise UserError(f"{str(target)!r} cannot be written to: {error.strerror}") from error
    return [target / name for name in contents]


def html_page(facts: Facts, drawn: dict[str, tuple[str, bytes]]) -> str:
    """Return a page that needs no other file, runs no script and asks nothing of the network."""
    parts = [f"<h1>{_html(facts.name)}</h1>"]
    for title, head, rows in _tables(facts):
        parts += [f"<h2>{_html(title)}</h2>", _html_table(head, rows)]
    for title, png in drawn.values():
        data = base64.b64encode(png).decode()
        parts += [
            f"<h2>{_html(title)}</h2>",
            f'<img alt="{_html(title)}" src="data:image/png;base64,{data}">',
        ]
    for example in facts.examples:
        parts.append(f"<h2>{_html(_example_title(example))}</h2>")
        for head, text in _said(example):
            parts += [f"<h3>{_html(head)}</h3>", f'<pre dir="auto">{_html(text)}</pre>']
    if facts.settings:
        settings = f"<pre>{_html(facts.settings)}</pre>"
        parts.append(f"<details><summary>Settings</summary>{settings}</details>")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_html(facts.name)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def markdown_page(facts: Facts, drawn: dict[str, tuple[str, bytes]]) -> str:
    """Return the same in Markdown; plots are files beside it, texts stand in fenced blocks."""
    parts = [f"# {_cell(facts.name)}"]
    for title, head, rows in _tables(facts):
        lines = [head, ["---"] * len(head), *rows]
        table = "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)
        parts += [f"## {_cell(title)}", table]
    for name, (title, _) in drawn.items():
        parts += [f"## {_cell(title)}", f"![{_cell(title)}]({name}.png)"]
    for example in facts.examples:
        parts.append(f"## {_cell(_example_title(example))}")
        for head, text in _said(example):
            parts += [f"### {_cell(head)}", _fenced(text)]
    if facts.settings:
        parts += ["## Settings", _fenced(facts.settings)]
    return "\n\n".join(parts) + "\n"


def _tables(facts: Facts) -> Iterable[tuple[str, list[str], list[list[str]]]]:
    """Yield title, head and rows of each table that has any."""
    if facts.figures:
        rows = [[name, _number(value)] for name, value in facts.figures]
        yield "Result", ["figure", "value"], rows
    if facts.endings:
        head = ["played for", "step", "ended by", "episodes", "mean reward"]
        rows = [
            [e.kind, _number(e.step), e.termination, str(e.count), _number(e.mean_reward)]
            for e in facts.endings
        ]
        yield "How the newest episodes ended", head, rows


def _example_title(example: Example) -> str:
    row = example.row
    reward = "no reward" if row["reward"] is None else f"reward {row['reward']:g}"
    ending = row["termination"] or "no ending"
    return f"{example.outcome.capitalize()}: {row['id']} ({reward}, {ending})"


def _said(example: Example) -> Iterable[tuple[str, str]]:
    """Yield who said what; long texts and conversations are cut, and say so."""
    if example.error is not None:
        yield "error", _cut(example.error)
    for message in example.messages[:_MAX_MESSAGES]:
        yield message["role"] or "?", _cut("\n".join(filter(None, _texts(message))))
    if len(example.messages) > _MAX_MESSAGES:
        yield "and so on", f"{len(example.messages) - _MAX_MESSAGES} messages more"


def _texts(message: dict[str, Any]) -> tuple[str, str]:
    return message["content"], message["more"]


def _cut(text: str) -> str:
    rest = len(text) - _MAX_CHARACTERS
    return text if rest <= 0 else f"{text[:_MAX_CHARACTERS]}\n... {rest:,} characters more"


def _number(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _html(text: str) -> str:
    return escape(visible(text))


def _html_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first = "".join(f"<th>{_html(cell)}</th>" for cell in head)
    others = "".join(
        "<tr>" + "".join(f"<td>{_html(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{first}</tr>{others}</table>"


def _cell(text: str) -> str:
    """Return a text in one line of Markdown, in which no character has a meaning."""
    line = " ".join(visible(text).split())
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&$])", r"\\\1", line)


def _fenced(text: str) -> str:
    """Return a block whose fence is longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{visible(text)}\n{fence}"
