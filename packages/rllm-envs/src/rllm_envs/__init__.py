"""Text tasks for language agents as registered Gymnasium environments.

Importing this package registers the environments; it loads gymnasium and numpy and nothing else.
"""

from rllm_envs.catalog import CATALOG, EnvEntry, register_catalog
from rllm_envs.checker import check_text_env
from rllm_envs.core import BaseEnv, Response, TextEnv
from rllm_envs.countdown_rewards import countdown_reward_fn
from rllm_envs.errors import (
    ContractError,
    DatasetError,
    DatasetNotFoundError,
    EnvArgumentError,
    EpisodeError,
    GradingError,
    InfrastructureError,
    MissingDependencyError,
    ReferenceAnswerError,
    RllmEnvsError,
    TaskError,
    ToolError,
    UnknownEnvError,
)
from rllm_envs.gym_env import GymEnv, seed_tasks
from rllm_envs.multi_turn import MultiTurnEnv
from rllm_envs.registry import DatasetRegistry, load_rows
from rllm_envs.rewards import RewardOutput, math_reward_fn
from rllm_envs.search_rewards import f1_reward_fn, search_reward_fn
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.spaces import UnicodeText
from rllm_envs.tasks import Dataset, Task, task_split
from rllm_envs.tool_use.tool_environment import ToolEnvironment
from rllm_envs.tools import (
    CalculatorTool,
    FilesTool,
    LocalRetrievalTool,
    MCPTools,
    PythonTool,
    SqlTool,
    Tool,
    ToolOutput,
)
from rllm_envs.turn_environments import MultiTurnEnvironment, SingleTurnEnvironment

__all__ = [
    "CATALOG",
    "BaseEnv",
    "CalculatorTool",
    "ContractError",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "DatasetRegistry",
    "EnvArgumentError",
    "EnvEntry",
    "EpisodeError",
    "FilesTool",
    "GradingError",
    "GymEnv",
    "InfrastructureError",
    "LocalRetrievalTool",
    "MCPTools",
    "MissingDependencyError",
    "MultiTurnEnv",
    "MultiTurnEnvironment",
    "PythonTool",
    "ReferenceAnswerError",
    "Response",
    "RewardOutput",
    "RllmEnvsError",
    "SingleTurnEnv",
    "SingleTurnEnvironment",
    "SqlTool",
    "Task",
    "TaskError",
    "TextEnv",
    "Tool",
    "ToolEnvironment",
    "ToolError",
    "ToolOutput",
    "UnicodeText",
    "UnknownEnvError",
    "check_text_env",
    "countdown_reward_fn",
    "f1_reward_fn",
    "load_rows",
    "math_reward_fn",
    "search_reward_fn",
    "seed_tasks",
    "task_split",
]

register_catalog()
