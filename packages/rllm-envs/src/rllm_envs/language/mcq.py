"""``rllm/MCQ-v0``: one question, several choices, one of them right."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from rllm_envs.choice_rewards import (
    LETTERS,
    MAX_CHOICES,
    choices_of,
    mcq_reward_fn,
    right_choice,
)
from rllm_envs.core import Response
from rllm_envs.errors import DatasetError, EnvArgumentError, TaskError, excerpt
from rllm_envs.language.mcq_families import FAMILIES
from rllm_envs.registry import load_rows
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import ID_FIELDS, Dataset, Task

INSTRUCTION = "Give the letter of the right choice in \\boxed{}."
MAX_QUESTION_LENGTH = 65_000
MAX_GENERATED_CHOICES = 10


class MCQEnv(SingleTurnEnv):
    r"""Answer a multiple-choice question in one turn.

    ## Description
    Without ``dataset=`` the questions are made up from nine families: capitals, chemical symbols,
    opposites, kinds of things, odd words out, weekdays, products, fractions, primes. With it they
    are the rows of a file, of a registered data set or of a public one, such as MMLU-Pro, GPQA or
    ARC.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer: the
    letter, as ``B``, ``(b)`` or ``B) Paris``, or the choice in full. Without a box,
    ``<answer>B</answer>``, "the answer is B" and a last line that is a choice count, too.

    ## Observation Space
    The question, a line ``A) ...`` for each choice, and
    ``Give the letter of the right choice in \boxed{}.`` The last observation is empty.

    ## Starting State
    A family and a question of it, or a row of the data set; both uniform. The order of made-up
    choices is random; rows keep theirs, unless ``shuffle_choices``.

    ## Rewards
    1 for the right choice, 0 otherwise. A guess earns one part in the number of choices on average.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no choice in the action, or two), ``outcome`` ("", then "correct",
    "wrong" or "no_answer"), ``turn``, ``turns_left``.

    ## Arguments
    ``dataset`` (a JSONL or JSON file, a registered name, or one of ``rllm_envs.datasets``; default
    None), ``families`` (names of made-up families; default all), ``num_choices`` (2 to 10, of
    made-up questions; default 4), ``shuffle_choices`` (of drawn rows, by the seed; default False),
    ``split`` ("train", "test" or "all": of the made-up questions, or the split of a data set; a
    file is used whole).
    Task: ``{"question": ..., "choices": [...], "answer": 1}``, where ``answer`` counts from 0 or is
    a letter. ``rllm/MCQHard-v0`` has 10 choices.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        dataset: str | Path | None = None,
        families: Sequence[str] | None = None,
        num_choices: int | None = None,
        shuffle_choices: bool = False,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        if dataset is not None and (families is not None or num_choices is not None):
            raise EnvArgumentError("give dataset, or families and num_choices, not both")
        if not isinstance(shuffle_choices, bool):
            raise EnvArgumentError(f"shuffle_choices must be a bool, got {shuffle_choices!r:.80}")
        if dataset is None and shuffle_choices:
            raise EnvArgumentError(
                "shuffle_choices is for dataset: made-up choices are in random order anyway"
            )
        self._families = _checked_families(families)
        self._num_choices = _checked_count(4 if num_choices is None else num_choices)
        self._is_shuffled = shuffle_choices
        self._tasks: tuple[Task, ...] = ()
        if dataset is not None:
            self._tasks = _tasks_of(load_rows(dataset, split))
            self.is_generated = False

    def generate_task(self) -> Task:
        """Return a made-up question, or a row of the data set."""
        if self._tasks:
            task = self._tasks[int(self.np_random.integers(len(self._tasks)))]
            return self._shuffled(task) if self._is_shuffled else task
        family = self._families[int(self.np_random.integers(len(self._families)))]
        question, choices = FAMILIES[family](self.np_random, self._num_choices)
        return self._shuffled({"question": question, "choices": choices, "answer": 0})

    def validate_task(self, task: Task) -> Task:
        """Check question, choices and answer.

        Raises:
            TaskError: One of them is missing or wrong.
        """
        return _checked_task(task)

    def question(self, task: Task) -> str:
        """Return the question, the choices under their letters, and the instruction."""
        lines = [f"{LETTERS[i]}) {choice}" for i, choice in enumerate(task["choices"])]
        return "\n".join([task["question"], *lines, INSTRUCTION])

    def respond(self, action: str) -> Response:
        """Grade the choice and end the episode."""
        output = mcq_reward_fn(self._current, action)
        outcome = output.metadata["outcome"]
        info = {"invalid": outcome == "no_answer", "outcome": outcome}
        return Response("", output.reward, terminated=True, info=info)

    def oracle_action(self) -> str:
        r"""Return the letter of the right choice in ``\boxed{}``."""
        return f"\\boxed{{{LETTERS[self._current['answer']]}}}"

    def _shuffled(self, task: Task) -> Task:
        order = [int(i) for i in self.np_random.permutation(len(task["choices"]))]
        choices = [task["choices"][i] for i in order]
        return task | {"choices": choices, "answer": order.index(task["answer"])}


def _checked_families(families: Sequence[str] | None) -> tuple[str, ...]:
    chosen = tuple(FAMILIES) if families is None else families
    is_list = isinstance(chosen, list | tuple) and bool(chosen)
    if not is_list or not all(isinstance(name, str) and name in FAMILIES for name in chosen):
        raise EnvArgumentError(
            f"families must be a list of one or more of {', '.join(FAMILIES)}; got {families!r:.80}"
        )
    return tuple(chosen)


def _checked_count(count: Any) -> int:
    is_whole = isinstance(count, int) and not isinstance(count, bool)
    if not is_whole or not 2 <= count <= MAX_GENERATED_CHOICES:
        raise EnvArgumentError(f"num_choices must be in 2 to 10, got {count!r:.80}")
    return count


@lru_cache(maxsize=8)
def _tasks_of(dataset: Dataset) -> tuple[Task, ...]:
    tasks = []
    for number, row in enumerate(dataset, start=1):
        source = f"{dataset.name}, row {number}"
        try:
            tasks.append(_checked_task(row) | {"source": source})
        except TaskError as error:
            raise DatasetError(f"{source}: {error}") from None
    return tuple(tasks)


def _checked_task(task: Task) -> Task:
    question = task.get("question")
    if not isinstance(question, str) or not question.strip():
        raise TaskError(f"'question' must be text, got {excerpt(question)}")
    choices = choices_of(task)
    length = len(question) + sum(map(len, choices)) + 4 * MAX_CHOICES
    if length > MAX_QUESTION_LENGTH:
        raise TaskError(
            f"question and choices have {length} characters, more than {MAX_QUESTION_LENGTH}"
        )
    answer = right_choice(task, len(choices))
    ids = {name: task[name] for name in ID_FIELDS if task.get(name) is not None}
    return {"question": question, "choices": choices, "answer": answer} | ids
