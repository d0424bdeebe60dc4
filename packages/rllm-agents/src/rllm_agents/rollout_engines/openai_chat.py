"""Chat completions: messages to an OpenAI-compatible server, text back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllm_agents.rollout_engines.openai_client import OpenAIClient
from rllm_agents.rollout_engines.openai_replies import RefusedError, read_chat_completion
from rllm_agents.types import Completion, GenerationRequest

# Some servers keep seeds in 32 bits, and fail on larger ones or cut them.
_NUM_SEEDS = 2**31


class ChatCompletions:
    """Asks one server for the next message of a conversation, in words that its models take.

    Some models of api.openai.com want another name for max_tokens, and no parameter that changes
    nothing. What is learned of that from their refusals holds for all later requests.
    """

    def __init__(self, client: OpenAIClient) -> None:
        self._client = client
        self._length_field = "max_tokens"
        # Refused even where they change nothing.
        self._unwanted: set[str] = set()

    async def complete(self, model: str, request: GenerationRequest) -> Completion:
        """Ask for one completion, which has no token ids.

        Raises:
            EngineError: The server cannot be reached, refuses, or answers nonsense.
        """
        sampling = request.sampling
        body: dict[str, Any] = {
            "model": model,
            "messages": request.messages,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        }
        if sampling.seed is not None:
            body["seed"] = sampling.seed % _NUM_SEEDS
        if sampling.top_k:
            body["top_k"] = sampling.top_k
        while True:
            wording = {k: v for k, v in body.items() if k not in self._unwanted or v != 1.0}
            if sampling.max_tokens is not None:
                wording[self._length_field] = sampling.max_tokens
            try:
                text, finish_reason = await self._client.ask(
                    "/chat/completions", read_chat_completion, wording
                )
            except RefusedError as error:
                if not self._can_reword(error, wording):
                    raise
            else:
                return Completion(text=text, finish_reason=finish_reason)

    def _can_reword(self, error: RefusedError, wording: Mapping[str, Any]) -> bool:
        """Whether other words may be accepted, which are then used from now on."""
        field = error.parameter
        if error.status != 400 or field not in wording:
            return False
        if field == "max_tokens" and "max_completion_tokens" in error.message:
            self._length_field = "max_completion_tokens"
            return True
        if field in ("temperature", "top_p") and wording[field] == 1.0:
            self._unwanted.add(field)
            return True
        return False
