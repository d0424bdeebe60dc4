"""``rllm/Bandit-v0``: find out which of several machines wins most often."""

from typing import Any

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import TaskError, excerpt
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int, check_turns, task_integers
from rllm_envs.tasks import Task

NAMES = (
    *("amber", "azure", "beige", "black", "blue", "bronze", "brown", "coral", "cyan", "emerald"),
    *("gold", "green", "grey", "indigo", "ivory", "jade", "lilac", "lime", "magenta", "maroon"),
    *("navy", "olive", "orange", "pearl", "pink", "purple", "red", "ruby", "scarlet", "silver"),
    *("teal", "turquoise", "violet", "white", "yellow"),
)
MOST, LEAST = 95, 5
GAP = 15


class BanditEnv(TextEnv):
    r"""Find out which of several machines wins most often.

    ## Description
    Each machine wins with a fixed probability that is not told. The agent plays one machine per
    turn and reads whether it won, and should soon play the best machine only.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds the name of
    a machine, in either case.

    ## Observation Space
    First the rules with the names. Then ``red: won. Plays left: 19.`` or ``red: lost. ...``, or a
    hint where the action names no machine.

    ## Starting State
    ``num_arms`` different colours, a uniform choice, name the machines. The best machine wins with
    a probability uniform from 0.6 to 0.95, each other with one uniform from 0.05 to 0.15 below it,
    in steps of 0.01.

    ## Rewards
    0 until the last turn, then the sum of the winning probabilities of the machines played, divided
    by what the best machine played at every turn gives: 1 for always the best machine. An action
    that names no machine counts 0. Wins themselves are luck and earn nothing.

    ## Episode End
    Terminates after ``max_turns`` actions.

    ## Information
    ``success`` (at the end: the best machine was played in more than half of the turns),
    ``invalid`` (no machine in a box), ``turn``, ``turns_left``, ``wins`` (int).

    ## Arguments
    ``num_arms`` (2 to 20, default 4), ``max_turns`` (plays, default 20), ``split`` ("train", "test"
    or "all"). ``rllm/BanditHard-v0``: ``num_arms=10, max_turns=50``.
    Task: ``{"names": ["red", "blue"], "percent": [70, 30]}``, the chance to win in percent.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_arms: int = 4,
        max_turns: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        turns = check_turns(max_turns, 20)
        super().__init__(max_turns=turns, split=split, render_mode=render_mode)
        self.num_arms = check_int("num_arms", num_arms, 2, 20)
        self._percent: dict[str, int] = {}
        self._plays: list[str] = []
        self._wins = 0

    def generate_task(self) -> Task:
        """Return random machines."""
        chosen = self.np_random.choice(len(NAMES), self.num_arms, replace=False)
        best = int(self.np_random.integers(60, MOST + 1))
        others = self.np_random.integers(LEAST, best - GAP + 1, size=self.num_arms)
        percent = [int(chance) for chance in others]
        percent[int(self.np_random.integers(self.num_arms))] = best
        return {"names": [NAMES[i] for i in chosen], "percent": percent}

    def validate_task(self, task: Task) -> Task:
        """Check ``names`` and ``percent``."""
        names = task.get("names")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TaskError(f"the task needs 'names', a list of texts, got {excerpt(names)}")
        if len(set(names)) < len(names) or not all(
            name.isascii() and name.isalpha() and name.islower() for name in names
        ):
            raise TaskError(f"'names' must be different words of lower-case letters, got {names}")
        percent = task_integers(task, "percent", 0, 100)
        if len(percent) != len(names) or len(names) < 2 or max(percent) == 0:
            raise TaskError(
                "'names' and 'percent' must have one length of at least 2, and one machine must "
                f"be able to win, got {excerpt(task)}"
            )
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and the names."""
        self._percent = dict(zip(task["names"], task["percent"], strict=True))
        self._plays, self._wins = [], 0
        return (
            f"There are {len(self._percent)} machines: {', '.join(self._percent)}. Each wins with "
            "a fixed probability of its own, which you do not know. You play "
            f"{self.max_turns} times; choose the machines so that you win as often as possible. "
            f"{self._form()}"
        )

    def _form(self) -> str:
        return (
            f"Write the name of a machine in a box, such as \\boxed{{{next(iter(self._percent))}}}."
        )

    def respond(self, action: str) -> Response:
        """Play a machine."""
        left = self.max_turns - self._turn
        name = (boxed_answer(action) or "").strip().lower()
        is_known = name in self._percent
        if is_known:
            is_win = int(self.np_random.integers(100)) < self._percent[name]
            self._plays.append(name)
            self._wins += is_win
            text = f"{name}: {'won' if is_win else 'lost'}."
        else:
            text = self._form()
        info: dict[str, bool] = {"invalid": not is_known}
        if left:
            return Response(f"{text} Plays left: {left}.", info=info)
        best = max(self._percent.values())
        reward = sum(self._percent[name] for name in self._plays) / (best * self.max_turns)
        num_best = sum(self._percent[name] == best for name in self._plays)
        info["success"] = 2 * num_best > self.max_turns
        return Response(text, reward, terminated=True, info=info)

    def _info(self, *, success: bool, invalid: bool) -> dict[str, Any]:
        return super()._info(success=success, invalid=invalid) | {"wins": self._wins}

    def oracle_action(self) -> str:
        """Return the machine with the greatest probability, which the agent is not told."""
        return f"\\boxed{{{max(self._percent, key=lambda name: self._percent[name])}}}"
