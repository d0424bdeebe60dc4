"""Which parameters a request may have: read, neutral, ignored, and none besides.

A parameter that changes what is sampled is either obeyed or refused by its name, never dropped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rllm_agents.gateway.refusals import refused
from rllm_agents.types import SamplingParams

SHARED = frozenset(
    {
        *("model", "temperature", "top_p", "top_k", "seed", "max_tokens", "stop"),
        *("stop_token_ids", "stream", "stream_options", "user", "return_token_ids"),
    }
)
"""Parameters of both kinds of requests that are obeyed."""
CHAT = SHARED | {"messages", "tools", "tool_choice", "max_completion_tokens", "logprobs"}
"""Parameters of /chat/completions that are obeyed."""
TEXT = SHARED | {"prompt", "logprobs"}
"""Parameters of /completions that are obeyed."""
NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "min_tokens": (0,),
    "ignore_eos": (False,),
    "logit_bias": ({},),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "parallel_tool_calls": (True,),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "skip_special_tokens": (True,),
}
"""Parameters that are accepted with the values at which they change nothing."""
IGNORED = frozenset(
    {
        *("metadata", "store", "service_tier", "safety_identifier", "prediction"),
        *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
    }
)
"""Parameters that change nothing of what is sampled, whatever they say."""

MAX_STOPS = 16
_MAX_STOP_CHARACTERS = 256
_MAX_TOP_K = 2**31


@dataclass(frozen=True, slots=True)
class AskedSampling:
    """What a request says of sampling; None where it says nothing. Made by `read_sampling`."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()

    def named(self) -> dict[str, float | int]:
        """Return those that decide how tokens are drawn, by name, where the request gives them."""
        names = ("temperature", "top_p", "top_k", "seed")
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


def check_known(body: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return the parameters that are to be obeyed; those that are null count as absent.

    Raises:
        RequestError: A parameter is unknown, or would change what is sampled in a way that is not
            offered.
    """
    kept = {}
    for name, value in body.items():
        if value is None or name in IGNORED:
            continue
        if name in known:
            kept[name] = value
        elif name not in NEUTRAL:
            raise refused(
                f"unknown parameter {name!r}: it might change what is sampled, so it is not "
                "ignored; leave it out",
                name[:64],
                code="unknown_parameter",
            )
        elif not any(_is_same(value, allowed) for allowed in NEUTRAL[name]):
            raise refused(
                f"{name} is not offered here; leave it out or send {NEUTRAL[name][0]!r}",
                name,
                code="unsupported_parameter",
            )
    return kept


def read_sampling(body: Mapping[str, Any], stop_token_ids: tuple[int, ...] | None) -> AskedSampling:
    """Read what a request says of sampling.

    Args:
        body: Parameters of the request.
        stop_token_ids: Those that end every completion; None where there is no tokenizer.

    Raises:
        RequestError: A value has the wrong type or is out of range.
    """
    _check_stop_ids(body.get("stop_token_ids"), stop_token_ids)
    top_k = whole_number(body, "top_k", -1, _MAX_TOP_K)
    asked = AskedSampling(
        temperature=_number(body, "temperature"),
        top_p=_number(body, "top_p"),
        top_k=None if top_k is None else max(top_k, 0),
        seed=whole_number(body, "seed", -(2**63), 2**63 - 1),
        max_tokens=_max_tokens(body),
        stop=_read_stop(body.get("stop")),
    )
    try:
        SamplingParams(**asked.named())  # type: ignore[arg-type]
    except ValueError as error:
        raise refused(str(error), str(error).partition(" ")[0]) from None
    return asked


def whole_number(body: Mapping[str, Any], name: str, low: int, high: int) -> int | None:
    """Return a whole number of the request; None where it has none.

    Raises:
        RequestError: It is something else, or out of range.
    """
    value = body.get(name)
    if value is None:
        return None
    if type(value) is not int or not low <= value <= high:
        raise refused(f"{name} must be a whole number in [{low}, {high}]", name)
    return value


def flag(body: Mapping[str, Any], name: str) -> bool:
    """Return a boolean of the request; absent is false.

    Raises:
        RequestError: It is something else.
    """
    value = body.get(name, False)
    if type(value) is not bool:
        raise refused(f"{name} must be true or false", name)
    return value


def _number(body: Mapping[str, Any], name: str) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    if type(value) not in (int, float) or not abs(value) < math.inf:
        raise refused(f"{name} must be a number", name)
    return float(value)


def _max_tokens(body: Mapping[str, Any]) -> int | None:
    found = [whole_number(body, name, 1, 2**31) for name in ("max_tokens", "max_completion_tokens")]
    given = [value for value in found if value is not None]
    return min(given) if given else None


def _read_stop(value: Any) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or len(stops) > MAX_STOPS:
        raise refused(f"stop must be a text or a list of at most {MAX_STOPS}", "stop")
    for stop in stops:
        if not isinstance(stop, str) or not 0 < len(stop) <= _MAX_STOP_CHARACTERS:
            raise refused(f"stop has texts of 1 to {_MAX_STOP_CHARACTERS} characters", "stop")
    return tuple(stops)


def _check_stop_ids(given: Any, own: tuple[int, ...] | None) -> None:
    if given is None:
        return
    if not isinstance(given, list) or not all(type(i) is int for i in given):
        raise refused("stop_token_ids must be a list of token ids", "stop_token_ids")
    if own is None or not set(given) <= set(own):
        raise refused(
            f"stop_token_ids may name those that end every completion here: {list(own or ())}",
            "stop_token_ids",
            code="unsupported_parameter",
        )


def _is_same(value: Any, allowed: Any) -> bool:
    is_flag = isinstance(value, bool) or isinstance(allowed, bool)
    return value == allowed and (not is_flag or type(value) is type(allowed))
