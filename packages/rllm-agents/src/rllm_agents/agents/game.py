"""An agent that plays games and puzzles move by move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import observation_text
from rllm_agents.errors import UserError
from rllm_agents.types import Action, Message, Step, Trajectory
from rllm_envs.parsing import boxed_answer

SYSTEM_PROMPT = (
    "You play a game. Look at the position, think about what each move leads to, and end your turn "
    "with one move in \\boxed{}."
)
INVALID = "That was no valid move. Write one move in \\boxed{}."
_MAX_LEGAL_MOVES = 100
"""Most legal moves that are listed."""


class GameAgent(BaseAgent):
    r"""Shows the rules and each position, and acts with the move alone.

    Its action is the last ``\boxed{...}`` of a response, outside of thoughts, or the whole response
    where there is none, so that the environment says so. After an invalid move it is asked for a
    valid one. Made for the puzzles and the games of rllm_envs, such as ``rllm/FrozenLake-v0``,
    ``rllm/Wordle-v0`` and ``rllm/ConnectFour-v0``.

    Args:
        system_prompt: First message of every conversation; None for none.
        history: Turns that the model sees beside the first position, with the rules, and the newest
            one; None for all. Where turns are left out, each prompt starts a token record, since
            history changes.
        show_legal_moves: List the moves of ``info["action_mask"]``, where the environment gives
            them, with each position.

    Raises:
        UserError: `history` is no count, or `show_legal_moves` neither True nor False.
    """

    def __init__(
        self,
        system_prompt: str | None = SYSTEM_PROMPT,
        history: int | None = None,
        show_legal_moves: bool = False,
    ) -> None:
        is_count = isinstance(history, int) and not isinstance(history, bool) and history >= 0
        if history is not None and not is_count:
            raise UserError(f"history of GameAgent must be 0 or more, or None, got {history!r:.80}")
        if not isinstance(show_legal_moves, bool):
            raise UserError(
                f"show_legal_moves of GameAgent must be True or False, got {show_legal_moves!r:.80}"
            )
        self._system_prompt = system_prompt
        self._history = history
        self._show_legal_moves = show_legal_moves
        self.reset()

    def reset(self) -> None:
        """Begin a new game."""
        self._trajectory = Trajectory()
        # Positions and responses in turn, from the first position on.
        self._turns: list[Message] = []

    @property
    def chat_completions(self) -> list[Message]:
        """The rules, the turns that are remembered, and the newest position."""
        prompt = self._system_prompt
        system: list[Message] = [{"role": "system", "content": prompt}] if prompt else []
        num_turns = (len(self._turns) - 1) // 2
        if self._history is None or num_turns <= self._history:
            return [*system, *self._turns]
        # The first position has the rules; the oldest that is kept stands in one message with it.
        rules, oldest, *rest = (
            self._turns[0],
            *self._turns[2 * (num_turns - self._history) :],
        )
        content = f"{rules['content']}\n\nNow:\n{oldest['content']}"
        return [*system, {"role": "user", "content": content}, *rest]

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        """Append the position; after the end, nothing."""
        if done:
            return
        parts = [observation_text(observation) or ""]
        if self._turns and info.get("invalid") is True:
            parts.insert(0, INVALID)
        if self._show_legal_moves:
            parts.append(_legal_moves(info.get("action_mask")))
        self._turns.append({"role": "user", "content": "\n".join(filter(None, parts))})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        """Append the response and a step, and act with its move."""
        shown = self.chat_completions
        answer: Message = {"role": "assistant", "content": response}
        self._turns.append(answer)
        self._trajectory.steps.append(Step(chat_completions=[*shown, answer]))
        move = boxed_answer(response)
        return Action(action=response if move is None else f"\\boxed{{{move}}}")


def _legal_moves(mask: Any) -> str:
    """The sentence that lists moves; "" where none are given as text."""
    is_list = isinstance(mask, Sequence) and not isinstance(mask, str | bytes)
    moves = [move for move in mask if isinstance(move, str)] if is_list else []
    return f"Legal moves: {', '.join(moves[:_MAX_LEGAL_MOVES])}" if moves else ""
