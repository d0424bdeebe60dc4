"""A control: the same samples and the same update, but good rollouts become less likely.

PYTHONPATH=benchmarks/learning_curves uv run rllm train algorithm.loss=wrong_sign:wrong_sign
"""

from __future__ import annotations

from torch import Tensor

from rllm_learn import register_loss
from rllm_learn.core.losses import TokenLosses, clipped_surrogate


@register_loss("wrong_sign")
def wrong_sign(
    logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
) -> TokenLosses:
    """Return PPO's clipped surrogate of the negated advantages.

    In the one optimizer step of a batch the ratio is 1, where its gradient is that of the score
    function too, so that it is the opposite of ReMax's loss as of PPO's and GRPO's.
    """
    return clipped_surrogate(log_ratio, -advantages, clip_low=0.2, clip_high=0.2)
