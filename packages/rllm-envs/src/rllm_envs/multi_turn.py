"""``MultiTurnEnv``: one question, several turns, an answer at some time."""

from rllm_envs.core import Response
from rllm_envs.errors import EnvArgumentError
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import Task


class MultiTurnEnv(SingleTurnEnv):
    r"""A question that may be answered several times, inside ``\boxed{}``.

    A subclass writes ``generate_task`` as for ``SingleTurnEnv`` (``question`` and ``answer``, both
    text) and ``feedback``, which says what the agent reads after an answer that is not right. Where
    the agent may do something else than answer, such as ask or use a tool, it writes ``reply`` too.
    ``question``, ``extract``, ``grade`` and ``validate_task`` are those of ``SingleTurnEnv``.

    An answer whose grade is 1 (or True) ends the episode and earns 1. What another grade is worth
    is paid for the last turn only, so that attempts do not add up.

    Args:
        max_turns: Actions per episode, at least 2; the episode is truncated when they are spent.
        split: See ``TextEnv``.
        render_mode: See ``TextEnv``.

    Raises:
        EnvArgumentError: An argument has a value that is not allowed.
    """

    hint: str = "Give the answer in \\boxed{}."
    """What an action without an answer is answered with, unless ``reply`` is overridden."""

    def __init__(
        self, *, max_turns: int = 3, split: str = "train", render_mode: str | None = None
    ) -> None:
        if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 2:
            raise EnvArgumentError(f"max_turns must be an integer of at least 2, got {max_turns!r}")
        super().__init__(split=split, render_mode=render_mode)
        self.max_turns = max_turns
        self.history: list[tuple[str, str]] = []
        """Actions of the episode, and what each was answered with."""

    def feedback(self, task: Task, answer: str) -> str:
        """Return what the agent reads after an answer that is not right."""
        return "Your answer is not right."

    def reply(self, task: Task, action: str) -> str | Response:
        """Return the answer to an action without a boxed answer: a text, or all of a response."""
        return Response(self.hint, info={"invalid": True})

    def begin(self, task: Task) -> str:
        """Return the question."""
        self.history = []
        return super().begin(task)

    def respond(self, action: str) -> Response:
        """Grade an answer, or give the reply to any other action."""
        answer = self.extract(action)
        if answer is None:
            given = self.reply(self._current, action)
            response = given if isinstance(given, Response) else Response(given)
        else:
            reward = float(self.grade(self._current, answer))
            if reward >= 1.0:
                response = Response("", reward, terminated=True)
            elif self._turn == self.max_turns:
                response = Response("", reward)
            else:
                response = Response(self.feedback(self._current, answer))
        self.history.append((action, response.observation))
        return response
