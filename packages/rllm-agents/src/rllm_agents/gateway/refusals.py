"""Why a request is not answered, in the JSON form that OpenAI's clients read."""

from __future__ import annotations

import re
from typing import Any

_MAX_MESSAGE_CHARACTERS = 500
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\ud800-\udfff]+"
)


class RequestError(Exception):
    """A request that is refused or that failed. Raised in the gateway, answered by its server.

    Attributes:
        status: Of HTTP.
        code: For programs to tell it by.
        parameter: The field of the request that it is about; None where there is none.
    """

    def __init__(
        self, status: int, message: str, *, code: str, parameter: str | None = None
    ) -> None:
        super().__init__(printable(message))
        self.status = status
        self.code = code
        self.parameter = parameter

    def body(self) -> dict[str, Any]:
        """What the client reads."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        record = {"message": str(self), "type": kind, "param": self.parameter, "code": self.code}
        return {"error": record}


def refused(
    message: str, parameter: str | None = None, *, code: str = "invalid_value"
) -> RequestError:
    """Return the error of a request that says something wrong (HTTP 400)."""
    return RequestError(400, message, code=code, parameter=parameter)


def printable(text: str) -> str:
    """Make any text one line of bounded length without control characters, fit for a log."""
    line = " ".join(_UNPRINTABLE.sub(" ", text[: 4 * _MAX_MESSAGE_CHARACTERS]).split())
    if len(line) <= _MAX_MESSAGE_CHARACTERS:
        return line
    return line[:_MAX_MESSAGE_CHARACTERS] + "..."
