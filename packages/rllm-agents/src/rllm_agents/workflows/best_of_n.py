"""Several answers at once, of which a verifier keeps the best."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.types import Episode
from rllm_agents.workflow import Workflow
from rllm_agents.workflows.chat import ANSWER_IN_BOX, Chat, question_of


class BestOfNWorkflow(Workflow):
    """Role "solver", `n` times; each earns what its own answer is worth.

    The verifier scores answers without being what is learned from: unit tests of which the hidden
    ones are more, or a consistency check. The task is solved if the answer with the highest score,
    the first of equal ones, is right. ``metrics["any_correct"]`` is 1 where one of all was.

    Args:
        reward_function: Of task and response; see `Workflow.grade`.
        verifier: Of task and response, like it; by default `reward_function` itself.
        n: Answers to each task.
        **kwargs: Of `Workflow`.
    """

    def __init__(
        self,
        *,
        reward_function: Callable[..., Any],
        verifier: Callable[..., Any] | None = None,
        n: int = 4,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_count("n", n)
        self.reward_function, self.verifier, self.n = reward_function, verifier, n

    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode:
        """Answer `n` times and keep the best."""
        self.reset(task, uid)
        question = question_of(task)
        solvers = [Chat(self, "solver") for _ in range(self.n)]

        async def solve(solver: Chat) -> tuple[float, float]:
            response = await solver.ask(f"{question}\n\n{ANSWER_IN_BOX}")
            reward = await self.grade(self.reward_function, task, response)
            solver.trajectory.reward = reward
            if self.verifier is None:
                return reward, reward
            return await self.grade(self.verifier, task, response), reward

        judged = await asyncio.gather(*map(solve, solvers))
        _, best_reward = max(judged, key=lambda pair: pair[0])
        episode = self.collect_trajectories()
        self.collect_metrics(episode)
        episode.is_correct = best_reward > 0.0
        episode.metrics["any_correct"] = float(any(reward > 0.0 for _, reward in judged))
        return episode
