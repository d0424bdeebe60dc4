"""``rllm/NumberSequence-v0``: which number comes next."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.reasoning.answers import read_integer
from rllm_envs.reasoning.draws import draw_integer, draw_item
from rllm_envs.reasoning.fields import integer_argument, integers_field, names_argument
from rllm_envs.reasoning.solved import SolvedEnv
from rllm_envs.tasks import Task

MIN_TERMS, MAX_TERMS = 6, 10
MAX_VALUE = 10**6

Next = Callable[[Sequence[int]], int | None]


def _arithmetic(terms: Sequence[int]) -> int | None:
    step = terms[1] - terms[0]
    fits = all(b - a == step for a, b in pairwise(terms))
    return terms[-1] + step if fits else None


def _geometric(terms: Sequence[int]) -> int | None:
    if 0 in terms or any(b * terms[0] != a * terms[1] for a, b in pairwise(terms)):
        return None
    following, rest = divmod(terms[-1] * terms[1], terms[0])
    return following if rest == 0 else None


def _quadratic(terms: Sequence[int]) -> int | None:
    step = _arithmetic([b - a for a, b in pairwise(terms)])
    return None if step is None else terms[-1] + step


def _additive(terms: Sequence[int]) -> int | None:
    fits = all(terms[n] == terms[n - 1] + terms[n - 2] for n in range(2, len(terms)))
    return terms[-1] + terms[-2] if fits else None


def _affine(terms: Sequence[int]) -> int | None:
    """Fit x -> a x + b with whole a and b to the first steps and try it on the others."""
    run, rise = terms[1] - terms[0], terms[2] - terms[1]
    if run == 0 or rise % run:
        return None
    factor = rise // run
    offset = terms[1] - factor * terms[0]
    fits = all(b == factor * a + offset for a, b in pairwise(terms))
    return factor * terms[-1] + offset if fits else None


def _interleaved(terms: Sequence[int]) -> int | None:
    even, odd = _arithmetic(terms[::2]), _arithmetic(terms[1::2])
    if even is None or odd is None:
        return None
    return odd if len(terms) % 2 else even


RULES: Mapping[str, tuple[str, Next]] = {
    "arithmetic": ("each number is the one before plus a constant", _arithmetic),
    "geometric": ("each number is the one before times a constant", _geometric),
    "quadratic": ("the differences grow by a constant", _quadratic),
    "additive": ("each number is the sum of the two before", _additive),
    "affine": ("each number is the one before times a constant, plus a constant", _affine),
    "interleaved": ("the numbers at odd and at even places each grow by a constant", _interleaved),
}
"""How each rule is worded, and the next number by it; None where the numbers do not keep it."""


class NumberSequenceEnv(SolvedEnv):
    r"""Find the number that continues a sequence.

    ## Description
    The sequence keeps one of six rules, which are listed: a constant step, a constant factor,
    differences with a constant step, sums of the two numbers before, a constant factor and step, or
    two interleaved sequences of constant step. If several rules fit, they agree on the next number.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer, an
    integer.

    ## Observation Space
    The sequence, the rules and the question. The last observation is empty.

    ## Starting State
    A uniform rule with random start and constants; all numbers stay below one million.

    ## Rewards
    1 for the next number, 0 otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success``, ``invalid`` (no box in the action), ``turn``, ``turns_left``.

    ## Arguments
    ``rules`` (list of "arithmetic", "geometric", "quadratic", "additive", "affine" and
    "interleaved", default all), ``num_terms`` (6 to 10, default 6: how many numbers are shown),
    ``split`` ("train", "test" or "all").
    Task: ``{"terms": [3, 7, 11, 15, 19, 23]}``; ``answer`` optional.

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        rules: Sequence[str] | None = None,
        num_terms: int = 6,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        self.rules = names_argument("rules", rules, tuple(RULES))
        self.num_terms = integer_argument("num_terms", num_terms, MIN_TERMS, MAX_TERMS)

    def draw(self) -> Task:
        """Return a random sequence that keeps a rule and has one continuation."""
        while True:
            terms = self._terms(draw_item(self.np_random, self.rules))
            is_small = max(map(abs, terms)) < MAX_VALUE
            if is_small and len({*terms}) > 2 and len(_continuations(terms)) == 1:
                return {"terms": terms}

    def _terms(self, rule: str) -> list[int]:
        """Return random terms that keep a rule."""
        rng, count = self.np_random, self.num_terms
        start, step = draw_integer(rng, -20, 50), self._step(12)
        if rule == "arithmetic":
            step = self._step(99)
            return [start + n * step for n in range(count)]
        if rule == "quadratic":
            second = self._step(6)
            return [start + n * step + second * n * (n - 1) // 2 for n in range(count)]
        if rule == "interleaved":
            other, other_step = draw_integer(rng, -20, 50), self._step(12)
            return [
                start + step * (n // 2) if n % 2 == 0 else other + other_step * (n // 2)
                for n in range(count)
            ]
        if rule == "additive":
            terms = [draw_integer(rng, 1, 15), draw_integer(rng, 1, 15)]
            while len(terms) < count:
                terms.append(terms[-1] + terms[-2])
            return terms
        factor = draw_item(rng, (-3, -2, 2, 2, 3, 3, 4))
        offset = 0 if rule == "geometric" else self._step(9)
        terms = [self._step(12)]
        while len(terms) < count:
            terms.append(terms[-1] * factor + offset)
        return terms

    def _step(self, most: int) -> int:
        """Return a constant from -most to most that is not 0."""
        return draw_integer(self.np_random, 1, most) * draw_item(self.np_random, (1, 1, -1))

    def check(self, task: Task) -> None:
        """Check the terms."""
        integers_field(task, "terms", (-MAX_VALUE, MAX_VALUE), (MIN_TERMS, 2 * MAX_TERMS))

    def question(self, task: Task) -> str:
        """Return the sequence, the rules and the question."""
        rules = "; ".join(wording for wording, _ in RULES.values())
        return (
            f"What number comes next: {', '.join(map(str, task['terms']))}? The sequence keeps one "
            f"of these rules: {rules}. Give the answer in \\boxed{{}}."
        )

    def solve(self, task: Task) -> str:
        """Return the next number by every rule that fits.

        Raises:
            TaskError: No rule fits, or rules that fit disagree.
        """
        following = _continuations(task["terms"])
        if len(following) != 1:
            raise TaskError(
                f"{excerpt(task['terms'])} has {len(following)} continuations by the rules "
                f"{', '.join(RULES)}; exactly one is needed"
            )
        return str(following.pop())

    def grade(self, task: Task, answer: str) -> bool:
        """Return whether an answer is the next number."""
        return read_integer(answer) == int(task["answer"])


def _continuations(terms: Sequence[int]) -> set[int]:
    """Return the next number by each rule that the terms keep."""
    following = (rule(terms) for _, rule in RULES.values())
    return {value for value in following if value is not None}
