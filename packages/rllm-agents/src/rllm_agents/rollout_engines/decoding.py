"""From sampled ids to the text of a completion, the same in every engine that works on tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rllm_agents.channels import channel_reader
from rllm_agents.types import FinishReason


def completion_text(tokenizer: Any, token_ids: Sequence[int], finish: FinishReason) -> str:
    """Decode a completion without its stop token and other control tokens.

    A thought in a channel of its own, as gpt-oss writes it, stands between ``<think>`` tags.

    Args:
        tokenizer: Of transformers; with None the text is empty.
        token_ids: As sampled, a stop token included.
        finish: Why it ended.
    """
    if tokenizer is None:
        return ""
    ids = list(token_ids[:-1] if finish == "stop" else token_ids)
    channels = channel_reader(tokenizer)
    if channels is not None:
        return channels.text(ids)
    text = tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return str(text)
