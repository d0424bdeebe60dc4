"""What was said in a session, and which ids the next completion is sampled after."""

from __future__ import annotations

from collections.abc import Sequence

from rllm_agents.continuation import RenderedPrompt, SampledTurn
from rllm_agents.gateway.messages import SentMessage, conversation_keys, template_messages
from rllm_agents.gateway.protocol import ChatCall
from rllm_agents.gateway.refusals import refused
from rllm_agents.gateway.turns import Prompt, Turn
from rllm_agents.renderer import Renderer
from rllm_agents.tool_parsers import ToolParser
from rllm_agents.types import Completion, Message, Step


class History:
    """The turns of one session, in the order in which they were answered.

    Args:
        name: Begins the names of its sequences.
        renderer: Makes prompts; None where the engine works on text.
        parser: How the model is told of tools and writes calls.
    """

    def __init__(self, name: str, renderer: Renderer | None, parser: ToolParser) -> None:
        self.turns: list[Turn] = []
        """Read it; `add` alone appends."""
        self._name = name
        self._renderer = renderer
        self._parser = parser
        self._replies: dict[bytes, Turn] = {}
        self._continued: set[int] = set()
        self._num_sequences = 0

    def chat_prompt(self, call: ChatCall) -> Prompt:
        """Make the prompt of a conversation.

        What the assistant is quoted with, as it was answered in this session after the same
        messages, is put back as the model wrote it. The ids then begin with those of the last such
        turn, wherever the template leaves its text as it was.

        Raises:
            RendererError: The template refuses the messages, or they are too long.
        """
        answered: dict[int, Turn] = {}
        parent = None
        for index, key in enumerate(conversation_keys(call.messages)):
            turn = self._replies.get(key)
            if turn is not None:
                answered[index] = parent = turn
        said = {index: turn.completion.text for index, turn in answered.items()}
        messages = template_messages(call.messages, said, call.tools, self._parser)
        if self._renderer is None:
            return Prompt(messages, None, None, parent)
        # A message that presents tools may stand before those of the client.
        shift = len(messages) - len(call.messages)
        sampled = {index + shift: turn.sampled for index, turn in answered.items() if turn.sampled}
        rendered = self._renderer.continuation.of_messages(messages, sampled, *_last(parent))
        return _prompt(messages, rendered, parent)

    def text_prompt(self, given: str | Sequence[int]) -> Prompt:
        """Make the prompt of a text or of ids; it continues the turn that it begins with.

        Raises:
            RequestError: There is no tokenizer.
            RendererError: The text cannot be encoded.
        """
        renderer = self._renderer
        if renderer is None:
            raise refused(
                "/completions needs a tokenizer here; use /chat/completions",
                code="unsupported_endpoint",
            )
        if isinstance(given, str):
            parent = self._begun_by(given)
            rendered = renderer.continuation.of_text(given, *_last(parent))
            return _prompt((), rendered, parent)
        ids = tuple(given)
        found = [t for t in self.turns if ids[: len(t.token_ids)] == t.token_ids]
        parent = max(found, key=lambda turn: len(turn.token_ids), default=None)
        return Prompt((), None, ids, parent)

    def claim(self, prompt: Prompt) -> str:
        """Return the name of the sequence that a completion after this prompt belongs to.

        The first that continues a turn stays in its sequence, each other begins one of its own.
        """
        parent = prompt.parent
        if parent is not None and parent.index not in self._continued:
            self._continued.add(parent.index)
            return parent.sequence
        self._num_sequences += 1
        return f"{self._name}/{self._num_sequences - 1}"

    def release(self, prompt: Prompt, sequence: str) -> None:
        """Take a claim back: nothing was sampled."""
        parent = prompt.parent
        if parent is not None and parent.sequence == sequence:
            self._continued.discard(parent.index)

    def add(self, prompt: Prompt, completion: Completion, sequence: str) -> Turn:
        """Record what was sampled after a prompt."""
        sampled = None
        if self._renderer is not None and prompt.rendered is not None and completion.token_ids:
            sampled = self._renderer.continuation.sampled(prompt.rendered, completion)
        said = {"role": "assistant", "content": completion.text}
        given = None if prompt.rendered is None else prompt.rendered.text
        last = prompt.messages[-1]["content"] if prompt.messages else given
        step = Step(
            prompt_ids=list(prompt.token_ids or ()),
            response_ids=list(completion.token_ids),
            logprobs=list(completion.logprobs),
            chat_completions=[*prompt.messages, said],
            observation=last,
            model_response=completion.text,
        )
        turn = Turn(len(self.turns), sequence, prompt, completion, sampled, step)
        self.turns.append(turn)
        return turn

    def remember(self, call: ChatCall, reply: SentMessage, turn: Turn) -> None:
        """Know the reply of a turn again, when the client quotes it."""
        self._replies[conversation_keys((*call.messages, reply))[-1]] = turn

    def _begun_by(self, given: str) -> Turn | None:
        """The longest turn that a text begins with."""
        longest, parent = -1, None
        for turn in self.turns:
            end = -1 if turn.sampled is None else turn.sampled.end_in(given)
            if end > longest:
                longest, parent = end, turn
        return parent


def _last(parent: Turn | None) -> tuple[SampledTurn | None, tuple[int, ...]]:
    """What a Continuation is told of the turn to go on with."""
    return (None, ()) if parent is None else (parent.sampled, parent.token_ids)


def _prompt(messages: tuple[Message, ...], rendered: RenderedPrompt, parent: Turn | None) -> Prompt:
    # Where the engine gives no ids, the conversation alone says what a prompt goes on with.
    is_text_only = parent is not None and not parent.completion.token_ids
    kept = parent if rendered.continues or is_text_only else None
    return Prompt(messages, rendered, rendered.token_ids, kept)
