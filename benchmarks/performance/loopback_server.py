"""A server on loopback that answers every completion with the same token ids after a while.

It prints its port and serves until it is ended:

    python loopback_server.py TEXT IDS_AS_JSON LATENCY_SECONDS
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


class Completions(asyncio.Protocol):
    """HTTP as far as one client needs it: the next request comes after the answer.

    Args:
        replies: To a completion, to the probe of one token, to a GET, and to a chat completion.
        latency: Seconds before a completion is answered.
    """

    def __init__(self, replies: tuple[bytes, bytes, bytes, bytes], latency: float) -> None:
        self._replies = replies
        self._latency = latency
        self._read = b""

    def connection_made(self, transport: Any) -> None:
        """Keep what answers go to."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once a request is complete."""
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        completion, probed, models, chat = self._replies
        if not found:
            return
        if head.startswith(b"GET"):
            self._read = b""
            self._transport.write(models)
            return
        lines = [line.partition(b":") for line in head.split(b"\r\n")[1:]]
        (length,) = [value for name, _, value in lines if name.lower() == b"content-length"]
        if len(body) < int(length):
            return
        self._read = b""
        if b"/chat/completions" in head[: head.find(b"\r\n")]:
            reply = chat
        else:
            reply = probed if b'"max_tokens":1,' in body else completion
        asyncio.get_running_loop().call_later(self._latency, self._transport.write, reply)


def http_reply(content: dict[str, Any]) -> bytes:
    """Return a whole answer with a JSON body."""
    body = json.dumps(content).encode()
    lines = ("HTTP/1.1 200 OK", "Content-Type: application/json", f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def completion_reply(text: str, ids: list[int], logprob: float, finish_reason: str) -> bytes:
    """Return the answer to a completion request that asks for token ids."""
    choice = {
        "index": 0,
        "text": text,
        "finish_reason": finish_reason,
        "token_ids": ids,
        "logprobs": {"token_logprobs": [logprob] * len(ids)},
    }
    return http_reply({"choices": [choice]})


def chat_reply(text: str, ids: list[int], logprob: float, prompt_ids: list[int]) -> bytes:
    """Return the answer to a chat completion, with ids and logprobs as vLLM sends them."""
    content = [
        {"token": f"token_id:{i}", "logprob": logprob, "bytes": None, "top_logprobs": []}
        for i in ids
    ]
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
        "token_ids": ids,
        "logprobs": {"content": content},
    }
    used = {"prompt_tokens": len(prompt_ids), "completion_tokens": len(ids)}
    return http_reply(
        {
            "id": "chat",
            "object": "chat.completion",
            "created": 0,
            "model": "served",
            "choices": [choice],
            "prompt_token_ids": prompt_ids,
            "usage": {**used, "total_tokens": sum(used.values())},
        }
    )


async def serve(text: str, ids: list[int], latency: float) -> None:
    """Serve until the task is cancelled; the port is printed first."""
    replies = (
        completion_reply(text, ids, -0.25, "stop"),
        completion_reply("", ids[:1], 0.0, "length"),
        http_reply({"data": [{"id": "served", "max_model_len": 65_536}]}),
        chat_reply(text, ids, -0.25, prompt_ids=ids),
    )
    server = await asyncio.get_running_loop().create_server(
        lambda: Completions(replies, latency), "127.0.0.1", 0, backlog=2048
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3])))
