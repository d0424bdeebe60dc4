"""Who is let in: this machine, or who has the token."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from rllm_agents.errors import UserError
from rllm_agents.gateway import GatewaySettings, Token
from rllm_agents.gateway.access import is_loopback, names_this_machine

TEXT = "0123456789abcdef"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True)),
        *(("0.0.0.0", False), ("::", False), ("", False), ("10.0.0.1", False)),
        *(("localhost.example.org", False), ("127.0.0.1.example.org", False)),
    ],
)
def test_only_this_machines_own_addresses_are_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
    if not expected:
        with pytest.raises(UserError, match="needs a token"):
            GatewaySettings(host=host)
        assert GatewaySettings(host=host, token=Token(TEXT)).host == host


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        *(("localhost", True), ("localhost:80", True), ("127.0.0.1:1", True), ("[::1]:8", True)),
        *(("evil.example", False), ("", False), (None, False), ("[", False), ("user@evil", False)),
    ],
)
def test_a_host_header_must_name_this_machine(header: str | None, expected: bool) -> None:
    assert names_this_machine(header) is expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        *((f"Bearer {TEXT}", True), (f"bearer {TEXT}", True), (f"Bearer {TEXT[:-1]}", False)),
        *((f"Bearer {TEXT}0", False), (TEXT, False), ("", False), (None, False)),
        *((f"Basic {TEXT}", False), ("Bearer \udcff", False)),
    ],
)
def test_a_token_is_compared_whole(header: str | None, expected: bool) -> None:
    assert Token(TEXT).is_in(header) is expected


def test_a_token_shows_nowhere_by_itself() -> None:
    token = Token(TEXT)
    shown = f"{token} {token!r} {GatewaySettings(token=token)!r}"
    assert TEXT not in shown
    assert token.reveal() == TEXT


@pytest.mark.parametrize("text", ["short", "with a space in between", "ümlauts-and-more-of-it", ""])
def test_weak_tokens_are_refused_and_not_shown(text: str) -> None:
    with pytest.raises(UserError, match="at least 16") as caught:
        Token(text)
    assert not text or text not in str(caught.value)


def test_a_token_file_is_for_its_owner_alone_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    path.chmod(0o644)
    one, other = Token.random(), Token.random()
    assert one.reveal() != other.reveal()
    one.write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == one.reveal() + "\n"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(UserError, match="cannot be written"):
        one.write(tmp_path / "nowhere" / "token")


@pytest.mark.parametrize(
    ("name", "value"),
    [("port", -1), ("port", 70_000), ("max_sessions", 0), ("idle_seconds", 0), ("model", "")],
)
def test_settings_out_of_range_are_refused(name: str, value: object) -> None:
    with pytest.raises(UserError, match=name):
        GatewaySettings(**{name: value})  # type: ignore[arg-type]
