"""Reading requests and writing answers over HTTP, each within its bounds."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import secrets
from collections.abc import AsyncIterator, Iterable
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from rllm_agents.gateway.json_body import MAX_BODY_BYTES
from rllm_agents.gateway.refusals import RequestError

REQUEST_ID_HEADER = "X-Request-Id"
"""Sent back as it came, or made where there is none fit to be."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_ERROR_SECONDS = 10.0


def connection_logger() -> logging.Logger:
    """Return where aiohttp reports what went wrong with connections.

    Bytes that are no HTTP are the client's affair: they are answered, and do not fill the log.
    """
    logger = logging.getLogger("rllm_agents.gateway.connections")
    logger.addFilter(_is_ours)
    return logger


def _is_ours(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError)


def request_id_of(request: web.BaseRequest) -> str:
    """Return the id that the client gave a request, or a random one."""
    given = request.headers.get(REQUEST_ID_HEADER, "")
    return given if _REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(12)}"


async def read_body(request: web.BaseRequest, seconds: float) -> bytes:
    """Read the JSON text of a request.

    Args:
        request: Of which nothing is read yet.
        seconds: How long it may take.

    Raises:
        RequestError: It is declared to be no JSON, too long, too slow or cut off.
    """
    # A web page may send other types to this machine unasked; for JSON its browser asks first.
    if request.content_type != "application/json":
        raise RequestError(415, "the body must be application/json", code="content_type")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise RequestError(415, "the body must not be compressed", code="content_encoding")
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise _too_long()
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.content.iter_any():
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    raise _too_long()
                chunks.append(chunk)
    except TimeoutError:
        raise RequestError(
            408, f"the body took longer than {seconds:g} s", code="timeout"
        ) from None
    except web.RequestPayloadError:
        raise RequestError(400, "the body is cut off or badly chunked", code="body") from None
    return b"".join(chunks)


async def send_json(
    request: web.BaseRequest,
    request_id: str,
    body: Any,
    *,
    status: int = 200,
    seconds: float = _ERROR_SECONDS,
) -> web.StreamResponse:
    """Send a body as JSON; who does not read it in time loses the connection."""
    response = web.Response(
        body=json.dumps(body, separators=(",", ":")).encode(),
        status=status,
        content_type="application/json",
        headers=_headers(request_id),
    )
    async with _reading(request, seconds):
        await response.prepare(request)
        await response.write_eof()
    return response


async def send_error(
    request: web.BaseRequest, request_id: str, error: RequestError
) -> web.StreamResponse:
    """Send an error in the protocol's form; the connection is closed where a body is left over."""
    response = web.Response(
        body=json.dumps(error.body()).encode(),
        status=error.status,
        content_type="application/json",
        headers=_headers(request_id),
    )
    if error.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if error.status == 429:
        response.headers["Retry-After"] = "1"
    if not request.content.at_eof() and request.body_exists:
        response.force_close()
    async with _reading(request, _ERROR_SECONDS):
        await response.prepare(request)
        await response.write_eof()
    return response


async def send_stream(
    request: web.BaseRequest, request_id: str, chunks: Iterable[Any], seconds: float
) -> web.StreamResponse:
    """Send parts as server-sent events, closed by ``[DONE]``."""
    response = web.StreamResponse(headers={**_headers(request_id), "Cache-Control": "no-cache"})
    response.content_type = "text/event-stream"
    async with _reading(request, seconds):
        await response.prepare(request)
        for chunk in chunks:
            text = json.dumps(chunk, separators=(",", ":"))
            await response.write(f"data: {text}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
    return response


@contextlib.asynccontextmanager
async def _reading(request: web.BaseRequest, seconds: float) -> AsyncIterator[None]:
    """Abort the connection of a client that does not read its answer within some seconds."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the client does not read its answer") from None


def _headers(request_id: str) -> dict[str, str]:
    return {REQUEST_ID_HEADER: request_id}


def _too_long() -> RequestError:
    return RequestError(
        413, f"the body has more than {MAX_BODY_BYTES} bytes", code="request_too_large"
    )
