"""Requests to an OpenAI-compatible server: retries, bounds, and errors in the server's words."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import ipaddress
import json
import math
import random
import re
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import orjson

from rllm_agents.errors import (
    BadReplyError,
    EngineError,
    GaveUpError,
    TransientError,
    UserError,
)
from rllm_agents.rollout_engines.openai_replies import RefusedError
from rllm_agents.rollout_engines.openai_sessions import LoopSessions
from rllm_agents.types import TerminationReason as _Reason

_T = TypeVar("_T")

# Request time-out, conflict, too many requests: the server says itself that it is no one's fault.
_TRANSIENT_STATUSES = frozenset({408, 409, 429})
_FINAL_SERVER_STATUSES = frozenset({501, 505})
# The quota of an account does not come back by waiting.
_FINAL_CODES = frozenset({"insufficient_quota"})
_MAX_REPLY_BYTES = 32 * 2**20
_MAX_MESSAGE_CHARACTERS = 500
_CONNECT_SECONDS = 30.0
# Nothing is sampled for a GET.
_GET_SECONDS = 30.0
_FIRST_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 30.0
_MAX_RETRY_AFTER_SECONDS = 60.0
_MIN_SECRET_CHARACTERS = 4
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\ud800-\udfff]+"
)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """How a server is spoken to. Made by OpenAIEngine, read by OpenAIClient."""

    base_url: str
    """Ends before ``/completions``; usually in ``/v1``."""
    api_key: str | None = field(default=None, repr=False)
    request_timeout: float = 600.0
    """Seconds of one attempt."""
    max_retries: int = 4
    """Attempts after the first."""
    max_connections: int = 512
    """Most requests in flight."""

    def __post_init__(self) -> None:
        """Refuse values outside their ranges; raises UserError. The key is never shown."""
        parts = _split_url(self.base_url)
        if parts.username is not None or parts.password is not None:
            raise UserError("base_url must not contain a user or a password; give api_key")
        if parts.query or parts.fragment:
            raise UserError(f"base_url must end with a path, got {self.base_url!r}")
        if self.api_key is not None and not re.fullmatch(r"[\x21-\x7e]+", self.api_key):
            raise UserError(
                f"api_key must be printable ASCII characters without spaces; the one given has "
                f"{len(self.api_key)} characters and others among them"
            )
        if not 0 < self.request_timeout < math.inf:
            raise UserError(f"request_timeout must be seconds above 0, got {self.request_timeout}")
        if not 0 <= self.max_retries <= 100:
            raise UserError(f"max_retries must be in [0, 100], got {self.max_retries}")
        if self.max_connections < 1:
            raise UserError(f"max_connections must be at least 1, got {self.max_connections}")


class OpenAIClient:
    """Asks one server, again where that may help, and says what went wrong where it does not.

    Redirects are not followed, and no cookies kept. Proxies named in the environment are used for
    all but this machine's own addresses.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._base_url = settings.base_url.rstrip("/")
        self._proxy = _proxy_for(self._base_url)
        # A reply that is not compressed has no more bytes than were sent.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if settings.api_key is not None:
            headers["Authorization"] = f"Bearer {settings.api_key}"
        self._sessions = LoopSessions(headers, settings.max_connections)
        seconds = settings.request_timeout
        self._post_timeout = _timeout(seconds)
        self._get_timeout = _timeout(min(seconds, _GET_SECONDS))
        self._jitter = random.Random()

    async def ask(
        self,
        path: str,
        read: Callable[[Any], _T],
        body: Mapping[str, Any] | bytes | None = None,
        *,
        about: str = "",
    ) -> _T:
        """Send a request, and again after failures that may pass.

        Waits between attempts grow twofold from half a second and are drawn uniformly up to that
        ("full jitter"), after what the server asks for by Retry-After.

        Args:
            path: After the base URL, such as ``/models``.
            read: Checks the decoded JSON; a TransientError that it raises is tried again.
            body: Sent as JSON by POST, as it is where it is JSON already; None: GET.
            about: Figures of the request, shown where the server refuses it.

        Returns:
            What `read` returned.

        Raises:
            RefusedError: The server refused the request.
            GaveUpError: It cannot be reached, or keeps failing.
            BadReplyError: It answers nonsense.
        """
        data = _encode(body) if isinstance(body, Mapping) else body
        attempt = 0
        while True:
            attempt += 1
            try:
                return read(await self._attempt(path, data))
            except TransientError as error:
                problem = self.clean(str(error))
                if attempt > self._settings.max_retries or self._sessions.is_closed:
                    attempts = f"{attempt} attempt{'s' if attempt > 1 else ''}"
                    text = self._prefixed(path, f"{problem} ({attempts})")
                    raise GaveUpError(text, error.reason) from None
                wait = self._wait_seconds(attempt, error.retry_after)
            except RefusedError as error:
                raise error.with_figures(about) from None
            except EngineError as error:
                # Not chained: the cause may quote what was cleaned here.
                raise type(error)(self._prefixed(path, self.clean(str(error)))) from None
            await asyncio.sleep(wait)

    def close(self) -> None:
        """End all connections; requests in flight fail. May be called again."""
        self._sessions.close()

    def clean(self, text: str) -> str:
        """Make text of a server fit to be shown: one line, bounded, without the key."""
        key = self._settings.api_key
        if key is not None and len(key) >= _MIN_SECRET_CHARACTERS:
            text = text.replace(key, "***")
        text = " ".join(_UNPRINTABLE.sub(" ", text).split())
        if len(text) > _MAX_MESSAGE_CHARACTERS:
            return text[:_MAX_MESSAGE_CHARACTERS] + "..."
        return text

    async def _attempt(self, path: str, data: bytes | None) -> Any:
        here = await self._sessions.of_this_loop()
        timeout = self._get_timeout if data is None else self._post_timeout
        async with here.slots:
            try:
                async with here.session.request(
                    "GET" if data is None else "POST",
                    self._base_url + path,
                    data=None if data is None else _json_payload(data),
                    timeout=timeout,
                    proxy=self._proxy,
                    allow_redirects=False,
                ) as response:
                    raw = await _read_bounded(response)
            except TimeoutError as error:
                problem = f"no answer within {timeout.total:g} seconds"
                raise TransientError(problem, reason=_Reason.LLM_TIMEOUT) from error
            except (aiohttp.ClientSSLError, aiohttp.InvalidURL) as error:
                raise EngineError(self.clean(f"cannot connect: {error}")) from error
            except (aiohttp.ClientError, OSError) as error:
                problem = self.clean(str(error)) or type(error).__name__
                problem = f"cannot be reached: {problem}"
                raise TransientError(problem, reason=_Reason.LLM_CONNECTION) from error
        if response.status == 200:
            return _decode(raw)
        raise self._refusal(path, response, raw)

    def _refusal(self, path: str, response: aiohttp.ClientResponse, raw: bytes) -> EngineError:
        """Turn an HTTP error into ours, in the server's words."""
        status = response.status
        said, code, parameter = _error_fields(raw)
        said = self.clean(said)
        text = f"HTTP {status} {self.clean(response.reason or '')}".strip()
        if said:
            text += f": {said}"
        is_transient = status in _TRANSIENT_STATUSES or (
            status >= 500 and status not in _FINAL_SERVER_STATUSES
        )
        if is_transient and code not in _FINAL_CODES:
            wait = _retry_after(response.headers.get("Retry-After"))
            return TransientError(text, wait, _Reason.LLM_HTTP_ERROR)
        if 300 <= status < 400:
            text += " (redirects are not followed: give the final base_url)"
        elif status in (401, 403):
            text += " (is api_key, or OPENAI_API_KEY, the server's?)"
        elif status == 404 and not self._base_url.endswith("/v1"):
            text += " (base_url usually ends with /v1)"
        return RefusedError(
            self._prefixed(path, text), status=status, said=said, code=code, parameter=parameter
        )

    def _prefixed(self, path: str, problem: str) -> str:
        return f"{self._base_url}{path}: {problem}"

    def _wait_seconds(self, attempt: int, retry_after: float | None) -> float:
        most = min(_MAX_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2.0 ** (attempt - 1))
        return min(retry_after or 0.0, _MAX_RETRY_AFTER_SECONDS) + self._jitter.uniform(0.0, most)


async def _read_bounded(response: aiohttp.ClientResponse) -> bytes:
    chunks = bytearray()
    async for chunk in response.content.iter_any():
        chunks += chunk
        if len(chunks) > _MAX_REPLY_BYTES:
            response.close()
            raise BadReplyError(f"the reply has more than {_MAX_REPLY_BYTES} bytes")
    return bytes(chunks)


def _timeout(seconds: float) -> aiohttp.ClientTimeout:
    """Return the bounds of one attempt."""
    return aiohttp.ClientTimeout(total=seconds, sock_connect=_CONNECT_SECONDS)


def _json_payload(data: bytes) -> aiohttp.BytesPayload:
    return aiohttp.BytesPayload(data, content_type="application/json")


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise EngineError(f"the request cannot be written as JSON: {error}") from error


def _decode(raw: bytes) -> Any:
    with contextlib.suppress(orjson.JSONDecodeError):
        return orjson.loads(raw)
    try:
        # What JSON does not have but servers write: NaN, halves of surrogate pairs.
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        problem = f"the reply is no JSON: {raw[:80]!r}"
        raise TransientError(problem, reason=_Reason.LLM_BAD_RESPONSE) from error


def _error_fields(raw: bytes) -> tuple[str, str, str]:
    """Message, code and parameter of an error reply, in any of the forms that servers use."""
    try:
        reply = json.loads(raw)
    except (ValueError, RecursionError):
        return raw[: 4 * _MAX_MESSAGE_CHARACTERS].decode("utf-8", "replace"), "", ""
    record = reply.get("error", reply) if isinstance(reply, Mapping) else reply
    if not isinstance(record, Mapping):
        return str(record), "", ""
    said = record.get("message") or record.get("detail") or ""
    code, parameter = record.get("code"), record.get("param")
    return (
        str(said),
        code if isinstance(code, str) else "",
        parameter if isinstance(parameter, str) else "",
    )


def _retry_after(given: str | None) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date."""
    if given is None:
        return None
    try:
        seconds = float(given)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(given).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _split_url(url: str) -> Any:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname)
        _ = parts.port  # raises where it is no port
    except (ValueError, TypeError, AttributeError):
        is_valid, parts = False, None
    if not is_valid or _UNPRINTABLE.search(url) or " " in url:
        raise UserError("base_url must be an address such as http://localhost:30000/v1")
    return parts


def _proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address; none for this machine's own."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        address = ipaddress.ip_address(host)
        is_local = address.is_loopback or address.is_unspecified
    except ValueError:
        is_local = host == "localhost" or host.endswith(".localhost")
    if is_local or urllib.request.proxy_bypass(host):
        return None
    proxy = urllib.request.getproxies().get(parts.scheme)
    return proxy if proxy is None or "://" in proxy else f"http://{proxy}"
