"""The files that ``python -m rllm_envs new`` writes, with $name, $class_name and $env_id."""

from string import Template

SINGLE_TURN = Template(r'''"""``$env_id``: spell a made-up word backwards, one turn."""

import gymnasium

from rllm_envs import EnvArgumentError, SingleTurnEnv, Task

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class $class_name(SingleTurnEnv):
    r"""Spell a made-up word backwards.

    ## Description
    The agent reads a word of random letters and writes it backwards.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer.

    ## Observation Space
    One sentence: ``Spell abcdef backwards. Give the answer in \boxed{}.`` The last observation is
    empty.

    ## Starting State
    Each letter is uniform over a to z.

    ## Rewards
    1 for the word backwards, in small or capital letters; 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``length`` (of the word, 3 to 50, default 6), ``split`` ("train", "test" or "all").
    Task: ``{"question": ..., "answer": ...}``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self, *, length: int = 6, split: str = "train", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        if not isinstance(length, int) or not 3 <= length <= 50:
            raise EnvArgumentError(f"length must be an integer from 3 to 50, got {length!r}")
        self.length = length

    def generate_task(self) -> Task:
        """Return a random word as a question, and its answer."""
        word = "".join(self.np_random.choice(list(LETTERS), size=self.length))
        question = f"Spell {word} backwards. Give the answer in \\boxed{{}}."
        return {"question": question, "answer": word[::-1]}

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether the answer is right, whatever its case."""
        return answer.strip().lower() == task["answer"]


gymnasium.register("$env_id", entry_point="$name:$class_name", reward_threshold=1.0)
''')
"""A question and its answer."""

SINGLE_TURN_TEST = Template(r"""import gymnasium
import pytest
from $name import $class_name

from rllm_envs import EnvArgumentError, check_text_env


def test_it_keeps_the_contract():
    check_text_env(gymnasium.make("$env_id"))


def test_the_word_backwards_is_right_and_anything_else_is_wrong():
    env = $class_name()
    task = {"question": "Spell stone backwards.", "answer": "enots"}
    rewards = []
    for action in (r"\boxed{enots}", r"It is \boxed{ENOTS}.", r"\boxed{stone}", "enots"):
        observation, _ = env.reset(options={"task": task})
        assert observation == "Spell stone backwards."
        rewards.append(env.step(action)[1])
    assert rewards == [1.0, 1.0, 0.0, 0.0]


def test_the_word_has_the_length_that_is_asked_for():
    env = $class_name(length=9)
    env.reset(seed=0)
    assert len(env.task["answer"]) == 9
    with pytest.raises(EnvArgumentError, match="length must be an integer from 3 to 50, got 2"):
        $class_name(length=2)
""")
"""The test of ``SINGLE_TURN``."""

MULTI_TURN = Template(r'''"""``$env_id``: find a hidden number by guesses, a few turns."""

import gymnasium

from rllm_envs import EnvArgumentError, Response, Task, TaskError, TextEnv
from rllm_envs.parsing import boxed_answer


class $class_name(TextEnv):
    r"""Find a hidden number; each guess is answered with higher or lower.

    ## Description
    A number from 1 to ``limit`` is hidden. The agent guesses, and reads whether the number is
    higher or lower than its guess.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the guess.

    ## Observation Space
    First the rules. A guess is answered with ``Higher.`` or ``Lower.``, anything else with a hint.
    The last observation is empty, unless the turns run out.

    ## Starting State
    The number is uniform over 1 to ``limit``.

    ## Rewards
    1 for the number, 0 otherwise.

    ## Episode End
    Terminates when the number is found. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (no number in a box), ``turn``, ``turns_left``.

    ## Arguments
    ``limit`` (20 to 100000, default 1000), ``max_turns`` (default 10, enough for a search by
    halves), ``split`` ("train", "test" or "all").
    Task: ``{"number": 42}``.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        limit: int = 1000,
        max_turns: int = 10,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        if not isinstance(limit, int) or not 20 <= limit <= 100_000:
            raise EnvArgumentError(f"limit must be an integer from 20 to 100000, got {limit!r}")
        self.limit = limit
        self._number = self._low = self._high = 0

    def generate_task(self) -> Task:
        """Return a random number."""
        return {"number": int(self.np_random.integers(1, self.limit + 1))}

    def validate_task(self, task: Task) -> Task:
        """Check that the number is one that can be found."""
        number = task.get("number")
        if not isinstance(number, int) or not 1 <= number <= self.limit:
            raise TaskError(f"'number' must be an integer from 1 to {self.limit}, got {number!r}")
        return task

    def begin(self, task: Task) -> str:
        """Hide the number and return the rules."""
        self._number, self._low, self._high = task["number"], 1, self.limit
        return (
            f"I think of a number from 1 to {self.limit}. You have {self.max_turns} guesses; each "
            "is answered with higher or lower. Write a guess as \\boxed{50}."
        )

    def respond(self, action: str) -> Response:
        """Compare a guess with the number."""
        answer = (boxed_answer(action) or "").strip()
        # More digits than the limit has are no guess; the longest numbers cannot even be read.
        if not (answer.isascii() and answer.isdecimal() and len(answer) <= 6):
            return Response("Write a number as \\boxed{50}.", info={"invalid": True})
        guess = int(answer)
        if guess == self._number:
            return Response("", reward=1.0, terminated=True)
        if guess < self._number:
            self._low = max(self._low, guess + 1)
            return Response("Higher.")
        self._high = min(self._high, guess - 1)
        return Response("Lower.")

    def oracle_action(self) -> str:
        """Return the middle of what is possible after the answers so far."""
        return f"\\boxed{{{(self._low + self._high) // 2}}}"


gymnasium.register("$env_id", entry_point="$name:$class_name", reward_threshold=1.0)
''')
"""A game of several turns."""

MULTI_TURN_TEST = Template(r"""import gymnasium
import pytest
from $name import $class_name

from rllm_envs import EnvArgumentError, TaskError, check_text_env


def test_it_keeps_the_contract():
    check_text_env(gymnasium.make("$env_id"))


def test_guesses_are_answered_until_the_number_is_found():
    env = $class_name()
    observation, _ = env.reset(options={"task": {"number": 42}})
    assert "from 1 to 1000" in observation
    assert env.step(r"\boxed{41}")[:3] == ("Higher.", 0.0, False)
    assert env.step(r"My guess is \boxed{43}.")[:3] == ("Lower.", 0.0, False)
    assert env.step("42")[4]["invalid"]
    _, reward, terminated, _, info = env.step(r"\boxed{42}")
    assert (reward, terminated, info["success"], info["turn"]) == (1.0, True, True, 4)


def test_the_guesses_run_out():
    env = $class_name(max_turns=2)
    env.reset(options={"task": {"number": 42}})
    assert not env.step(r"\boxed{1}")[3]
    observation, reward, terminated, truncated, _ = env.step(r"\boxed{2}")
    assert (observation, reward, terminated, truncated) == ("Higher.", 0.0, False, True)


def test_arguments_and_tasks_that_cannot_be_played_are_refused():
    with pytest.raises(EnvArgumentError, match="limit must be an integer from 20 to 100000, got 5"):
        $class_name(limit=5)
    with pytest.raises(TaskError, match="from 1 to 1000, got 1001"):
        $class_name().reset(options={"task": {"number": 1001}})
""")
"""The test of ``MULTI_TURN``."""
