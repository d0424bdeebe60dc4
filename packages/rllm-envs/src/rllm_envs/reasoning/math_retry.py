"""``rllm/MathRetry-v0``: a mathematical problem with several attempts."""

from collections.abc import Sequence
from pathlib import Path

from rllm_envs.core import Response
from rllm_envs.errors import EnvArgumentError
from rllm_envs.reasoning.math_problem import MathEnv, outcome_info


class MathRetryEnv(MathEnv):
    r"""Solve a mathematical problem; a wrong answer may be corrected.

    ## Description
    The problems of ``rllm/Math-v0``. After an answer that is not right the agent is told so, but
    not what would be right, and tries again.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer; an
    action without one counts as an attempt.

    ## Observation Space
    First the question, as in ``rllm/Math-v0``. Then ``Your answer is not right. ...`` or
    ``There is no answer in \boxed{}. ...``, with the number of attempts left. The last observation
    is empty.

    ## Starting State
    As in ``rllm/Math-v0``.

    ## Rewards
    1 for a right answer, whichever attempt it is; 0 otherwise.

    ## Episode End
    Terminates with a right answer, or after ``max_turns`` attempts.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``outcome`` and ``unverifiable`` (of the last
    attempt, as in ``rllm/Math-v0``), ``turn``, ``turns_left``.

    ## Arguments
    ``max_turns`` (attempts, at least 2, default 3), and those of ``rllm/Math-v0``.
    Task: as in ``rllm/Math-v0``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        max_turns: int = 3,
        dataset: str | Path | None = None,
        families: Sequence[str] | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 2:
            raise EnvArgumentError(
                f"max_turns must be an integer of at least 2, got {max_turns!r}; "
                "rllm/Math-v0 gives one attempt"
            )
        super().__init__(dataset=dataset, families=families, split=split, render_mode=render_mode)
        self.max_turns = max_turns

    def respond(self, action: str) -> Response:
        """Grade the boxed answer; end the episode if it is right or was the last attempt."""
        outcome = self.judge(action)
        info = outcome_info(outcome)
        left = self.max_turns - self._turn
        if outcome == "correct" or left == 0:
            return Response("", float(outcome == "correct"), terminated=True, info=info)
        problem = (
            "There is no answer in \\boxed{}."
            if outcome == "no_answer"
            else "Your answer is not right."
        )
        attempts = "1 attempt" if left == 1 else f"{left} attempts"
        return Response(f"{problem} Try again; you have {attempts} left.", info=info)
