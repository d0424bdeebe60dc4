"""Solvers work at once on a problem, and a judge picks one of their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.types import Episode
from rllm_agents.workflow import Workflow
from rllm_agents.workflows.chat import ANSWER_IN_BOX, Chat, chosen_number, question_of, said

_JUDGE_PROMPT = "Which of these answers is right? Put its number in \\boxed{}."


class SolverJudgeWorkflow(Workflow):
    """Roles "solver", `n_solutions` times, and "judge".

    A solver earns what its own answer is worth, the judge what the answer is worth that it picks,
    and nothing where it picks none. The task is solved if the judge picks a right one.

    Args:
        reward_function: Of task and response; see `Workflow.grade`.
        n_solutions: Solvers of each task.
        **kwargs: Of `Workflow`.
    """

    def __init__(
        self, *, reward_function: Callable[..., Any], n_solutions: int = 2, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_count("n_solutions", n_solutions)
        self.reward_function, self.n_solutions = reward_function, n_solutions

    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode | None:
        """Solve, then judge."""
        self.reset(task, uid)
        question = question_of(task)
        solvers = [Chat(self, "solver") for _ in range(self.n_solutions)]

        async def solve(solver: Chat) -> tuple[str, float]:
            response = await solver.ask(f"{question}\n\n{ANSWER_IN_BOX}")
            reward = await self.grade(self.reward_function, task, response)
            solver.trajectory.reward = reward
            return response, reward

        solved = await asyncio.gather(*map(solve, solvers))
        shown = "\n\n".join(f"Answer {i}:\n{said(r)}" for i, (r, _) in enumerate(solved, start=1))
        judge = Chat(self, "judge")
        verdict = await judge.ask(f"{question}\n\n{shown}\n\n{_JUDGE_PROMPT}")
        choice = chosen_number(verdict, len(solved))
        judge.trajectory.reward = 0.0 if choice is None else solved[choice - 1][1]
        return None

    def assign_episode_correctness(self, episode: Episode) -> None:
        """Take the judge's success."""
        episode.is_correct = any(
            t.name == "judge" and (t.reward or 0.0) > 0.0 for t in episode.trajectories
        )
