"""The table of environments, one line each, and their entry into Gymnasium's registry."""

from dataclasses import dataclass, field
from typing import Any

import gymnasium


@dataclass(frozen=True, slots=True)
class EnvEntry:
    """One registered environment. Written in ``CATALOG``, read by registration and the listing."""

    id: str
    """Gymnasium id."""
    entry_point: str
    """Class as "module:name", so that nothing is imported before it is made."""
    summary: str
    """What the agent does, in a few words."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Registered arguments: names and numbers, never data, because Gymnasium copies them."""
    reward_threshold: float | None = 1.0
    """Mean reward at which the task counts as solved."""
    nondeterministic: bool = False
    """Whether equal seeds may differ: only for tasks that ask a live service."""
    extra: str = ""
    """The extra of rllm-envs that it needs, such as "data"; empty where it needs none."""

    @property
    def category(self) -> str:
        """The folder that the environment is in: "reasoning", "puzzles", "tool_use", ..."""
        return self.entry_point.split(".")[1]


CATALOG = (
    EnvEntry(
        "rllm/Arithmetic-v0",
        "rllm_envs.reasoning.arithmetic:ArithmeticEnv",
        "add and subtract integers, one turn",
    ),
    EnvEntry(
        "rllm/Math-v0",
        "rllm_envs.reasoning.math_problem:MathEnv",
        "small maths problems, or any data set of questions and answers, one turn",
    ),
    EnvEntry(
        "rllm/MathRetry-v0",
        "rllm_envs.reasoning.math_retry:MathRetryEnv",
        "the problems of Math-v0 with several attempts, told when an answer is not right",
    ),
    EnvEntry(
        "rllm/Calculator-v0",
        "rllm_envs.tool_use.calculator:CalculatorEnv",
        "multiply with a calculator at hand, a few turns",
    ),
    EnvEntry(
        "rllm/PythonCode-v0",
        "rllm_envs.coding.python_code:PythonCodeEnv",
        "write a small Python function, checked by hidden tests, one turn",
    ),
    EnvEntry(
        "rllm/PythonCodeHard-v0",
        "rllm_envs.coding.python_code:PythonCodeEnv",
        "write a Python function of five steps, one turn",
        kwargs={"num_steps": 5, "num_tests": 12},
    ),
    EnvEntry(
        "rllm/CodeRepair-v0",
        "rllm_envs.coding.code_repair:CodeRepairEnv",
        "mend a function with one wrong step, with feedback, a few turns",
    ),
    EnvEntry(
        "rllm/Code-v0",
        "rllm_envs.coding.code_problem:CodeEnv",
        "programming problems of a data set, graded by their tests, one turn",
    ),
    EnvEntry(
        "rllm/MCQ-v0",
        "rllm_envs.language.mcq:MCQEnv",
        "multiple-choice questions, made up or of a data set, one turn",
    ),
    EnvEntry(
        "rllm/MCQHard-v0",
        "rllm_envs.language.mcq:MCQEnv",
        "multiple-choice questions of ten choices, one turn",
        kwargs={"num_choices": 10},
    ),
    EnvEntry(
        "rllm/QA-v0",
        "rllm_envs.language.qa:QAEnv",
        "questions with short answers, about a made-up text or of a data set, one turn",
    ),
    EnvEntry(
        "rllm/QAHard-v0",
        "rllm_envs.language.qa:QAEnv",
        "questions that chain three facts of a longer text, one turn",
        kwargs={"hops": 3, "num_people": 24},
    ),
    EnvEntry(
        "rllm/SearchQA-v0",
        "rllm_envs.tool_use.search_qa:SearchQAEnv",
        "questions with short answers to be searched in a corpus, made up or of files",
    ),
    EnvEntry(
        "rllm/IFEval-v0",
        "rllm_envs.language.ifeval:IFEvalEnv",
        "follow two checkable instructions on a text, or those of IFEval, one turn",
    ),
    EnvEntry(
        "rllm/IFEvalHard-v0",
        "rllm_envs.language.ifeval:IFEvalEnv",
        "follow five checkable instructions on a text, one turn",
        kwargs={"num_instructions": 5},
    ),
    EnvEntry(
        "rllm/TextArena-v0",
        "rllm_envs.adapters.text_arena:TextArenaEnv",
        "games of the library textarena, alone or against an opponent",
        extra="textarena",
    ),
)
"""All environments of this package."""


def register_catalog() -> None:
    """Register each environment of the catalog that is not registered yet."""
    for entry in CATALOG:
        # Registering twice warns, and a user may have replaced an entry on purpose.
        if entry.id not in gymnasium.registry:
            gymnasium.register(
                entry.id,
                entry_point=entry.entry_point,
                kwargs=dict(entry.kwargs),
                reward_threshold=entry.reward_threshold,
                nondeterministic=entry.nondeterministic,
            )
