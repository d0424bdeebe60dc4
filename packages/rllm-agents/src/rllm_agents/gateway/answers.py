"""From what was sampled to what a client is told, in the forms of the OpenAI protocol."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.gateway.messages import SentCall, SentMessage
from rllm_agents.gateway.protocol import ReplyForm
from rllm_agents.renderer import Renderer
from rllm_agents.tool_parsers import ToolCall, ToolParser
from rllm_agents.types import Completion


@dataclass(frozen=True, slots=True)
class Answer:
    """One completion on its way to a client. Made by a session, written out by this module."""

    form: ReplyForm
    prompt_ids: tuple[int, ...]
    """Empty where there is no tokenizer."""
    completion: Completion
    reply: SentMessage
    """What the assistant said: its text, or its calls and what stood around them."""
    renderer: Renderer | None

    @property
    def finish_reason(self) -> str:
        """In the words of the protocol."""
        return "tool_calls" if self.reply.calls else self.completion.finish_reason


def read_reply(completion: Completion, parser: ToolParser | None) -> SentMessage:
    """Take a response apart.

    It is calls only where each of them can be read: a response with a malformed call, or one that
    was cut off, is text as a whole, so that nothing is half done.

    Args:
        completion: As sampled.
        parser: Reads calls; None where the model was given no tools, or must not call them.
    """
    if parser is not None and completion.finish_reason == "stop":
        parsed = parser.parse(completion.text)
        calls = [call for call in parsed.calls if isinstance(call, ToolCall)]
        if calls and len(calls) == len(parsed.calls):
            sent = tuple(
                SentCall(
                    f"call_{secrets.token_hex(12)}", call.name, json.dumps(dict(call.arguments))
                )
                for call in calls
            )
            return SentMessage("assistant", parsed.content, sent)
    return SentMessage("assistant", completion.text)


def chat_answer(answer: Answer) -> dict[str, Any]:
    """Return the body of an answer to /chat/completions."""
    choice = {
        "index": 0,
        "message": _chat_message(answer.reply),
        "logprobs": _chat_logprobs(answer),
        "finish_reason": answer.finish_reason,
        **_sampled_ids(answer),
    }
    body = {**_head(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}
    if answer.form.has_token_ids:
        body["prompt_token_ids"] = list(answer.prompt_ids)
    return body


def text_answer(answer: Answer) -> dict[str, Any]:
    """Return the body of an answer to /completions."""
    choice = _text_choice(answer)
    return {**_head(answer, "text_completion"), "choices": [choice], "usage": _usage(answer)}


def chat_chunks(answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield the parts of a streamed answer to /chat/completions."""
    head = _head(answer, "chat.completion.chunk")
    calls = [
        {"index": index, "id": call.id, "type": "function", "function": _function(call)}
        for index, call in enumerate(answer.reply.calls)
    ]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    if answer.reply.content:
        deltas.append({"content": answer.reply.content})
    deltas += [{"tool_calls": [call]} for call in calls]
    # Logprobs come with the first part that has anything sampled in it.
    records = {min(1, len(deltas) - 1): _chat_logprobs(answer)}
    for number, delta in enumerate(deltas):
        choice = {"index": 0, "delta": delta, "logprobs": records.get(number)}
        yield {**head, "choices": [{**choice, "finish_reason": None}]}
    last = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": answer.finish_reason}
    yield {**head, "choices": [{**last, **_sampled_ids(answer)}]}
    yield from _usage_chunk(answer, head)


def text_chunks(answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield the parts of a streamed answer to /completions."""
    head = _head(answer, "text_completion")
    yield {**head, "choices": [_text_choice(answer)]}
    yield from _usage_chunk(answer, head)


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    prefix = "cmpl" if kind == "text_completion" else "chatcmpl"
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": answer.form.model,
    }


def _chat_message(reply: SentMessage) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": None}
    if reply.calls:
        message["content"] = reply.content or None
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": _function(call)} for call in reply.calls
        ]
    return message


def _function(call: SentCall) -> dict[str, str]:
    return {"name": call.name, "arguments": call.arguments}


def _text_choice(answer: Answer) -> dict[str, Any]:
    choice = {
        "index": 0,
        "text": answer.completion.text,
        "logprobs": _text_logprobs(answer),
        "finish_reason": answer.completion.finish_reason,
        **_sampled_ids(answer),
    }
    if answer.form.has_token_ids:
        choice["prompt_token_ids"] = list(answer.prompt_ids)
    return choice


def _sampled_ids(answer: Answer) -> dict[str, Any]:
    # An engine that knows only text has none, and an empty list would pass for ids.
    if not answer.form.has_token_ids or not answer.completion.token_ids:
        return {}
    return {"token_ids": list(answer.completion.token_ids)}


def _token_texts(answer: Answer) -> Sequence[str]:
    """Each sampled id on its own; parts of a character become replacement characters."""
    if answer.renderer is None:
        return []
    tokenizer = answer.renderer.tokenizer
    return [str(tokenizer.decode([i])) for i in answer.completion.token_ids]


def _chat_logprobs(answer: Answer) -> dict[str, Any] | None:
    if not answer.form.has_logprobs:
        return None
    pairs = zip(_token_texts(answer), answer.completion.logprobs, strict=False)
    content = [
        {
            "token": text,
            "logprob": logprob,
            "bytes": list(text.encode("utf-8", "replace")),
            "top_logprobs": [],
        }
        for text, logprob in pairs
    ]
    return {"content": content, "refusal": None}


def _text_logprobs(answer: Answer) -> dict[str, Any] | None:
    if not answer.form.has_logprobs:
        return None
    return {
        "tokens": list(_token_texts(answer)),
        "token_logprobs": list(answer.completion.logprobs),
        "top_logprobs": None,
        "text_offset": [],
    }


def _usage(answer: Answer) -> dict[str, int]:
    prompt, completion = len(answer.prompt_ids), len(answer.completion.token_ids)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _usage_chunk(answer: Answer, head: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if answer.form.has_usage:
        yield {**head, "choices": [], "usage": _usage(answer)}
