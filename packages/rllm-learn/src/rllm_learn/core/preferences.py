"""The loss of direct preference optimization, from logprobs of whole responses."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


def preference_terms(margins: Tensor, *, beta: float) -> tuple[Tensor, Tensor]:
    """Return the DPO loss of pairs, and how hard each pulls its two responses apart.

    Rafailov et al. 2023, "Direct Preference Optimization: Your Language Model is Secretly a Reward
    Model", eq. 7, with the margin m of a pair of responses y_w (chosen) and y_l (rejected):

        m = log p(y_w) / p_ref(y_w) - log p(y_l) / p_ref(y_l)
        loss = -log sigmoid(beta m)

    Its gradient (section 4) is -beta sigmoid(-beta m) (grad log p(y_w) - grad log p(y_l)), so that
    two responses that share the pull `beta sigmoid(-beta m)` can be learned from one by one.

    Args:
        margins: m of each pair, any shape.
        beta: Above 0; the larger, the closer the policy stays to the reference.

    Returns:
        Losses in nats and pulls in (0, beta), both of the same shape.
    """
    return -logsigmoid(beta * margins), beta * (-beta * margins).sigmoid()
