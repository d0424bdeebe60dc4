"""Debaters answer, read each other, answer again; the majority's answer counts."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rllm_agents.argument_checks import check_count
from rllm_agents.errors import UserError
from rllm_agents.types import Episode
from rllm_agents.workflow import Workflow
from rllm_agents.workflows.chat import ANSWER_IN_BOX, Chat, question_of, said
from rllm_envs.parsing import boxed_answer


class DebateWorkflow(Workflow):
    r"""Role "debater", `n_debaters` times, over `n_rounds` answers each.

    After Du et al. 2023, "Improving Factuality and Reasoning in Language Models through Multiagent
    Debate". A debater earns what its last answer is worth. The task is solved if the answer that
    most debaters end with, the first of equally frequent ones, is right; answers are compared as
    the text in ``\boxed{}``.

    Args:
        reward_function: Of task and response; see `Workflow.grade`.
        n_debaters: At least 2.
        n_rounds: Answers of each debater.
        **kwargs: Of `Workflow`.
    """

    def __init__(
        self,
        *,
        reward_function: Callable[..., Any],
        n_debaters: int = 2,
        n_rounds: int = 2,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if n_debaters == 1:
            raise UserError("n_debaters must be at least 2: nobody debates alone")
        check_count("n_debaters", n_debaters)
        check_count("n_rounds", n_rounds)
        self.reward_function = reward_function
        self.n_debaters, self.n_rounds = n_debaters, n_rounds

    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode:
        """Debate, then count answers."""
        self.reset(task, uid)
        debaters = [Chat(self, "debater") for _ in range(self.n_debaters)]
        opening = f"{question_of(task)}\n\n{ANSWER_IN_BOX}"
        answers = await asyncio.gather(*(debater.ask(opening) for debater in debaters))
        for _ in range(self.n_rounds - 1):
            replies = [debater.ask(_reply(answers, i)) for i, debater in enumerate(debaters)]
            answers = await asyncio.gather(*replies)
        rewards = [await self.grade(self.reward_function, task, answer) for answer in answers]
        for debater, reward in zip(debaters, rewards, strict=True):
            debater.trajectory.reward = reward
        episode = self.collect_trajectories()
        self.collect_metrics(episode)
        votes = [(boxed_answer(answer) or "").strip() for answer in answers]
        cast = Counter(vote for vote in votes if vote)
        winner = cast.most_common(1)[0][0] if cast else ""
        episode.is_correct = bool(winner) and rewards[votes.index(winner)] > 0.0
        episode.metrics["agreement"] = cast[winner] / len(votes)
        return episode


def _reply(answers: list[str], own: int) -> str:
    others = [f"Another answered:\n{said(a)}" for i, a in enumerate(answers) if i != own]
    listed = "\n\n".join(others)
    return f"{listed}\n\nConsider this, correct yourself or them, and answer again. {ANSWER_IN_BOX}"
