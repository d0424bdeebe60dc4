"""What an engine that samples tokens itself asks of a request."""

from __future__ import annotations

from rllm_agents.errors import EngineError
from rllm_agents.types import GenerationRequest


def check_token_request(
    request: GenerationRequest, *, num_embeddings: int, max_model_length: int
) -> int:
    """Return the most tokens that may be sampled for a request.

    Args:
        request: As it came.
        num_embeddings: Ids that the model knows: 0 to this, exclusive.
        max_model_length: Most tokens of prompt and completion together.

    Raises:
        EngineError: The prompt is missing, empty, has unknown ids, or does not fit with
            `max_tokens`; or the request names an adapter.
    """
    refuse_adapter(request)
    prompt_ids = request.prompt_ids
    if not prompt_ids:
        raise EngineError(
            "this engine needs prompt_ids with at least one id; "
            "give the execution engine the model's tokenizer"
        )
    low, high = min(prompt_ids), max(prompt_ids)
    if low < 0 or high >= num_embeddings:
        raise EngineError(
            f"prompt_ids must be in [0, {num_embeddings}), the model's vocabulary, got "
            f"{low} to {high}; is the tokenizer that of the model?"
        )
    room = max_model_length - len(prompt_ids)
    max_tokens = request.sampling.max_tokens
    if room < (max_tokens or 1):
        raise EngineError(
            f"a prompt of {len(prompt_ids)} tokens and max_tokens={max_tokens or 1} exceed "
            f"the model's {max_model_length} positions; shorten the prompt, lower "
            "max_tokens, or leave it None to use what is left"
        )
    return max_tokens or room


def refuse_adapter(request: GenerationRequest) -> None:
    """Keep a request from being sampled by other weights than it names.

    Raises:
        EngineError: It names a set of weights; the engine has one.
    """
    if request.adapter:
        raise EngineError(
            f"this engine has one set of weights and none named {request.adapter!r:.80}; wrap it "
            "in a NamedWeightsEngine"
        )
