"""``MCPTools``: the tools of a server that speaks the Model Context Protocol."""

import json
import math
import os
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rllm_envs.errors import EnvArgumentError, ToolError, ToolServerError, excerpt
from rllm_envs.tools.base import Tool, ToolSource, check_call
from rllm_envs.tools.signature import Signature
from rllm_envs.tools.values import check_value

if TYPE_CHECKING:
    from rllm_envs.tools.mcp_connection import Connection, LoopThread, ServerAddress

_OPENING = ("patternProperties", "allOf", "anyOf", "oneOf", "$ref")
"""Parts of a schema that may allow names which ``properties`` does not list."""
_LOST = "[the server had ended and was started again; what it kept is lost]"


class MCPTools(ToolSource):
    """The tools of an MCP server, each with the JSON schema that the server gives.

    It may stand among the ``tools`` of an environment or of an agent. The server is asked for its
    tools when this object is made; the names of the tools are the server's, with ``_`` for what is
    no letter, digit, ``_`` or ``-``.

    Each episode has a session of its own (and, with ``command``, a process of its own), which is
    opened by its first call and ends with the episode. With ``shared=True`` all episodes use one
    session, which ends with ``close``. Calls may come from any thread.

    Arguments are checked before they are sent. What the server refuses, and a call that takes too
    long, is an answer to the agent. A server that has ended is started again and the call is made
    once more, so that a call may take effect twice; the answer then says that the server's state
    is lost.

    Args:
        command: Program and arguments of a server that speaks on standard input and output.
        url: Address of a server that speaks streamable HTTP, instead of ``command``.
        env: Environment variables of ``command``; of this process it has PATH, HOME and the like.
        headers: HTTP headers for ``url``, such as {"Authorization": "Bearer ..."}.
        timeout: Seconds of a call, positive.
        shared: Whether all episodes use one session.
        max_output_characters: Most characters of an answer, at least 100.

    Raises:
        EnvArgumentError: An argument is not usable, or two tools of the server have one name.
        ToolServerError: The server cannot be started or reached. From a call too, where it fails
            again after it was started again.
        MissingDependencyError: mcp is not installed.
    """

    def __init__(
        self,
        command: Sequence[str] | None = None,
        *,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 20.0,
        shared: bool = False,
        max_output_characters: int = 10_000,
    ) -> None:
        is_number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
        if not is_number or not 0 < timeout < math.inf:
            raise EnvArgumentError(f"timeout must be positive seconds, got {timeout!r:.80}")
        most = max_output_characters
        if isinstance(most, bool) or not isinstance(most, int) or most < 100:
            raise EnvArgumentError(
                f"max_output_characters must be an integer of at least 100, got {most!r:.80}"
            )
        address = _address(command, url, env, headers)
        self._shared = shared
        self._begin(_Settings(address, float(timeout), most, ()))
        try:
            listed = self._session.listed()
            self._settings = replace(self._settings, listed=tuple(listed))
            self._tools = _make_tools(self, self._session, listed, str(address))
        except BaseException:
            self.close()
            raise

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return self._tools

    def for_episode(self) -> ToolSource:
        """Return itself if it is shared, else the same tools with a session of their own."""
        if self._shared:
            return self
        # The session that listed the tools has made no call, so the first episode may have it.
        return _Session(self._settings, self._loop, self._session.handed_over())

    def end_episode(self) -> None:
        """Do nothing: what episodes share goes on until ``close``."""

    def close(self) -> None:
        """End all sessions; calls after that raise ``ToolServerError``."""
        self._session.end_episode()
        self._loop.close()

    def __enter__(self) -> "MCPTools":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs: all but sessions and their thread."""
        return {"settings": self._settings, "shared": self._shared}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._shared = state["shared"]
        self._begin(state["settings"])
        listed = self._settings.listed
        self._tools = _make_tools(self, self._session, listed, str(self._settings.address))

    def _begin(self, settings: "_Settings") -> None:
        self._settings = settings
        self._loop = _Loop()
        self._session = _Session(settings, self._loop)


@dataclass(frozen=True, slots=True)
class _Settings:
    """What all sessions with one server have in common."""

    address: "ServerAddress"
    """Where the server is."""
    timeout: float
    """Seconds of a call."""
    max_output: int
    """Most characters of an answer."""
    listed: tuple[dict[str, Any], ...]
    """Its tools, as the protocol describes them."""


class _Loop:
    """The event loop thread of one process, made when it is needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._thread: LoopThread | None = None
        self._is_closed = False

    def running(self) -> "LoopThread":
        from rllm_envs.tools.mcp_connection import LoopThread

        with self._lock:
            if self._is_closed:
                raise ToolServerError("the tools of the MCP server are closed")
            # A fork has none of its parent's threads.
            if self._thread is None or self._pid != os.getpid():
                self._thread = LoopThread()
                self._pid = os.getpid()
            return self._thread

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            if self._thread is not None and self._pid == os.getpid():
                self._thread.close()


class _Session(ToolSource):
    """The tools of a server with one session, which is opened again when the server has ended."""

    def __init__(
        self, settings: _Settings, loop: _Loop, connection: "Connection | None" = None
    ) -> None:
        self._settings = settings
        self._loop = loop
        self._connection = connection
        self._lock = threading.Lock()
        self._tools = _make_tools(self, self, settings.listed, str(settings.address))

    @property
    def tools(self) -> Mapping[str, Tool]:
        return self._tools

    def for_episode(self) -> ToolSource:
        return self

    def end_episode(self) -> None:
        self._drop(self._connection)

    def handed_over(self) -> "Connection | None":
        """Return the connection, if there is one, and forget it."""
        with self._lock:
            connection, self._connection = self._connection, None
        return connection

    def listed(self) -> list[dict[str, Any]]:
        """Return the tools of the server as the protocol describes them."""
        from rllm_envs.tools.mcp_connection import ServerGoneError

        try:
            return self._connected().tools()
        except (ServerGoneError, ToolError, TimeoutError) as error:
            raise ToolServerError(f"the MCP server failed: {error}") from error

    def call_tool(self, name: str, arguments: dict[str, Any]) -> str:
        """Return the text of a call of the server's tool of that name.

        Raises:
            ToolError: The server refuses the call, or it takes too long.
            ToolServerError: There is no server, after it was started again too.
        """
        from rllm_envs.tools.mcp_connection import ServerGoneError

        note = ""
        for is_last in (False, True):
            connection = None
            try:
                connection = self._connected()
                result = connection.call(name, arguments, self._settings.timeout)
                return self._text(result, note)
            except ServerGoneError as error:
                self._drop(connection)
                if is_last:
                    raise ToolServerError(f"the MCP server failed: {error}") from error
                note = _LOST if connection is not None else ""
        raise AssertionError("the second attempt returns or raises")

    def _connected(self) -> "Connection":
        from rllm_envs.tools.mcp_connection import Connection

        loop = self._loop.running()
        with self._lock:
            if self._connection is None or self._connection.loop is not loop:
                self._connection = Connection(loop, self._settings.address)
            return self._connection

    def _drop(self, connection: "Connection | None") -> None:
        """Close a connection, unless a newer one has taken its place."""
        with self._lock:
            if connection is None or connection is not self._connection:
                return
            self._connection = None
        if connection.loop.pid == os.getpid():
            connection.close()

    def _text(self, result: dict[str, Any], note: str) -> str:
        """Return what the agent reads of a result; an error is raised."""
        parts = [_part(item) for item in result.get("content") or ()]
        if not parts and "structuredContent" in result:
            parts = [json.dumps(result["structuredContent"], ensure_ascii=False)]
        text = "\n".join(parts)
        if len(text) > self._settings.max_output:
            text = f"{text[: self._settings.max_output]}\n[the result is longer and was cut here]"
        text = "\n".join(filter(None, (text, note)))
        if result.get("isError"):
            raise ToolError(text or "the tool failed")
        return text or "[the tool returned nothing]"


class _MCPTool(Tool):
    """One tool of a server."""

    def __init__(self, source: ToolSource, session: _Session, description: dict[str, Any]) -> None:
        self.source = source
        self._session = session
        self._called = str(description.get("name"))
        self.name = re.sub(r"[^A-Za-z0-9_-]", "_", self._called)[:64] or "_"
        self.description = str(description.get("description") or self._called)
        given = description.get("inputSchema")
        schema = given if isinstance(given, dict) else {}
        self._signature = Signature({"type": "object", "properties": {}} | schema, {})
        is_open = not schema.get("properties") or any(name in schema for name in _OPENING)
        self._checked = ({"additionalProperties": True} if is_open else {}) | schema

    def check_arguments(self, arguments: Any) -> None:
        """Raise :class:`ToolError` unless the arguments fit the schema of the server."""
        check_call(self.name, arguments, self._checked)
        check_value(arguments, self._checked, "the arguments")

    def run(self, arguments: dict[str, Any]) -> str:
        """Return the text of the server's result."""
        return self._session.call_tool(self._called, arguments)


def _make_tools(
    source: ToolSource, session: _Session, listed: Sequence[dict[str, Any]], server: str
) -> dict[str, Tool]:
    made: dict[str, Tool] = {}
    for description in listed:
        tool = _MCPTool(source, session, description)
        if tool.name in made:
            raise EnvArgumentError(
                f"two tools of {server} are named {tool.name!r} in letters, digits, '_' and '-'"
            )
        made[tool.name] = tool
    return made


def _part(item: dict[str, Any]) -> str:
    """Return one part of a result as text; pictures and sounds are only named."""
    if item.get("type") == "text":
        return str(item.get("text", ""))
    resource = item.get("resource") or {}
    if "text" in resource:
        return str(resource["text"])
    kind = item.get("mimeType") or resource.get("mimeType") or "unknown kind"
    place = item.get("uri") or resource.get("uri") or ""
    return f"[{item.get('type', 'part')}: {kind}{f', {place}' if place else ''}]"


def _address(
    command: Any, url: Any, env: Mapping[str, str] | None, headers: Mapping[str, str] | None
) -> "ServerAddress":
    from rllm_envs.tools.mcp_connection import ServerAddress

    if (command is None) == (url is None):
        raise EnvArgumentError("give MCPTools either a command or a url")
    if command is not None:
        is_list = isinstance(command, list | tuple) and command
        if not is_list or not all(isinstance(word, str) for word in command):
            raise EnvArgumentError(
                f"command must be a list such as ['python', 'server.py'], got {excerpt(command)}"
            )
    elif not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise EnvArgumentError(f"url must begin with http:// or https://, got {excerpt(url)}")
    if (env and url) or (headers and command):
        raise EnvArgumentError("env belongs to a command, headers belong to a url")
    return ServerAddress(tuple(command or ()), dict(env or {}), url or "", dict(headers or {}))
