"""One observation, one response."""

from __future__ import annotations

from typing import Any

from rllm_agents.workflows.multi_turn import MultiTurnWorkflow


class SingleTurnWorkflow(MultiTurnWorkflow):
    """One agent in an environment of a single turn.

    Args:
        **kwargs: Of `MultiTurnWorkflow`, without `max_steps`, and of `Workflow`.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_steps=1, **kwargs)
