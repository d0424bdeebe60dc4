"""What a tool parser does: text of the model to tool calls, and tools to a prompt."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that the model wrote. Made by a ToolParser, read by ToolAgent."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class MalformedCall:
    """A call that could not be read. Made by a ToolParser, read by ToolAgent."""

    text: str
    """What the model wrote in place of a call."""
    error: str
    """What is wrong with it, for the model to read."""


@dataclass(frozen=True, slots=True)
class ParsedResponse:
    """A response taken apart. Made by a ToolParser, read by ToolAgent."""

    content: str
    """The text outside of calls."""
    calls: tuple[ToolCall | MalformedCall, ...]
    """In the order written."""


class ToolParser(ABC):
    """How one family of models is told of tools and writes calls."""

    @abstractmethod
    def parse(self, text: str) -> ParsedResponse:
        """Take a response apart. Never raises: what cannot be read is a MalformedCall."""

    @abstractmethod
    def tool_prompt(self, schemas: Sequence[Mapping[str, Any]]) -> str:
        """Text for the system message that presents tools.

        Args:
            schemas: One ``{"type": "function", "function": {...}}`` for each tool.
        """

    @abstractmethod
    def call_text(self, call: ToolCall) -> str:
        """Write a call as a model of this family would; `parse` reads it back."""
