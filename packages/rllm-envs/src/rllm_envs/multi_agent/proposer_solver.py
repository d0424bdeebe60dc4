"""One agent proposes an arithmetic problem, the other solves it."""

import re
from fractions import Fraction

import numpy as np

from rllm_envs.errors import ToolError
from rllm_envs.grading.exact import exact_value
from rllm_envs.multi_agent.checks import check_integer, task_integer
from rllm_envs.multi_agent.game import IllegalMoveError, TurnGame
from rllm_envs.parsing import boxed_answer
from rllm_envs.tasks import Task
from rllm_envs.tools.calculator import evaluate

PROPOSER, SOLVER = "proposer_0", "solver_0"
MAX_TERMS, MAX_DIGITS = 8, 6
MAX_ATTEMPTS = 16
OPERATORS = "+-*"
_ALLOWED = re.compile(r"[0-9+\-*() ]*")
_NUMBERS = re.compile(r"\d+")


class ProposerSolver(TurnGame):
    r"""Propose problems that are neither too easy nor too hard, and solve them.

    ## Description
    ``proposer_0`` writes an arithmetic expression of a given size. ``solver_0`` computes it
    ``num_attempts`` times without being told which answers are right and without seeing earlier
    ones. The value is computed exactly and nothing is executed. The proposer's expert writes a
    random expression of the size, the solver's expert its value.

    ## Moves
    The proposer writes ``\boxed{(12 + 7) * 3}``: whole numbers, + - * and parentheses. The solver
    writes ``\boxed{57}``.

    ## Rewards
    With p the share of right attempts: the solver earns p, the proposer 4 p (1 - p), which is 1 for
    a problem that is solved half the time and 0 for one that is always or never solved. A
    proposer that makes no legal move gets -1 and the solver 0; an attempt without a box is wrong.

    ## Arguments
    ``num_attempts`` (1 to 16, default 4).
    Task: ``{"num_terms": 3, "digits": 2, "seed": 3}``: how many numbers (2 to 8) of at most how
    many digits (1 to 6).
    """

    agents = (PROPOSER, SOLVER)
    lists_moves = False

    def __init__(self, *, num_attempts: int = 4) -> None:
        super().__init__()
        self.num_attempts = check_integer("num_attempts", num_attempts, 1, MAX_ATTEMPTS)
        self.max_moves = num_attempts
        self.num_terms = 2
        self.digits = 1
        self.expression = ""
        self.value = Fraction(0)
        self.attempts: list[bool] = []

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return a size, uniform over 2 to 5 numbers of at most 1 to 4 digits."""
        return {"num_terms": int(rng.integers(2, 6)), "digits": int(rng.integers(1, 5))}

    def validate_task(self, task: Task) -> Task:
        """Check the size."""
        return {
            "num_terms": task_integer(task, "num_terms", 2, MAX_TERMS),
            "digits": task_integer(task, "digits", 1, MAX_DIGITS),
        }

    def set_up(self, task: Task) -> None:
        """Wait for a proposal."""
        self.num_terms = task["num_terms"]
        self.digits = task["digits"]
        self.expression = ""
        self.attempts = []
        self.current = PROPOSER

    def rules(self, agent: str) -> str:
        """Return what the agent has to do."""
        if agent == PROPOSER:
            return (
                f"You are {PROPOSER}. Write an arithmetic problem that {SOLVER} gets right in about"
                f" half of {self.num_attempts} attempts: an expression of exactly {self.num_terms} "
                f"whole numbers of at most {self.digits} "
                f"{'digits' if self.digits > 1 else 'digit'} each, with + - * and parentheses. "
                "Write it in \\boxed{}, such as \\boxed{(1 + 2) * 3}, without its value."
            )
        if not self.expression:
            return f"You are {SOLVER} and wait for the problem of {PROPOSER}."
        return f"You are {SOLVER}. Compute {self.expression}. Give the answer in \\boxed{{}}."

    def view(self, agent: str) -> str:
        """Return how far the game is; the solver learns nothing of its attempts."""
        if not self.expression:
            return "There is no problem yet."
        if agent == PROPOSER:
            problem = f"The problem is {self.expression}."
            if self.scores is None:
                return problem
            return f"{problem} {sum(self.attempts)} of {self.num_attempts} attempts were right."
        if self.scores is not None:
            return f"{sum(self.attempts)} of {self.num_attempts} attempts were right."
        return f"Attempt {len(self.attempts) + 1} of {self.num_attempts}."

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return nothing: expressions and numbers are free."""
        return ()

    def read_move(self, agent: str, text: str) -> str:
        """Return the expression or the answer.

        Raises:
            IllegalMoveError: There is no box, or the expression is not of the size.
        """
        answer = boxed_answer(text)
        if agent == SOLVER:
            if answer is None:
                raise IllegalMoveError("Give the answer in \\boxed{}, such as \\boxed{12}.")
            return answer
        if answer is None:
            raise IllegalMoveError("Write the problem in \\boxed{}, such as \\boxed{1 + 2}.")
        expression = " ".join(answer.split())
        if not _ALLOWED.fullmatch(expression):
            raise IllegalMoveError("Use whole numbers, + - * and parentheses only.")
        numbers = _NUMBERS.findall(expression)
        if len(numbers) != self.num_terms or max(map(len, numbers)) > self.digits:
            raise IllegalMoveError(
                f"Use exactly {self.num_terms} numbers of at most {self.digits} digits each."
            )
        try:
            evaluate(expression)
        except ToolError as error:
            raise IllegalMoveError(f"This is no expression: {error}.") from None
        return expression

    def make_move(self, agent: str, move: str) -> None:
        """Pose the problem, or hand in an attempt; the last one ends the game."""
        if agent == PROPOSER:
            self.expression = move
            self.value = evaluate(move)
            self.current = SOLVER
        else:
            self._attempt(exact_value(move) == self.value)

    def forfeit(self, agent: str) -> None:
        """End the game without a problem; an attempt of the solver is wrong."""
        if agent == SOLVER:
            self._attempt(False)
        else:
            super().forfeit(agent)

    def forfeit_scores(self, agent: str) -> dict[str, float]:
        """Return -1 for the proposer and 0 for the solver."""
        return {PROPOSER: -1.0, SOLVER: 0.0}

    def outcome(self, agent: str) -> str:
        """Return what the agent earns."""
        return f"You earn {(self.scores or {})[agent]:g}."

    def expert_move(self, agent: str) -> str:
        """Return a random expression of the size, or the value of the one that is posed."""
        if agent == SOLVER:
            return str(self.value)
        rng = self.strategy_rng(agent)
        low = 10 ** (self.digits - 1)
        numbers = [str(rng.integers(low, 10 * low)) for _ in range(self.num_terms)]
        signs = [OPERATORS[int(rng.integers(len(OPERATORS)))] for _ in numbers[1:]]
        pairs = zip(signs, numbers[1:], strict=True)
        return numbers[0] + "".join(f" {sign} {number}" for sign, number in pairs)

    def _attempt(self, is_right: bool) -> None:
        self.attempts.append(is_right)
        if len(self.attempts) == self.num_attempts:
            share = sum(self.attempts) / self.num_attempts
            self.end({PROPOSER: 4 * share * (1 - share), SOLVER: share})
