"""What OpenAI-compatible servers answer, checked: nothing in a reply is believed unseen."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rllm_agents.errors import BadReplyError, EngineError, TransientError
from rllm_agents.types import FinishReason, TerminationReason

# Rounding may put the logarithm of a probability of one above zero by this much.
_LOGPROB_TOLERANCE = 1e-3
_MIN_LOGPROB = -1e6
# No vocabulary comes near it, and tokenizers fail on larger numbers in ways of their own.
_MAX_TOKEN_ID = 2**31
_UNFINISHED = ("abort", "error")


class RefusedError(EngineError):
    """The server refused a request, and would refuse it again.

    Attributes:
        status: HTTP status.
        message: What the server said, cleaned and cut.
        code: The server's own name of the error; "" where it gives none.
        parameter: Which part of the request it is about; "" where it does not say.
    """

    reason = TerminationReason.LLM_HTTP_ERROR

    def __init__(
        self, message: str, *, status: int, said: str, code: str = "", parameter: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = said
        self.code = code
        self.parameter = parameter

    def with_figures(self, figures: str) -> RefusedError:
        """Return the error with figures of the request in its text."""
        text = f"{self} (the request: {figures})" if figures else str(self)
        return RefusedError(
            text, status=self.status, said=self.message, code=self.code, parameter=self.parameter
        )


class NoTokenIdsError(BadReplyError):
    """A completion without the ids of its tokens: the server knows only text."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """One entry of GET /models. Made by `read_models`, read by OpenAIEngine."""

    name: str
    max_length: int | None
    """Most tokens of prompt and completion together; None where the server does not say."""


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """One completion in ids. Made by `read_token_completion`, read by OpenAIEngine."""

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """At most 0.0, one per id."""
    finish_reason: FinishReason
    text: str
    """As the server decoded it."""


def read_models(reply: Any) -> tuple[ServedModel, ...]:
    """Read the answer to GET /models.

    Raises:
        BadReplyError: It is not a list of models.
    """
    entries = reply.get("data") if isinstance(reply, Mapping) else None
    if not isinstance(entries, list):
        raise BadReplyError(
            f"GET /models answered {_excerpt(reply)} instead of a list under 'data'"
        )
    models = []
    for entry in entries:
        name = entry.get("id") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not name:
            raise BadReplyError(f"GET /models lists {_excerpt(entry)}, which has no 'id'")
        length = entry.get("max_model_len")
        if length is not None and (type(length) is not int or length < 1):
            raise BadReplyError(
                f"GET /models says max_model_len={_excerpt(length)} of {_excerpt(name)}; "
                "a whole number above 0 was expected"
            )
        models.append(ServedModel(name, length))
    return tuple(models)


def read_token_completion(
    reply: Any, *, prompt_ids: Sequence[int], max_tokens: int
) -> SampledTokens:
    """Read the answer to POST /completions with `return_token_ids`.

    Args:
        reply: The decoded JSON.
        prompt_ids: What was asked; where the server repeats it, it must be the same.
        max_tokens: Most ids that the completion may have, at least 1.

    Raises:
        NoTokenIdsError: There are no ids.
        TransientError: The server gave the completion up.
        BadReplyError: Ids and logprobs are not what they must be.
    """
    choice = _only_choice(reply)
    finish_reason = _finish_reason(choice)
    if choice.get("token_ids") is None:
        raise NoTokenIdsError("the completion has no 'token_ids'")
    ids = _read_ids(choice["token_ids"])
    if not 1 <= len(ids) <= max_tokens:
        raise BadReplyError(
            f"the completion has {len(ids)} token ids; 1 to {max_tokens} were asked"
        )
    echoed = choice.get("prompt_token_ids")
    if echoed is not None and (not isinstance(echoed, list) or echoed != list(prompt_ids)):
        raise BadReplyError(
            "the server completed another prompt than it was sent: its prompt_token_ids "
            f"({_excerpt(echoed)}) differ from the {len(prompt_ids)} ids of the request"
        )
    record = choice.get("logprobs")
    logprobs = record.get("token_logprobs") if isinstance(record, Mapping) else None
    return SampledTokens(ids, _read_logprobs(logprobs, len(ids)), finish_reason, _text(choice))


def read_chat_completion(reply: Any) -> tuple[str, FinishReason]:
    """Read the answer to POST /chat/completions: the text, and why it ended.

    Raises:
        TransientError: The server gave the completion up.
        BadReplyError: There is no text, or it ended for a reason other than stop and length.
    """
    choice = _only_choice(reply)
    finish_reason = _finish_reason(choice)
    message = choice.get("message")
    if not isinstance(message, Mapping):
        raise BadReplyError(f"the completion has no message: {_excerpt(choice)}")
    # A model that was cut off while it thought has said nothing yet.
    content = message.get("content")
    return ("" if content is None else _plain(content)), finish_reason


def _only_choice(reply: Any) -> Mapping[str, Any]:
    choices = reply.get("choices") if isinstance(reply, Mapping) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], Mapping):
        raise BadReplyError(f"the server answered {_excerpt(reply)}; one choice was expected")
    return choices[0]


def _finish_reason(choice: Mapping[str, Any]) -> FinishReason:
    reason = choice.get("finish_reason")
    if reason == "stop" or reason == "length":
        return reason
    problem = f"finish_reason of the completion is {_excerpt(reason)}; stop or length was expected"
    if reason in _UNFINISHED:
        raise TransientError(problem, reason=TerminationReason.LLM_BAD_RESPONSE)
    raise BadReplyError(problem)


def _read_ids(given: Any) -> tuple[int, ...]:
    if not isinstance(given, list):
        raise BadReplyError(
            f"token_ids of the completion are {_excerpt(given)}; a list was expected"
        )
    # All at once; one by one only to name what is wrong.
    if set(map(type, given)) == {int} and min(given) >= 0 and max(given) < _MAX_TOKEN_ID:
        return tuple(given)
    for index, token_id in enumerate(given):
        if type(token_id) is not int or not 0 <= token_id < _MAX_TOKEN_ID:
            raise BadReplyError(
                f"token id {index} of the completion is {_excerpt(token_id)}; "
                "a whole number from 0 was expected"
            )
    return tuple(given)


def _read_logprobs(given: Any, count: int) -> tuple[float, ...]:
    if not isinstance(given, list):
        raise BadReplyError(
            f"logprobs of the completion are {_excerpt(given)}; a list was expected"
        )
    if len(given) != count:
        raise BadReplyError(f"the completion has {len(given)} logprobs for {count} token ids")
    # NaN makes the sum NaN, for which no comparison holds.
    are_finite = set(map(type, given)) == {float} and sum(given) > -math.inf
    if are_finite and min(given) >= _MIN_LOGPROB and max(given) <= 0.0:
        return tuple(given)
    for index, logprob in enumerate(given):
        is_number = type(logprob) in (int, float)
        if not is_number or not _MIN_LOGPROB <= logprob <= _LOGPROB_TOLERANCE:
            raise BadReplyError(
                f"logprob {index} of the completion is {_excerpt(logprob)}; "
                "a finite number of at most 0 was expected"
            )
    return tuple(min(0.0, float(logprob)) for logprob in given)


def _text(choice: Mapping[str, Any]) -> str:
    return _plain(choice.get("text", ""))


def _plain(text: Any) -> str:
    """Text that files and tokenizers can take: JSON may carry halves of surrogate pairs."""
    if not isinstance(text, str):
        raise BadReplyError(f"the completion's text is {_excerpt(text)}; a string was expected")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _excerpt(value: Any) -> str:
    """Show the beginning of a value, whatever its size and depth."""
    return reprlib.repr(value)
