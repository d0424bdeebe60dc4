"""A planner cuts a problem into steps, an executor takes them one by one and answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.types import Episode
from rllm_agents.workflow import Workflow
from rllm_agents.workflows.chat import ANSWER_IN_BOX, Chat, question_of, said

_STEP = re.compile(r"^\s*\d{1,3}[.)]\s+(\S.*)$", re.MULTILINE)


class PlanExecuteWorkflow(Workflow):
    """Roles "planner", one call, and "executor", one conversation with a turn for each step.

    Both earn what the final answer is worth. A plan is the planner's numbered lines; without any,
    the executor answers at once.

    Args:
        reward_function: Of task and response; see `Workflow.grade`.
        max_plan_steps: Steps beyond these are left out.
        **kwargs: Of `Workflow`.
    """

    def __init__(
        self, *, reward_function: Callable[..., Any], max_plan_steps: int = 4, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_count("max_plan_steps", max_plan_steps)
        self.reward_function, self.max_plan_steps = reward_function, max_plan_steps

    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode:
        """Plan, take the steps, answer."""
        self.reset(task, uid)
        question = question_of(task)
        planner = Chat(self, "planner")
        plan = await planner.ask(
            f"{question}\n\nDo not solve this. Write a plan of at most {self.max_plan_steps} "
            "numbered steps, one on each line."
        )
        steps = _STEP.findall(said(plan))[: self.max_plan_steps]
        executor = Chat(self, "executor", f"The problem:\n{question}")
        for number, step in enumerate(steps, start=1):
            await executor.ask(f"Step {number}: {step}")
        answer = await executor.ask(f"Solve the problem with what you have. {ANSWER_IN_BOX}")
        reward = await self.grade(self.reward_function, task, answer)
        planner.trajectory.reward = executor.trajectory.reward = reward
        episode = self.collect_trajectories()
        self.collect_metrics(episode)
        episode.is_correct = reward > 0.0
        episode.metrics["plan_steps"] = float(len(steps))
        return episode
