"""A solver answers, a critic comments, the solver answers again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.types import Episode
from rllm_agents.workflow import Workflow
from rllm_agents.workflows.chat import ANSWER_IN_BOX, Chat, question_of, said
from rllm_envs.parsing import boxed_answer

_CRITIC_PROMPT = (
    "Find what is wrong with this answer and say how to mend it. If nothing is, write "
    "\\boxed{accept}."
)


class SelfRefineWorkflow(Workflow):
    """Roles "solver", one conversation, and "critic", one for each of its comments.

    After Madaan et al. 2023, "Self-Refine: Iterative Refinement with Self-Feedback". The solver
    earns what its last answer is worth, and so does a critic for the answer that follows its
    comment. It ends when a critic accepts or after `n_rounds` comments.

    Args:
        reward_function: Of task and response; see `Workflow.grade`.
        n_rounds: Most comments.
        **kwargs: Of `Workflow`.
    """

    def __init__(
        self, *, reward_function: Callable[..., Any], n_rounds: int = 2, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_count("n_rounds", n_rounds)
        self.reward_function, self.n_rounds = reward_function, n_rounds

    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode:
        """Answer, and answer again until a critic accepts."""
        self.reset(task, uid)
        question = question_of(task)
        solver = Chat(self, "solver")
        answer = await solver.ask(f"{question}\n\n{ANSWER_IN_BOX}")
        reward = first = await self.grade(self.reward_function, task, answer)
        for _ in range(self.n_rounds):
            critic = Chat(self, "critic")
            comment = await critic.ask(f"{question}\n\nAnswer:\n{said(answer)}\n\n{_CRITIC_PROMPT}")
            accepts = (boxed_answer(comment) or "").strip().lower() == "accept"
            if not accepts:
                answer = await solver.ask(
                    f"A critic says:\n{said(comment)}\n\nAnswer again. {ANSWER_IN_BOX}"
                )
                reward = await self.grade(self.reward_function, task, answer)
            critic.trajectory.reward = reward
            if accepts:
                break
        solver.trajectory.reward = reward
        episode = self.collect_trajectories()
        self.collect_metrics(episode)
        episode.is_correct = reward > 0.0
        episode.metrics["first_reward"] = first
        return episode
