"""Who may reach the gateway: this machine by default, others with a token."""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import os
import secrets
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from rllm_agents.errors import UserError

_MIN_TOKEN_CHARACTERS = 16


class Token:
    """A secret that requests must carry. Its text shows in no repr and no log."""

    def __init__(self, text: str) -> None:
        """Take a token of at least 16 printable ASCII characters; else raises UserError."""
        is_plain = text.isascii() and text.isprintable() and " " not in text
        if len(text) < _MIN_TOKEN_CHARACTERS or not is_plain:
            raise UserError(
                f"a token has at least {_MIN_TOKEN_CHARACTERS} printable ASCII characters and no "
                f"space; the one given has {len(text)} characters"
            )
        self._text = text

    @classmethod
    def random(cls) -> Token:
        """Draw a token of 256 bits."""
        return cls(secrets.token_urlsafe(32))

    def reveal(self) -> str:
        """Return the text, for the client that is to be let in."""
        return self._text

    def is_in(self, authorization: str | None) -> bool:
        """Whether an Authorization header carries it; takes the same time wherever they differ."""
        scheme, _, given = (authorization or "").partition(" ")
        is_same = hmac.compare_digest(given.strip().encode("utf-8", "replace"), self._text.encode())
        return is_same and scheme.lower() == "bearer"

    def write(self, path: str | Path) -> None:
        """Put the token into a file that only its owner may read, in place of what is there.

        Raises:
            UserError: The file cannot be written.
        """
        target = Path(path).expanduser()
        try:
            # The file is made with mode 0600, and has its name only when the token is in it.
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".token-")
            try:
                with os.fdopen(handle, "w", encoding="ascii") as file:
                    file.write(self._text + "\n")
                os.replace(temporary, target)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise UserError(f"the token file {str(path)!r} cannot be written: {error}") from error

    def __repr__(self) -> str:
        return "Token(***)"


def is_loopback(host: str) -> bool:
    """Whether an address or name is only reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, token: Token | None) -> None:
    """Refuse to listen where others reach the gateway and nothing keeps them out.

    Raises:
        UserError: The address is not of this machine alone and there is no token.
    """
    if token is None and not is_loopback(host):
        raise UserError(
            f"host={host!r} can be reached from other machines: that needs a token; or listen on "
            "127.0.0.1"
        )


def names_this_machine(host_header: str | None) -> bool:
    """Whether a Host header names this machine; a web page under another name may not ask."""
    try:
        name = urlsplit(f"//{host_header or ''}").hostname
    except ValueError:
        return False
    return name is not None and is_loopback(name)
