"""``rllm/IFEval-v0``: a request with instructions that a program can check."""

from functools import lru_cache
from pathlib import Path

from rllm_envs.core import Response
from rllm_envs.errors import DatasetError, EnvArgumentError, TaskError, excerpt
from rllm_envs.instruction_rewards import ifeval_reward_fn, instructions_of
from rllm_envs.language.instruction_drafts import MAX_INSTRUCTIONS, draft_task
from rllm_envs.language.instruction_writer import write_response
from rllm_envs.parsing import strip_thoughts
from rllm_envs.registry import load_rows
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import ID_FIELDS, Dataset, Task

MAX_QUESTION_LENGTH = 65_000


class IFEvalEnv(SingleTurnEnv):
    r"""Write a response that follows every instruction of a request, in one turn.

    ## Description
    A request asks for a text and gives instructions on its form that a program can check: numbers
    of words, sentences, paragraphs, bullets or highlights; words to use or to avoid; letter case,
    language, JSON, a title, a postscript, first and last words, no commas. Without ``dataset=``
    requests are made up; with it they are the rows of a file, of a registered data set, or IFEval
    itself.

    ## Action Space
    Any text. All of it but ``<think>...</think>`` is the response, so no ``\boxed{}`` is used.

    ## Observation Space
    The request with its instructions. The last observation is empty.

    ## Starting State
    A kind of text, a topic and ``num_instructions`` of 25 kinds of instructions with random
    arguments, of which one at least asks for something to be done; requests that the oracle cannot
    follow are drawn again. Or a row of the data set.

    ## Rewards
    1 if all instructions are followed, 0 otherwise; with ``partial_credit`` the share of them that
    are followed. What is written is not judged otherwise.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success`` (all are followed), ``invalid`` (nothing but thoughts), ``share`` (of the
    instructions followed, 0 to 1), ``num_followed``, ``turn``, ``turns_left``.

    ## Arguments
    ``dataset`` (a JSONL or JSON file, a registered name, or "ifeval"; default None),
    ``num_instructions`` (1 to 6, of made-up requests; default 2), ``partial_credit`` (default
    False), ``split`` ("train", "test" or "all": of the made-up requests, or the split of a data
    set; a file is used whole).
    Task: ``{"question": ..., "instruction_id_list": [...], "kwargs": [{...}, ...]}``; names and
    arguments are those of ``rllm_envs.grading.instructions.checks.CHECKS``. ``rllm/IFEvalHard-v0``
    has 5 instructions. The oracle follows whatever it can of a given request.

    ## References
    Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models".

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        dataset: str | Path | None = None,
        num_instructions: int | None = None,
        partial_credit: bool = False,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        count = 2 if num_instructions is None else num_instructions
        is_whole = isinstance(count, int) and not isinstance(count, bool)
        if not is_whole or not 1 <= count <= MAX_INSTRUCTIONS:
            raise EnvArgumentError(
                f"num_instructions must be in 1 to {MAX_INSTRUCTIONS}, got {count!r:.80}"
            )
        if not isinstance(partial_credit, bool):
            raise EnvArgumentError(f"partial_credit must be a bool, got {partial_credit!r:.80}")
        if dataset is not None and num_instructions is not None:
            raise EnvArgumentError("give dataset or num_instructions, not both")
        self.num_instructions = count
        self.partial_credit = partial_credit
        self._tasks: tuple[Task, ...] = ()
        if dataset is not None:
            self._tasks = _tasks_of(load_rows(dataset, split))
            self.is_generated = False

    def generate_task(self) -> Task:
        """Return a made-up request, or a row of the data set."""
        if self._tasks:
            return self._tasks[int(self.np_random.integers(len(self._tasks)))]
        return draft_task(self.np_random, self.num_instructions)

    def validate_task(self, task: Task) -> Task:
        """Check the request and its instructions.

        Raises:
            TaskError: One of them is missing or wrong.
        """
        return _checked_task(task)

    def respond(self, action: str) -> Response:
        """Check the instructions and end the episode."""
        output = ifeval_reward_fn(self._current, action)
        share = float(output.metadata["share"])
        info = {
            "success": output.is_correct,
            "invalid": not strip_thoughts(action).strip(),
            "share": share,
            "num_followed": sum(output.metadata["followed"]),
        }
        reward = share if self.partial_credit else output.reward
        return Response("", reward, terminated=True, info=info)

    def oracle_action(self) -> str:
        """Return a text that follows the instructions of any made-up request."""
        return write_response(instructions_of(self._current))


@lru_cache(maxsize=8)
def _tasks_of(dataset: Dataset) -> tuple[Task, ...]:
    tasks = []
    for number, row in enumerate(dataset, start=1):
        source = f"{dataset.name}, row {number}"
        try:
            tasks.append(_checked_task(row) | {"source": source})
        except TaskError as error:
            raise DatasetError(f"{source}: {error}") from None
    return tuple(tasks)


def _checked_task(row: Task) -> Task:
    question = row.get("question") or row.get("prompt")
    if not isinstance(question, str) or not question.strip():
        raise TaskError(f"'question' must be text, got {excerpt(question)}")
    if len(question) > MAX_QUESTION_LENGTH:
        raise TaskError(
            f"'question' has {len(question)} characters, more than {MAX_QUESTION_LENGTH}"
        )
    instructions = instructions_of(row)
    return {
        "question": question,
        "instruction_id_list": [name for name, _ in instructions],
        "kwargs": [arguments for _, arguments in instructions],
    } | {name: row[name] for name in ID_FIELDS if row.get(name) is not None}
