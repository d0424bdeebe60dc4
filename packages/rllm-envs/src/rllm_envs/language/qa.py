"""``rllm/QA-v0``: questions whose answer is a few words."""

from pathlib import Path

from rllm_envs.core import Response
from rllm_envs.errors import EnvArgumentError
from rllm_envs.language.short_answers import (
    check_metric,
    check_whole,
    checked_task,
    judge,
    tasks_of,
)
from rllm_envs.language.worlds import MAX_HOPS, passages_of, random_question, random_world
from rllm_envs.registry import load_rows
from rllm_envs.single_turn import SingleTurnEnv
from rllm_envs.tasks import Task

INSTRUCTION = "Give the answer, as few words as possible, in \\boxed{}."


class QAEnv(SingleTurnEnv):
    r"""Answer a question in a few words in one turn.

    ## Description
    Without ``dataset=`` the agent reads a text about invented people, companies and towns, and a
    question that chains some of its facts. With it the questions are the rows of a file, of a
    registered data set or of a public one, such as SQuAD or TriviaQA.

    ## Action Space
    Any text. The last complete ``\boxed{...}`` outside of ``<think>...</think>`` is the answer;
    without one the last ``<answer>...</answer>`` or what follows the last "the answer is".

    ## Observation Space
    The text, the question, and ``Give the answer, as few words as possible, in \boxed{}.`` The last
    observation is empty.

    ## Starting State
    A world of ``num_people`` records of people, half as many towns and a third as many companies,
    in random order; a chain of ``hops`` facts that passes no record twice. Or a row of the data
    set. All uniform.

    ## Rewards
    With ``metric="exact"`` 1 where the answer equals a reference but for case, punctuation and
    articles, 0 otherwise. With ``metric="f1"`` the F1 over words, the best over the references.

    ## Episode End
    Terminates after one action.

    ## Information
    ``success`` (an exact match), ``invalid`` (no answer in the action), ``outcome`` ("", then
    "correct", "partial" from an F1 of 0.3 on, "wrong" or "no_answer"), ``f1``, ``turn``,
    ``turns_left``.

    ## Arguments
    ``dataset`` (a JSONL or JSON file, a registered name, or one of ``rllm_envs.datasets``; default
    None), ``metric`` ("exact" or "f1"), ``hops`` (1 to 4, default 2) and ``num_people`` (4 to 60,
    default 6) of made-up texts, ``split`` ("train", "test" or "all": of the made-up texts, or the
    split of a data set; a file is used whole).
    Task: ``{"question": ..., "answer": ...}``, where the answer is text or a list of equally right
    ones. ``rllm/QAHard-v0`` has 3 facts in a text of 24 people.

    ## References
    Rajpurkar et al. 2016, "SQuAD: 100,000+ Questions for Machine Comprehension of Text".

    ## Version History
    * v0: Initial version
    """

    def __init__(
        self,
        *,
        dataset: str | Path | None = None,
        metric: str = "exact",
        hops: int | None = None,
        num_people: int | None = None,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(split=split, render_mode=render_mode)
        check_metric(metric)
        if dataset is not None and (hops is not None or num_people is not None):
            raise EnvArgumentError("give dataset, or hops and num_people, not both")
        self.metric = metric
        self.hops = 2 if hops is None else hops
        self.num_people = 6 if num_people is None else num_people
        check_whole("hops", self.hops, 1, MAX_HOPS)
        check_whole("num_people", self.num_people, 4, 60)
        self._tasks: tuple[Task, ...] = ()
        if dataset is not None:
            self._tasks = tasks_of(load_rows(dataset, split))
            self.is_generated = False

    def generate_task(self) -> Task:
        """Return a text with a question, or a row of the data set."""
        if self._tasks:
            return self._tasks[int(self.np_random.integers(len(self._tasks)))]
        world = random_world(self.np_random, self.num_people)
        asked = random_question(self.np_random, world, self.hops)
        passages = passages_of(world)
        order = self.np_random.permutation(len(passages))
        text = "\n".join(passages[int(i)]["text"] for i in order)
        return {"question": f"{text}\n\nQuestion: {asked.question}", "answer": [asked.answer]}

    def validate_task(self, task: Task) -> Task:
        """Check question and answer.

        Raises:
            TaskError: One of them is missing or wrong.
        """
        return checked_task(task)

    def question(self, task: Task) -> str:
        """Return the question with the instruction."""
        return f"{task['question']}\n{INSTRUCTION}"

    def respond(self, action: str) -> Response:
        """Grade the answer and end the episode."""
        reward, info = judge(self._current, action, self.metric)
        return Response("", reward, terminated=True, info=info)

    def oracle_action(self) -> str:
        r"""Return the first reference in ``\boxed{}``."""
        return f"\\boxed{{{self._current['answer'][0]}}}"
