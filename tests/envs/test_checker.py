import random

import gymnasium
import pytest

from rllm_envs import ContractError, Response, SingleTurnEnv, TextEnv, check_text_env


class GoodEnv(SingleTurnEnv):
    """Copy a number."""

    def generate_task(self):
        number = str(self.np_random.integers(10**6))
        return {"question": f"Copy {number} into a box.", "answer": number}


class GlobalRandomEnv(GoodEnv):
    """Takes its task from the process-wide generator."""

    def generate_task(self):
        number = str(random.randrange(10**6))
        return {"question": f"Copy {number} into a box.", "answer": number}


class WrongOracleEnv(GoodEnv):
    """Its oracle does not know the answer."""

    def oracle_action(self):
        return r"\boxed{no}"


class RaisingEnv(GoodEnv):
    """Reads every answer as a number."""

    def grade(self, task, answer):
        return int(answer) == int(task["answer"])


class ChangingInfoEnv(GoodEnv):
    """Gives one info key two types."""

    def respond(self, action):
        response = super().respond(action)
        score = 1 if response.reward else "none"
        return Response("", response.reward, True, info={**response.info, "score": score})


class TaskChangingEnv(GoodEnv):
    """Shows a given task differently."""

    def validate_task(self, task):
        return {**task, "question": "Something else."}


class DiceEnv(TextEnv):
    """Shares a generator between instances."""

    shared = random.Random(0)

    def generate_task(self):
        return {"n": int(self.np_random.integers(10**6))}

    def begin(self, task):
        return f"{task['n']} {self.shared.random()}"

    def respond(self, action):
        return Response("", 1.0, True)

    def oracle_action(self):
        return "x"


def test_a_good_env_passes():
    check_text_env(GoodEnv())


@pytest.mark.parametrize(
    ("env_class", "reason"),
    [
        (GlobalRandomEnv, "seed 0 gives another episode"),
        (DiceEnv, "another episode"),
        (WrongOracleEnv, "the mean reward 0"),
        (RaisingEnv, r"step\(.*raises ValueError"),
        (ChangingInfoEnv, r"info\['score'\]"),
        (TaskChangingEnv, "shows 'Something else.'"),
    ],
)
def test_each_broken_rule_is_named(env_class, reason):
    with pytest.raises(ContractError, match=reason):
        check_text_env(env_class())


def test_an_env_of_another_kind_is_refused():
    with pytest.raises(ContractError, match="not a subclass"):
        check_text_env(gymnasium.make("CartPole-v1"))
