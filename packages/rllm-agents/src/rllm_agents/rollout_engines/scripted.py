"""A rollout engine that says what it was told to: for tests, demonstrations and oracles."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rllm_agents.errors import EngineError, UserError
from rllm_agents.rollout_engines.request_checks import refuse_adapter
from rllm_agents.types import Completion, GenerationRequest, Message

if TYPE_CHECKING:
    from torch import Tensor

Script: TypeAlias = Sequence[str] | Callable[[Sequence[Message]], str]
"""Responses in order, or a function of the conversation."""

# Turn counters of sessions that ended long ago are dropped beyond this many.
_MAX_SESSIONS = 65_536


class ScriptedEngine:
    """Answers with text written beforehand. Needs no tokenizer, no model and no accelerator.

    Args:
        responses: A list, of which turn ``i`` of every session gets ``responses[i % len]``; or a
            function from the conversation's messages to the response.

    Raises:
        UserError: When `responses` is neither a non-empty list of strings nor a function.
    """

    def __init__(self, responses: Script) -> None:
        if not callable(responses):
            is_list = isinstance(responses, Sequence) and not isinstance(responses, str | bytes)
            if not is_list or not responses or not all(isinstance(r, str) for r in responses):
                raise UserError(
                    "responses of the scripted engine must be a non-empty list of strings or a "
                    f"function of the messages, got {responses!r:.200}"
                )
            responses = tuple(responses)
        self._responses = responses
        self._turns: OrderedDict[str, int] = OrderedDict()

    @property
    def weights_version(self) -> int:
        """Always 0: there are no weights."""
        return 0

    async def generate(self, request: GenerationRequest) -> Completion:
        """Answer with the next response of the request's session.

        Sampling parameters have no effect: nothing is sampled.

        Raises:
            EngineError: When a response function returns something other than a string, or the
                request names an adapter.
        """
        refuse_adapter(request)
        if callable(self._responses):
            text = self._responses(request.messages)
            if not isinstance(text, str):
                raise EngineError(
                    f"the response function must return a string, got {type(text).__name__}"
                )
        else:
            turn = self._turns.pop(request.session_id, 0)
            text = self._responses[turn % len(self._responses)]
            self._turns[request.session_id] = turn + 1
            if len(self._turns) > _MAX_SESSIONS:
                self._turns.popitem(last=False)
        return Completion(text=text, finish_reason="stop")

    async def load_weights(self, tensors: Mapping[str, Tensor], *, version: int) -> None:
        """Refuse: a script does not learn.

        Raises:
            EngineError: Always.
        """
        raise EngineError(
            f"the scripted engine has no weights to load version {version} into; "
            'train with engine_name="transformers"'
        )

    def close(self) -> None:
        """Forget all sessions."""
        self._turns.clear()
