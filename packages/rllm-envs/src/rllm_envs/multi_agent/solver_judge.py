"""Solvers answer a problem, a judge picks the answer to keep."""

from fractions import Fraction

import numpy as np

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.exact import exact_value
from rllm_envs.multi_agent.checks import check_integer
from rllm_envs.multi_agent.game import IllegalMoveError, TurnGame
from rllm_envs.parsing import boxed_answer, strip_thoughts
from rllm_envs.reasoning.math_families import FAMILIES
from rllm_envs.tasks import Task

JUDGE = "judge_0"
MAX_SOLUTION = 2_000


class SolverJudge(TurnGame):
    r"""Solve a small maths problem together: some write solutions, one picks the best.

    ## Description
    ``solver_0``, ``solver_1`` and so on each solve the same problem without seeing one another.
    ``judge_0`` reads the solutions, without thoughts and up to 2000 characters each, and picks one.
    Problems are those of ``rllm/Math-v0``. The experts answer rightly and pick a right solution.

    ## Moves
    A solver writes its solution with the answer in a box: ``... \boxed{12}``. The judge writes the
    number of a solution: ``\boxed{1}``.

    ## Rewards
    1 to each solver whose answer is right; 1 to the judge if the solution that it picks is right;
    0 otherwise. A solver that writes no box hands in nothing, and the game goes on.

    ## Arguments
    ``num_solvers`` (2 to 8, default 2).
    Task: ``{"question": ..., "answer": "3/4", "seed": 3}``; the answer is a number.
    """

    lists_moves = False

    def __init__(self, *, num_solvers: int = 2) -> None:
        super().__init__()
        check_integer("num_solvers", num_solvers, 2, 8)
        self.solvers = tuple(f"solver_{n}" for n in range(num_solvers))
        self.agents = (*self.solvers, JUDGE)
        self.max_moves = 1
        self.question = ""
        self.answer = Fraction(0)
        self.solutions: list[str] = []
        self.picked = 0
        self._solution = ""

    def generate_task(self, rng: np.random.Generator) -> Task:
        """Return a problem of ``rllm/Math-v0``."""
        families = sorted(FAMILIES)
        family = families[int(rng.integers(len(families)))]
        question, answer = FAMILIES[family](rng)
        return {"question": question, "answer": str(answer), "family": family}

    def split_basis(self, task: Task) -> Task:
        """Return the problem as ``rllm/Math-v0`` has it, so that both split it alike."""
        return {name: task[name] for name in ("question", "answer", "family")}

    def validate_task(self, task: Task) -> Task:
        """Check that ``question`` is a text and ``answer`` one that is a number."""
        question, answer = task.get("question"), task.get("answer")
        if not isinstance(question, str) or not question:
            raise TaskError(f"the task needs the text 'question', got {excerpt(question)}")
        if not isinstance(answer, str) or exact_value(answer) is None:
            raise TaskError(
                f"the task needs 'answer', a number as a text such as \"3/4\"; got "
                f"{excerpt(answer)}"
            )
        return {"question": question, "answer": answer}

    def set_up(self, task: Task) -> None:
        """Pose the problem."""
        self.question = task["question"]
        self.answer = exact_value(task["answer"]) or Fraction(0)
        self.solutions = []
        self.picked = 0
        self.current = self.solvers[0]

    def rules(self, agent: str) -> str:
        """Return the problem and what the agent has to do."""
        if agent == JUDGE:
            return (
                f"You are judge_0. {len(self.solvers)} solvers were asked: {self.question}\nRead "
                "their solutions and pick one that is right. Write its number in \\boxed{}, such "
                "as \\boxed{1}."
            )
        return f"You are {agent}. {self.question}\nGive the answer in \\boxed{{}}."

    def view(self, agent: str) -> str:
        """Return the solutions to the judge, and to a solver its own."""
        if agent == JUDGE:
            return "\n".join(
                f"Solution {number}: {solution}"
                for number, solution in enumerate(self.solutions, start=1)
            )
        index = self.solvers.index(agent)
        return f"You answered: {self.solutions[index]}" if index < len(self.solutions) else ""

    def legal_moves(self, agent: str) -> tuple[str, ...]:
        """Return the numbers of the solutions to the judge; a solver's words are free."""
        if agent != JUDGE or self.agent_to_move != JUDGE:
            return ()
        return tuple(str(number) for number in range(1, len(self.solvers) + 1))

    def read_move(self, agent: str, text: str) -> str:
        """Return the boxed answer of a solver, or the number that the judge picks.

        Raises:
            IllegalMoveError: There is no box, or no such solution.
        """
        if agent == JUDGE:
            return super().read_move(agent, text)
        answer = boxed_answer(text)
        if answer is None:
            raise IllegalMoveError("Give the answer in \\boxed{}, such as \\boxed{12}.")
        self._solution = _shortened(strip_thoughts(text).strip())
        return answer

    def make_move(self, agent: str, move: str) -> None:
        """Hand in a solution, or pick one and end the game."""
        if agent == JUDGE:
            self.picked = int(move)
            self._finish()
            return
        self._hand_in(self._solution)

    def forfeit(self, agent: str) -> None:
        """Hand in nothing for a solver; a judge that picks nothing ends the game."""
        if agent == JUDGE:
            self._finish()
        else:
            self._hand_in("(nothing)")

    def outcome(self, agent: str) -> str:
        """Return whether the agent's part was right."""
        return "That was right." if (self.scores or {})[agent] else "That was not right."

    def expert_move(self, agent: str) -> str:
        """Return the right answer, or a right solution's number, 1 if there is none."""
        if agent != JUDGE:
            return str(self.answer)
        rights = [n for n, text in enumerate(self.solutions, start=1) if self._is_right(text)]
        return str(rights[0] if rights else 1)

    def _hand_in(self, solution: str) -> None:
        self.solutions.append(solution)
        self.current = (*self.solvers, JUDGE)[len(self.solutions)]

    def _is_right(self, solution: str) -> bool:
        answer = boxed_answer(solution)
        return answer is not None and exact_value(answer) == self.answer

    def _finish(self) -> None:
        rights = [self._is_right(solution) for solution in self.solutions]
        scores = {agent: float(right) for agent, right in zip(self.solvers, rights, strict=True)}
        scores[JUDGE] = float(self.picked > 0 and rights[self.picked - 1])
        self.end(scores)


def _shortened(solution: str) -> str:
    """Return a solution of at most 2000 characters; its end holds the answer and is kept."""
    return solution if len(solution) <= MAX_SOLUTION else f"...{solution[3 - MAX_SOLUTION :]}"
