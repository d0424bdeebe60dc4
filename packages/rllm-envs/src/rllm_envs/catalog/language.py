"""Choices, short answers and instructions, and environments of other packages."""

from rllm_envs.catalog.entry import EnvEntry

LANGUAGE = (
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
