import pytest

from rllm_envs import TaskError
from rllm_envs.reasoning.draws import draw_integer
from rllm_envs.reasoning.fields import integer_field
from rllm_envs.reasoning.solved import SolvedEnv


class DoubleEnv(SolvedEnv):
    """Double a number; zero has no answer here."""

    def draw(self):
        return {"number": draw_integer(self.np_random, 1, 99)}

    def check(self, task):
        integer_field(task, "number", 0, 99)

    def question(self, task):
        return f"Double {task['number']}."

    def solve(self, task):
        if task["number"] == 0:
            raise TaskError("zero has no answer")
        return str(2 * task["number"])

    def grade(self, task, answer):
        return answer.strip().lstrip("0") == task["answer"]


def test_drawn_tasks_hold_the_worked_out_answer():
    env = DoubleEnv()
    observation, _ = env.reset(seed=0)
    number = env.task["number"]
    assert observation == f"Double {number}."
    assert env.task == {"number": number, "answer": str(2 * number)}
    assert env.step(env.oracle_action())[1] == 1.0


@pytest.mark.parametrize("given", [{}, {"answer": "14"}, {"answer": "014"}])
def test_a_given_task_gets_the_oracles_spelling_of_its_answer(given):
    env = DoubleEnv()
    env.reset(options={"task": {"number": 7, "note": "kept", **given}})
    assert env.task == {"number": 7, "note": "kept", "answer": "14"}


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({"number": 7, "answer": "15"}, "the answer '15' is not right; '14' is"),
        ({"number": 7, "answer": 14}, "the answer 14 is not right"),
        ({"number": 100}, "'number' must be an integer"),
        ({"number": 0}, "zero has no answer"),
    ],
)
def test_given_tasks_are_checked_and_solved(task, reason):
    with pytest.raises(TaskError, match=reason):
        DoubleEnv().reset(options={"task": task})
