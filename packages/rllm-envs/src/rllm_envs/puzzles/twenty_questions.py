"""``rllm/TwentyQuestions-v0``: find a hidden thing by questions with yes or no answers."""

from rllm_envs.core import Response, TextEnv
from rllm_envs.errors import TaskError, excerpt
from rllm_envs.parsing import boxed_answer
from rllm_envs.puzzles.checks import check_int, task_choice
from rllm_envs.puzzles.things import (
    ATTRIBUTES,
    THINGS,
    find_attribute,
    find_thing,
    has_attribute,
)
from rllm_envs.tasks import Task

FORM = "Ask such as \\boxed{can fly}, or name your only guess such as \\boxed{dog}."


class TwentyQuestionsEnv(TextEnv):
    r"""Find a hidden thing by questions with yes or no answers.

    ## Description
    One thing of a stated list is hidden. The agent asks about attributes of a stated list and is
    answered with yes or no. It has one guess, so it must be sure, and a budget of questions.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` holds an attribute
    (``can fly``, ``Can it fly?``) or, as the only guess, the name of a thing.

    ## Observation Space
    First the rules with both lists. Then ``can fly: yes. Turns left: 18.``, or a hint where the
    action holds no attribute and no thing.

    ## Starting State
    ``num_things`` things of ``puzzles/things.py``, a uniform choice, one of them hidden.

    ## Rewards
    1 for the hidden thing, 0 otherwise.

    ## Episode End
    Terminates with a guess, or after ``max_turns`` actions, of which the guess is one.

    ## Information
    ``success``, ``invalid`` (the action got a hint), ``turn``, ``turns_left``.

    ## Arguments
    ``num_things`` (2 to 95, default 32), ``max_turns`` (default 20), ``split`` ("train", "test" or
    "all"). ``rllm/TwentyQuestionsHard-v0``: ``num_things=64, max_turns=10``, which
    the oracle never exceeds. Task: ``{"things": ["bell", "dog", "key"], "thing": "dog"}``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        num_things: int = 32,
        max_turns: int = 20,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_things = check_int("num_things", num_things, 2, len(THINGS))
        self._things: list[str] = []
        self._thing = ""
        self._possible: list[str] = []

    def generate_task(self) -> Task:
        """Return random things and one of them."""
        names = list(THINGS)
        chosen = self.np_random.choice(len(names), self.num_things, replace=False)
        things = sorted(names[i] for i in chosen)
        return {"things": things, "thing": things[int(self.np_random.integers(len(things)))]}

    def validate_task(self, task: Task) -> Task:
        """Check that ``things`` are built-in things and that ``thing`` is one of them."""
        things = task.get("things")
        if not isinstance(things, list) or len(things) < 2:
            raise TaskError(f"the task needs 'things', a list of at least 2, got {excerpt(things)}")
        for thing in things:
            if not isinstance(thing, str) or thing not in THINGS:
                raise TaskError(f"{excerpt(thing)} in 'things' is no built-in thing")
        if len(set(things)) < len(things):
            raise TaskError(f"'things' must differ, got {excerpt(things)}")
        task_choice(task, "thing", things, "one of 'things'")
        return task

    def begin(self, task: Task) -> str:
        """Return the rules and both lists."""
        self._things, self._thing = task["things"], task["thing"]
        self._possible = list(self._things)
        return (
            f"I am thinking of one of these things: {', '.join(self._things)}. Find out which. You "
            f"may ask whether one of these is true: it {'; '.join(ATTRIBUTES)}. I answer yes or "
            f"no. You have {self.max_turns} turns and one guess, which is one of the turns and "
            f"ends the game. {FORM}"
        )

    def respond(self, action: str) -> Response:
        """Answer a question, or judge the guess."""
        box = boxed_answer(action) or ""
        left = self.max_turns - self._turn
        thing, attribute = find_thing(box), find_attribute(box)
        if thing in self._things:
            return Response("", float(thing == self._thing), terminated=True)
        if not attribute:
            text = f"That is neither in the list of questions nor of things. {FORM}"
            text = f"{text} Turns left: {left}."
            return Response(text, terminated=left == 0, info={"invalid": True})
        is_true = has_attribute(self._thing, attribute)
        self._possible = [t for t in self._possible if has_attribute(t, attribute) == is_true]
        text = f"{attribute}: {'yes' if is_true else 'no'}. Turns left: {left}."
        return Response(text, terminated=left == 0)

    def oracle_action(self) -> str:
        """Return the question that halves the possible things best, or the only one of them."""
        if len(self._possible) == 1 or self.max_turns - self._turn <= 1:
            return f"\\boxed{{{self._possible[0]}}}"
        half = len(self._possible) / 2
        best = min(
            ATTRIBUTES,
            key=lambda words: abs(sum(has_attribute(t, words) for t in self._possible) - half),
        )
        return f"\\boxed{{{best}}}"
