"""Judging a policy: which tasks, how often each, what comes out, and episodes for people to read.

`rllm eval` and training runs go through `evaluate_tasks`; `evaluate` judges an `LLMPolicy`,
`evaluate_match` the players of a game. The
oracle replaces the policy by the answers that an environment knows itself, so that tasks and
grading can be checked without a model.
"""

from rllm_agents.evaluation.episode_files import write_episodes
from rllm_agents.evaluation.matches import MatchResult, Standing, evaluate_match, match_score
from rllm_agents.evaluation.oracle import OracleEnv, oracle_misses
from rllm_agents.evaluation.policies import evaluate
from rllm_agents.evaluation.results import (
    EvaluationResult,
    evaluate_tasks,
    evaluation_requests,
    summarize,
)
from rllm_agents.evaluation.tasks import DEFAULT_NUM_TASKS, env_takes, env_tasks

__all__ = [
    "DEFAULT_NUM_TASKS",
    "EvaluationResult",
    "MatchResult",
    "OracleEnv",
    "Standing",
    "env_takes",
    "env_tasks",
    "evaluate",
    "evaluate_match",
    "evaluate_tasks",
    "evaluation_requests",
    "match_score",
    "oracle_misses",
    "summarize",
    "write_episodes",
]
