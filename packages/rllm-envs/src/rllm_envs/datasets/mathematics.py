"""Mathematical benchmarks: rows with a problem and an answer that is compared by its value.

Tasks are ``{"question": ..., "answer": ...}``, where ``answer`` is text, and ``id`` where the row
has one.
"""

from rllm_envs.datasets.benchmark import Benchmark, Row
from rllm_envs.datasets.fields import (
    MAX_ANSWER_LENGTH,
    answer_of,
    id_of,
    listed,
    optional_text,
    text_of,
)
from rllm_envs.errors import DatasetError, excerpt
from rllm_envs.parsing import last_boxed
from rllm_envs.tasks import Task

_IDS = ("id", "unique_id", "ID", "problem_idx")
_UNGRADED = frozenset({"", "proof", "notfound"})
"""What NuminaMath writes where there is no answer to compare."""
_MATH_REWARD = "rllm_envs.rewards:math_reward_fn"


def problem_and_answer(row: Row) -> Task:
    """Return the task of a row with a question or problem and its answer."""
    question = text_of(row, "problem", "question", "Problem")
    return {"question": question, "answer": answer_of(row, "answer", "Answer")} | id_of(row, *_IDS)


def gsm8k_task(row: Row) -> Task:
    """Return the task of a row whose answer is a worked solution that ends in ``#### number``."""
    solution = text_of(row, "answer")
    answer = solution.rpartition("####")[2].strip()
    if "####" not in solution or not answer or len(answer) > MAX_ANSWER_LENGTH:
        raise DatasetError(f"field 'answer' must end in '#### number', got {excerpt(solution)}")
    return {"question": text_of(row, "question"), "answer": answer} | id_of(row, *_IDS)


def boxed_solution_task(row: Row) -> Task | None:
    r"""Return the task of a row whose solution boxes the answer; None where nothing is boxed."""
    question = text_of(row, "problem", "prompt")
    box = last_boxed(text_of(row, "solution", limit=1 << 20))
    if box is None or not box.strip() or len(box) > MAX_ANSWER_LENGTH:
        return None
    return {"question": question, "answer": box.strip()} | id_of(row, *_IDS)


def numina_task(row: Row) -> Task | None:
    """Return the task of a row of NuminaMath-1.5; None for proofs and where no answer is given."""
    answer = optional_text(row, "answer", limit=1 << 20).strip()
    if answer.lower() in _UNGRADED or len(answer) > MAX_ANSWER_LENGTH:
        return None
    return {"question": text_of(row, "problem"), "answer": answer}


def olympiad_task(row: Row) -> Task | None:
    """Return the task of a row of OlympiadBench; None where it has no final answer."""
    answers = listed(row.get("final_answer"))
    if not answers:
        return None
    if not isinstance(answers, list) or not all(isinstance(a, str) for a in answers):
        raise DatasetError(f"field 'final_answer' must be a list of texts, got {excerpt(answers)}")
    answer = ", ".join(part.strip().strip("$") for part in answers)
    context = optional_text(row, "context")
    question = text_of(row, "question")
    question = f"{context}\n{question}" if context else question
    return {"question": question, "answer": answer} | id_of(row, *_IDS)


def prompt_and_solution(row: Row) -> Task:
    """Return the task of a row whose ``solution`` is the bare answer."""
    return {"question": text_of(row, "prompt"), "answer": answer_of(row, "solution")}


def svamp_task(row: Row) -> Task:
    """Return the task of a row of SVAMP, whose problem is in two parts."""
    body = text_of(row, "Body").strip()
    joint = " " if body.endswith((".", ",", "?", "!")) else ". "
    question = f"{body}{joint}{text_of(row, 'Question').strip()}"
    return {"question": question, "answer": answer_of(row, "Answer")} | id_of(row, *_IDS)


def _math(name: str, hub_id: str, **fields: object) -> Benchmark:
    given = {"to_task": problem_and_answer, "splits": {"test": "test"}} | fields
    return Benchmark(
        name=name,
        hub_id=hub_id,
        env_id="rllm/Math-v0",
        reward=_MATH_REWARD,
        metric="accuracy",
        **given,  # type: ignore[arg-type]
    )


MATH_BENCHMARKS = (
    _math(
        "gsm8k",
        "openai/gsm8k",
        config="main",
        splits={"train": "train", "test": "test"},
        to_task=gsm8k_task,
        licence="mit",
        num_rows={"train": 7473, "test": 1319},
    ),
    _math("math500", "HuggingFaceH4/MATH-500", num_rows={"test": 500}, aliases=("math_500",)),
    _math(
        "math",
        "DigitalLearningGmbH/MATH-lighteval",
        splits={"train": "train", "test": "test"},
        to_task=boxed_solution_task,
        licence="mit",
        num_rows={"train": 7500, "test": 5000},
        aliases=("hendrycks_math",),
    ),
    _math(
        "aime2024",
        "HuggingFaceH4/aime_2024",
        splits={"test": "train"},
        num_rows={"test": 30},
        aliases=("aime_2024", "aime24"),
    ),
    _math("aime2025", "math-ai/aime25", num_rows={"test": 30}, aliases=("aime_2025", "aime25")),
    _math(
        "amc",
        "AI-MO/aimo-validation-amc",
        splits={"test": "train"},
        licence="apache-2.0",
        num_rows={"test": 83},
        aliases=("aimo_validation_amc",),
    ),
    _math("amc23", "math-ai/amc23", num_rows={"test": 40}, aliases=("amc_2023", "amc2023")),
    _math("minerva_math", "math-ai/minervamath", num_rows={"test": 272}, aliases=("minerva",)),
    _math(
        "olympiadbench",
        "Hothan/OlympiadBench",
        config="OE_TO_maths_en_COMP",
        splits={"test": "train"},
        to_task=olympiad_task,
        licence="apache-2.0",
        num_rows={"test": 674},
        aliases=("olympiad_bench",),
    ),
    _math(
        "omni_math",
        "KbsdJames/Omni-MATH",
        licence="apache-2.0",
        num_rows={"test": 4428},
    ),
    _math(
        "hmmt_feb_2025",
        "MathArena/hmmt_feb_2025",
        splits={"test": "train"},
        licence="cc-by-nc-sa-4.0",
        num_rows={"test": 30},
        aliases=("hmmt", "hmmt25"),
    ),
    _math(
        "svamp",
        "ChilleD/SVAMP",
        splits={"train": "train", "test": "test"},
        to_task=svamp_task,
        licence="mit",
        num_rows={"train": 700, "test": 300},
    ),
    _math(
        "deepscaler",
        "agentica-org/DeepScaleR-Preview-Dataset",
        splits={"train": "train"},
        licence="mit",
        aliases=("deepscaler_math",),
    ),
    _math(
        "numina",
        "AI-MO/NuminaMath-1.5",
        splits={"train": "train"},
        to_task=numina_task,
        licence="apache-2.0",
        aliases=("numina_math", "numinamath_1.5"),
    ),
    _math(
        "numina_cot",
        "AI-MO/NuminaMath-CoT",
        splits={"train": "train", "test": "test"},
        to_task=boxed_solution_task,
        licence="apache-2.0",
        aliases=("numinamath_cot",),
    ),
    _math(
        "dapo_math",
        "open-r1/DAPO-Math-17k-Processed",
        config="en",
        splits={"train": "train"},
        to_task=prompt_and_solution,
        aliases=("dapo_math_17k",),
    ),
)
"""The mathematical benchmarks."""
