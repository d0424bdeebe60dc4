import pytest

from rllm_envs import SingleTurnEnv, TaskError, check_text_env


class ReverseEnv(SingleTurnEnv):
    """Spell a word backwards."""

    def generate_task(self):
        word = "".join(self.np_random.choice(list("abcdefgh"), size=5))
        question = f"Spell {word} backwards. Give the answer in \\boxed{{}}."
        return {"question": question, "answer": word[::-1]}


class CloseEnv(ReverseEnv):
    """Pays half for the right letters in a wrong order."""

    def grade(self, task, answer):
        if answer == task["answer"]:
            return 1.0
        return 0.5 if sorted(answer) == sorted(task["answer"]) else 0.0


def test_three_lines_make_an_environment_that_keeps_the_contract():
    check_text_env(ReverseEnv())


def test_the_boxed_answer_is_compared_as_text():
    env = ReverseEnv()
    env.reset(options={"task": {"question": "Spell abc backwards.", "answer": "cba"}})
    observation, reward, terminated, truncated, info = env.step(r"It is \boxed{ cba }.")
    assert (observation, reward, terminated, truncated) == ("", 1.0, True, False)
    assert info == {"success": True, "invalid": False, "turn": 1, "turns_left": 0}


def test_an_action_without_a_box_is_invalid_and_ends_the_episode():
    env = ReverseEnv()
    env.reset(seed=0)
    _, reward, terminated, _, info = env.step("cba")
    assert (reward, terminated, info["invalid"], info["success"]) == (0.0, True, True, False)


def test_a_grade_between_zero_and_one_is_no_success():
    env = CloseEnv()
    env.reset(options={"task": {"question": "?", "answer": "ab"}})
    _, reward, _, _, info = env.step(r"\boxed{ba}")
    assert (reward, info["success"]) == (0.5, False)


@pytest.mark.parametrize("task", [{"question": "?"}, {"question": 3, "answer": "x"}])
def test_a_task_without_question_or_answer_is_refused(task):
    with pytest.raises(TaskError, match="needs the text"):
        ReverseEnv().reset(options={"task": task})
