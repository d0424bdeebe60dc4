"""Judge an `LLMPolicy` on an environment, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rllm_agents.evaluation.results import EvaluationResult, evaluate_tasks
from rllm_agents.evaluation.tasks import env_tasks
from rllm_agents.policy import LLMPolicy
from rllm_agents.types import SamplingParams
from rllm_envs import GymEnv


def evaluate(  # noqa: PLR0913  (what an evaluation may be told)
    policy: LLMPolicy,
    env_id: str,
    n: int | None = None,
    *,
    env_kwargs: Mapping[str, Any] | None = None,
    dataset: str | None = None,
    split: str = "test",
    samples_per_task: int = 1,
    sampling_params: SamplingParams | None = None,
    seed: int = 0,
    max_steps: int = 64,
) -> EvaluationResult:
    """Play held-out tasks with a policy and sum up.

    Args:
        policy: Plays, with the adapter that is set.
        env_id: A Gymnasium id with text observations and actions.
        n: Different tasks; None takes all rows of a data set, else 512.
        env_kwargs: Arguments of the environment.
        dataset: A file or a registered name whose rows are the tasks; None draws the
            environment's own.
        split: Part of a registered data set, or of the tasks that the environment draws.
        samples_per_task: Episodes of each task.
        sampling_params: How tokens are drawn; None takes the policy's.
        seed: Fixes all sampling.
        max_steps: Most turns of an episode.

    Raises:
        UserError: Something named is not there, or out of range.
    """
    tasks, env_args = env_tasks(
        env_id, env_kwargs=env_kwargs, dataset=dataset, split=split, num_tasks=n
    )
    with policy.execution_engine(
        env_class=GymEnv, env_args=env_args, max_steps=max_steps
    ) as engine:
        return policy.run(
            evaluate_tasks(
                engine,
                tasks,
                samples_per_task=samples_per_task,
                sampling=sampling_params or policy.sampling_params,
                seed=seed,
            )
        )
