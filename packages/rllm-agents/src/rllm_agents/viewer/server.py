"""The viewer's server: files of one run to the browsers of this machine, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import OrderedDict
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from rllm_agents.errors import UserError
from rllm_agents.gateway.access import names_this_machine
from rllm_agents.viewer.episode_index import EpisodeIndex
from rllm_agents.viewer.episode_view import episode_view, preview
from rllm_agents.viewer.growing_file import FileReplacedError
from rllm_agents.viewer.json_lines import finite
from rllm_agents.viewer.metrics_file import MetricsFile
from rllm_agents.viewer.run_files import RunFiles
from rllm_agents.viewer.selection import Selection, TextSearch, select

HOST = "127.0.0.1"
"""The only address it listens on."""
ASSETS = {
    "": ("index.html", "text/html"),
    "app.js": ("app.js", "text/javascript"),
    "app.css": ("app.css", "text/css"),
}
"""Address -> file beside this one, and its type."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer: only our own script runs, and no other page may read or frame ours."""

_MAX_ROWS = 500
_MAX_METRIC_ROWS = 20_000
_MAX_SEARCHES = 8
_MAX_PREVIEWED_BYTES = 2**18
_INDEX_SECONDS = 0.1
_SEARCH_SECONDS = 0.15
_IDLE_SECONDS = 0.5


class Viewer:
    """Serves the page of one run on the loopback address.

    Args:
        path: A run directory, or a JSONL file of episodes.
        port: 0 takes a free one.

    Raises:
        UserError: There is no run at this place.

    Example:
        ```python
        async with Viewer("runs/mine") as viewer:
            print(viewer.url)
            await asyncio.Event().wait()
        ```
    """

    def __init__(self, path: str | Path, *, port: int = 0) -> None:
        self._files = RunFiles(Path(path).expanduser())
        self._port = port
        self._index = EpisodeIndex(self._files)
        self._metrics = MetricsFile(self._files.metrics)
        self._searches: OrderedDict[tuple[int, str], TextSearch] = OrderedDict()
        self._search_lock = asyncio.Lock()
        self._is_complete = False
        self._runner: web.AppRunner | None = None
        self._reader: asyncio.Task[None] | None = None
        self.url = ""
        """Where the page is; empty before it is served."""

    async def __aenter__(self) -> Self:
        """Begin to listen and to read.

        Raises:
            UserError: The port is taken.
        """
        app = web.Application(middlewares=[_guarded])
        for name in ASSETS:
            app.router.add_get(f"/{name}", _send_asset)
        app.router.add_get("/favicon.ico", _send_nothing)
        app.router.add_get("/api/run", self._send_run)
        app.router.add_get("/api/metrics", self._send_metrics)
        app.router.add_get("/api/episodes", self._send_episodes)
        app.router.add_get(r"/api/episodes/{number:\d{1,9}}", self._send_episode)
        self._runner = runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, self._port).start()
        except OSError as error:
            await runner.cleanup()
            raise UserError(f"port {self._port} cannot be listened on: {error}") from error
        self.url = f"http://{HOST}:{runner.addresses[0][1]}/"
        self._reader = asyncio.create_task(self._read_on())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening and reading."""
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        if self._runner is not None:
            await self._runner.cleanup()

    async def _read_on(self) -> None:
        """Follow the run's files; a thread reads, so that requests are answered meanwhile."""
        while True:
            try:
                is_more = await asyncio.to_thread(self._index.advance, _INDEX_SECONDS)
            except FileReplacedError:
                self._index = EpisodeIndex(self._files, self._index.generation + 1)
                is_more = True
            self._is_complete = not is_more
            await asyncio.sleep(0.0 if is_more else _IDLE_SECONDS)

    async def _send_run(self, request: web.Request) -> web.Response:
        index = self._index
        body = {
            "name": self._files.name,
            "path": str(self._files.path),
            "settings": self._files.settings_text(),
            "summary": self._files.summary(),
            "generation": index.generation,
            "num_episodes": len(index),
            "num_tasks": len(index.tasks.texts),
            "num_bad_lines": index.num_bad_lines,
            "is_complete": self._is_complete,
            "bytes_read": index.num_bytes_read,
            "bytes": index.size,
            "kinds": list(index.kinds.texts),
            "terminations": list(index.terminations.texts),
        }
        return _json(body)

    async def _send_metrics(self, request: web.Request) -> web.Response:
        self._metrics.read_on()
        after = _count(request, "after", 0)
        rows = self._metrics.rows[after : after + _MAX_METRIC_ROWS]
        total = len(self._metrics.rows)
        return _json({"generation": self._metrics.generation, "total": total, "rows": rows})

    async def _send_episodes(self, request: web.Request) -> web.Response:
        wanted = Selection.parse(request.query)
        first, count = _count(request, "first", 0), _count(request, "count", 100)
        index = self._index
        search = await self._search(index, wanted.text) if wanted.text else None
        numbers = select(index, wanted, search)
        shown = numbers[first : first + min(count, _MAX_ROWS)]
        body = {
            "generation": index.generation,
            "total": len(index),
            "matching": len(numbers),
            "first": first,
            "scanned": len(index) if search is None else search.num_scanned,
            "rows": await asyncio.to_thread(_rows, index, shown.tolist()),
        }
        return _json(body)

    async def _search(self, index: EpisodeIndex, text: str) -> TextSearch:
        """Return the search for a text after a little more of it."""
        async with self._search_lock:
            key = (index.generation, text)
            search = self._searches.setdefault(key, TextSearch(text))
            self._searches.move_to_end(key)
            if len(self._searches) > _MAX_SEARCHES:
                self._searches.popitem(last=False)
            await asyncio.to_thread(search.advance, index, _SEARCH_SECONDS)
            return search

    async def _send_episode(self, request: web.Request) -> web.Response:
        index, number = self._index, int(request.match_info["number"])
        if number >= len(index):
            raise web.HTTPNotFound(text=f"there is no episode {number}")
        row = index.row(number)
        record = await asyncio.to_thread(index.record, number)
        if record is None:
            raise web.HTTPNotFound(text=f"the file of episode {number} was exchanged")
        view = {"generation": index.generation, **row, **episode_view(record)}
        return _json(view)


@web.middleware
async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer browsers that were pointed at this machine by name, under strict headers."""
    try:
        # A page of elsewhere may have its name resolve to this machine; its Host says so.
        if not names_this_machine(request.headers.get("Host")):
            raise web.HTTPMisdirectedRequest(text="the viewer answers to this machine alone")
        response = await handler(request)
    except web.HTTPException as error:
        response = web.Response(status=error.status, text=error.text)
    except UserError as error:
        response = web.Response(status=400, text=str(error))
    response.headers.update(HEADERS)
    return response


async def _send_nothing(request: web.Request) -> web.Response:
    """Answer what browsers ask of every page, without one."""
    return web.Response(status=204)


async def _send_asset(request: web.Request) -> web.Response:
    name, content_type = ASSETS[request.path.removeprefix("/")]
    body = (files("rllm_agents.viewer") / "assets" / name).read_bytes()
    return web.Response(body=body, content_type=content_type, charset="utf-8")


def _rows(index: EpisodeIndex, numbers: list[int]) -> list[dict[str, Any]]:
    """Return what a list shows of episodes; a very long one is not read for it."""
    rows = [index.row(number) for number in numbers]
    for row, number in zip(rows, numbers, strict=True):
        is_short = index.num_bytes(number) <= _MAX_PREVIEWED_BYTES
        row |= preview(index.record(number) if is_short else None)
    return rows


def _json(body: dict[str, Any]) -> web.Response:
    try:
        text = json.dumps(body, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(finite(body), separators=(",", ":"))
    return web.Response(text=text, content_type="application/json")


def _count(request: web.Request, name: str, default: int) -> int:
    """Read a whole number of an address.

    Raises:
        UserError: It is none.
    """
    text = request.query.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise UserError(f"{name} must be a whole number from 0, got {text[:80]!r}")
    return int(text or default)
