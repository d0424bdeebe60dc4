"""Judging a policy: which tasks, how often each, what comes out, and episodes for people to read.

`rllm eval` and training runs go through `evaluate_tasks`; `evaluate` judges an `LLMPolicy`,
`evaluate_match` the players of a game. The
oracle replaces the policy by the answers that an environment knows itself, so that tasks and
grading can be checked without a model.
"""

from rllm_agents.evaluation.by_task import TaskFigures, task_figures, write_task_table
from rllm_agents.evaluation.episode_files import (
    episode_record,
    read_episodes,
    token_texts,
    write_episodes,
    write_records,
)
from rllm_agents.evaluation.episode_log import EpisodeLog, play_requests
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
from rllm_agents.evaluation.verl_batch import VerlBatch, to_verl_batch, write_verl_batch

__all__ = [
    "DEFAULT_NUM_TASKS",
    "EpisodeLog",
    "EvaluationResult",
    "MatchResult",
    "OracleEnv",
    "Standing",
    "TaskFigures",
    "VerlBatch",
    "env_takes",
    "env_tasks",
    "episode_record",
    "evaluate",
    "evaluate_match",
    "evaluate_tasks",
    "evaluation_requests",
    "match_score",
    "oracle_misses",
    "play_requests",
    "read_episodes",
    "summarize",
    "task_figures",
    "to_verl_batch",
    "token_texts",
    "write_episodes",
    "write_records",
    "write_task_table",
    "write_verl_batch",
]
