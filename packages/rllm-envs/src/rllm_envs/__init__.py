"""Text tasks for language agents as registered Gymnasium environments.

Importing this package registers the environments; it loads gymnasium and numpy and nothing else.
The other names are imported on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from rllm_envs.catalog import CATALOG, EnvEntry, register_catalog
from rllm_envs.errors import (
    ContractError,
    DatasetError,
    DatasetNotFoundError,
    EnvArgumentError,
    EpisodeError,
    GradingError,
    MissingDependencyError,
    ReferenceAnswerError,
    RllmEnvsError,
    SandboxError,
    SandboxUnavailableError,
    TaskError,
    ToolError,
    UnknownEnvError,
)

if TYPE_CHECKING:
    from rllm_envs.checker import check_text_env
    from rllm_envs.choice_rewards import mcq_reward_fn
    from rllm_envs.code_rewards import CodeReward, code_reward_fn
    from rllm_envs.core import BaseEnv, Response, TextEnv
    from rllm_envs.countdown_rewards import countdown_reward_fn
    from rllm_envs.datasets import BENCHMARKS, Benchmark, load_benchmark
    from rllm_envs.gym_env import GymEnv, seed_tasks
    from rllm_envs.instruction_rewards import ifeval_reward_fn
    from rllm_envs.registry import DatasetRegistry, load_rows
    from rllm_envs.rewards import RewardOutput, math_reward_fn
    from rllm_envs.search_rewards import f1_reward_fn, search_reward_fn
    from rllm_envs.single_turn import SingleTurnEnv
    from rllm_envs.spaces import UnicodeText
    from rllm_envs.tasks import Dataset, Task, task_split
    from rllm_envs.tool_use.tool_environment import ToolEnvironment
    from rllm_envs.tools import CalculatorTool, LocalRetrievalTool, PythonTool, Tool, ToolOutput

__all__ = [
    "BENCHMARKS",
    "CATALOG",
    "BaseEnv",
    "Benchmark",
    "CalculatorTool",
    "CodeReward",
    "ContractError",
    "Dataset",
    "DatasetError",
    "DatasetNotFoundError",
    "DatasetRegistry",
    "EnvArgumentError",
    "EnvEntry",
    "EpisodeError",
    "GradingError",
    "GymEnv",
    "LocalRetrievalTool",
    "MissingDependencyError",
    "PythonTool",
    "ReferenceAnswerError",
    "Response",
    "RewardOutput",
    "RllmEnvsError",
    "SandboxError",
    "SandboxUnavailableError",
    "SingleTurnEnv",
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
    "code_reward_fn",
    "countdown_reward_fn",
    "f1_reward_fn",
    "ifeval_reward_fn",
    "load_benchmark",
    "load_rows",
    "math_reward_fn",
    "mcq_reward_fn",
    "search_reward_fn",
    "seed_tasks",
    "task_split",
]

_SOURCES = {
    **dict.fromkeys(("mcq_reward_fn",), "choice_rewards"),
    **dict.fromkeys(("BENCHMARKS", "Benchmark", "load_benchmark"), "datasets"),
    **dict.fromkeys(("ifeval_reward_fn",), "instruction_rewards"),
    **dict.fromkeys(("check_text_env",), "checker"),
    **dict.fromkeys(("CodeReward", "code_reward_fn"), "code_rewards"),
    **dict.fromkeys(("BaseEnv", "Response", "TextEnv"), "core"),
    **dict.fromkeys(("countdown_reward_fn",), "countdown_rewards"),
    **dict.fromkeys(("GymEnv", "seed_tasks"), "gym_env"),
    **dict.fromkeys(("DatasetRegistry", "load_rows"), "registry"),
    **dict.fromkeys(("RewardOutput", "math_reward_fn"), "rewards"),
    **dict.fromkeys(("f1_reward_fn", "search_reward_fn"), "search_rewards"),
    **dict.fromkeys(("SingleTurnEnv",), "single_turn"),
    **dict.fromkeys(("UnicodeText",), "spaces"),
    **dict.fromkeys(("Dataset", "Task", "task_split"), "tasks"),
    **dict.fromkeys(("ToolEnvironment",), "tool_use.tool_environment"),
    **dict.fromkeys(
        ("CalculatorTool", "LocalRetrievalTool", "PythonTool", "Tool", "ToolOutput"), "tools"
    ),
}
"""The file of each name that is imported on first use."""


def __getattr__(name: str) -> Any:
    if name not in _SOURCES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_SOURCES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_SOURCES})


register_catalog()
