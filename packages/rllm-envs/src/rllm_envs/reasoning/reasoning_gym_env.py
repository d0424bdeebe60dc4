"""``rllm/ReasoningGym-v0``: the generators of the package reasoning-gym, graded by its scorers."""

import contextlib
import io
import json
import random
import re
import warnings
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from rllm_envs.countdown_rewards import judge_expression
from rllm_envs.errors import EnvArgumentError, MissingDependencyError, TaskError, excerpt
from rllm_envs.grading.exact import exact_value
from rllm_envs.reasoning.draws import draw_integer
from rllm_envs.reasoning.fields import integer_field
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import Task, canonical_json

NUM_ITEMS = 10_000
"""Items of a data set that are drawn from."""
MAX_ANSWER_LENGTH = 10_000
COIN_ERROR = Fraction(1, 10_000)
"""By how much a probability of "coin_flip" may differ from the reference."""

_NO_ANSWER = "its items hold no answer, so nothing shows that they can be solved"
_HASHED = "its items depend on the order of Python's sets, so equal seeds may give different tasks"
REFUSED = {
    **dict.fromkeys(
        ("boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"), _NO_ANSWER
    ),
    **dict.fromkeys(("codeio", "isomorphic_strings", "knight_swap"), _HASHED),
    **dict.fromkeys(("polynomial_multiplication", "ransom_note", "word_ladder"), _HASHED),
    "composite": "it mixes other data sets; make one environment for each",
}
"""Data sets that cannot be played, and why."""

_EXPRESSION_TARGETS = {"countdown": None, "puzzle24": 24}
_INTEGRALS = ("simple_integration", "intermediate_integration")
# These scorers evaluate an answer as Python unless it equals the reference, so only what is made of
# the characters of a plain answer reaches them.
_PLAIN_ANSWERS = {
    "binary_matrix": re.compile(r"[0-9\s]+"),
    "n_queens": re.compile(r"[_Q\s]+"),
    "spiral_matrix": re.compile(r"[0-9\s-]+"),
    "string_insertion": re.compile(r"[A-E]+"),
}
# It makes all items when it is made itself, in about 0.2 ms each.
_FEWER_ITEMS = {"acre": 1000}

# Such numbers take for ever to be converted, or compare with nothing, which passes for equality.
_UNUSUAL_NUMBER = re.compile(r"[eE][+-]?[\d_]{4,}|\b(?:nan|inf|infinity)\b", re.IGNORECASE)
_FUNCTIONS = (
    *("sin", "cos", "tan", "sec", "csc", "cot", "sinh", "cosh", "tanh", "asin", "acos", "atan"),
    *("exp", "log", "ln", "sqrt", "pi", "C"),
)
_INTEGRAL_TOKEN = re.compile(r"\s*(?:(\d{1,12}(?:\.\d{1,12})?)|([A-Za-z]+)|(\*\*|[-+*/()]))")
_EXPONENT = re.compile(
    r"\*\*\s*(?:-?\d{1,2}(?![\d.])|\(\s*-?\d{1,2}\s*(?:/\s*\d{1,2}\s*)?\))(?!\s*\*\*)"
)
MAX_INTEGRAL_LENGTH = 300
MAX_NESTED_POWERS = 2


class ReasoningGymEnv(SingleTurnEnv):
    r"""Solve an item of one of the data sets of reasoning-gym.

    ## Description
    The package reasoning-gym generates about a hundred kinds of problem; ``dataset`` names one. It
    is an extra: ``pip install "rllm-envs[reasoning-gym]"``.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer.

    ## Observation Space
    The question of the item, and where the answer belongs. The last observation is empty.

    ## Starting State
    A uniform item among the first 10,000 of the data set with seed 0 (1,000 of "acre"). An item
    depends on its number alone.

    ## Rewards
    1 if the answer equals the reference or the scorer of the data set gives it 1, else 0; there is
    no partial credit. Some scorers evaluate answers as code, and some give the full score to wrong
    ones. So "countdown", "puzzle24", "coin_flip" and "game_of_life_halting" are graded here, and
    scorers that evaluate get only answers of allowed characters, names and exponents; what is not
    allowed is wrong.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``dataset`` (name of a data set, default "leg_counting"; those of ``REFUSED`` are refused, and
    the error says why), ``config`` (a dict of settings of the data set, without ``seed`` and
    ``size``; default None), ``split`` ("train", "test" or "all").
    Task: ``{"dataset": "leg_counting", "index": 7}``; ``question`` and ``answer`` optional.

    ## References
    Stojanovski et al. 2025, "Reasoning Gym: Reasoning Environments for Reinforcement Learning with
    Verifiable Rewards".

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        dataset: str = "leg_counting",
        config: Mapping[str, Any] | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        _check_arguments(dataset, config)
        self.dataset = dataset
        self.num_items = _FEWER_ITEMS.get(dataset, NUM_ITEMS)
        self._config_json = canonical_json(config or {})
        self._items: dict[int, dict[str, Any]] = {}
        # Comparing integrals may take a while.
        self.blocking = dataset in _INTEGRALS

    def generate_task(self) -> Task:
        """Return a random item of the data set."""
        return self._task_of(draw_integer(self.np_random, 0, self.num_items - 1))

    def validate_task(self, task: Task) -> Task:
        """Return the item that a given task names.

        Raises:
            TaskError: It names another data set or no item, or its question or answer is not that
                of the item.
        """
        if task.get("dataset", self.dataset) != self.dataset:
            raise TaskError(
                f"the task is of data set {excerpt(task['dataset'])}, this environment plays "
                f'"{self.dataset}"'
            )
        item = self._task_of(integer_field(task, "index", 0, self.num_items - 1))
        for field in ("question", "answer"):
            if task.get(field, item[field]) != item[field]:
                raise TaskError(
                    f"{field!r} is not that of item {item['index']} of {self.dataset}; the task "
                    "was made with other settings or another version of reasoning-gym"
                )
        return {**task, **item}

    def question(self, task: Task) -> str:
        """Return the question and where the answer belongs."""
        return f"{task['question']}\n\nGive the final answer in \\boxed{{}}."

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the reference or earns the full score of the data set."""
        text = answer.strip()
        if text == task["answer"].strip():
            return True
        if not text or len(text) > MAX_ANSWER_LENGTH or _UNUSUAL_NUMBER.search(text):
            return False
        return self._is_right(task, text)

    def _is_right(self, task: Task, text: str) -> bool:
        """Return whether an answer that is not the reference itself is right all the same."""
        item = self._item(task["index"])
        if self.dataset == "game_of_life_halting":
            # Its scorer takes any text for True.
            return text.casefold() == task["answer"].casefold()
        if self.dataset == "coin_flip":
            # Its scorer gives the full score to any beginning of the reference, such as 0.
            value, right = exact_value(text), exact_value(task["answer"])
            return value is not None and right is not None and abs(value - right) <= COIN_ERROR
        if self.dataset in _EXPRESSION_TARGETS:
            target = _EXPRESSION_TARGETS[self.dataset] or item["metadata"]["target"]
            numbers = item["metadata"]["numbers"]
            return judge_expression(text, numbers, target, use_all=True) == "correct"
        pattern = _PLAIN_ANSWERS.get(self.dataset)
        if pattern is not None and not pattern.fullmatch(text):
            return False
        if self.dataset in _INTEGRALS and not is_plain_integral(text):
            return False
        try:
            score = _dataset(self.dataset, self._config_json, self.num_items).score_answer(
                text, item
            )
        except Exception:  # scorers expect well-formed answers and fail in many ways
            return False
        return float(score) >= 1.0

    def _task_of(self, index: int) -> Task:
        item = self._item(index)
        return {
            "dataset": self.dataset,
            "index": index,
            "question": item["question"],
            "answer": item["answer"],
        }

    def _item(self, index: int) -> dict[str, Any]:
        """Return an item; the last one is kept, because grading needs it again."""
        if index not in self._items:
            source = _dataset(self.dataset, self._config_json, self.num_items)
            self._items = {index: _draw_item(source, index)}
        return self._items[index]


def is_plain_integral(text: str) -> bool:
    """Return whether a text is an expression that may be handed to a symbolic parser.

    It has at most 300 characters; its names are single letters and elementary functions; its
    exponents are whole numbers of two digits or fractions of these, never powers themselves; and at
    most two powers of parentheses occur.
    """
    if len(text) > MAX_INTEGRAL_LENGTH:
        return False
    position = 0
    while position < len(text):
        token = _INTEGRAL_TOKEN.match(text, position)
        if token is None:
            return False
        name = token.group(2)
        if name is not None and len(name) > 1 and name not in _FUNCTIONS:
            return False
        position = token.end()
    if text.count("**") != len(_EXPONENT.findall(text)):
        return False
    return len(re.findall(r"\)\s*\*\*", text)) <= MAX_NESTED_POWERS


def _check_arguments(dataset: Any, config: Any) -> None:
    if find_spec("reasoning_gym") is None:
        raise MissingDependencyError(
            'rllm/ReasoningGym-v0 needs reasoning-gym: pip install "rllm-envs[reasoning-gym]"'
        )
    reason = REFUSED.get(dataset) if isinstance(dataset, str) else None
    if reason is not None:
        raise EnvArgumentError(f'the data set "{dataset}" cannot be played: {reason}')
    known = {*_factory().DATASETS}
    if dataset not in [*known]:
        names = ", ".join(sorted(known - {*REFUSED}))
        raise EnvArgumentError(f"dataset must be one of {names}; got {excerpt(dataset)}")
    if config is None:
        return
    is_dict = isinstance(config, Mapping) and all(isinstance(name, str) for name in config)
    if not is_dict or {"seed", "size"} & {*config}:
        raise EnvArgumentError(
            f"config must be a dict of settings without 'seed' and 'size', got {excerpt(config)}"
        )
    _dataset(dataset, canonical_json(config), _FEWER_ITEMS.get(dataset, NUM_ITEMS))


def _factory() -> Any:
    # One of its own dependencies has lines that Python warns of when it compiles them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("reasoning_gym.factory")


@lru_cache(maxsize=8)
def _dataset(name: str, config_json: str, size: int) -> Any:
    settings = json.loads(config_json)
    try:
        return _factory().create_dataset(name, seed=0, size=size, **settings)
    except Exception as error:  # settings are checked by assertions, among others
        raise EnvArgumentError(
            f'reasoning-gym refuses the data set "{name}" with config={settings!r:.200}: {error}'
        ) from error


def _draw_item(source: Any, index: int) -> dict[str, Any]:
    """Return an item.

    What a data set takes from the global generators is fixed and restored; what it prints is lost.
    """
    python_state, numpy_state = random.getstate(), np.random.get_state()
    random.seed(index)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            item = source[index]
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
    return {**item, "answer": str(item["answer"])}
