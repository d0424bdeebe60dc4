import copy

import pytest

from rllm_envs import (
    EnvArgumentError,
    EpisodeError,
    MultiTurnEnvironment,
    RewardOutput,
    SingleTurnEnvironment,
    math_reward_fn,
)

TASK = {"question": "47 * 83?", "answer": "3901", "tests": ["hidden"]}


class ThreeTries(MultiTurnEnvironment):
    """An answer is right or may be tried again."""

    def get_reward_and_next_obs(self, task, action):
        if action == task["answer"]:
            self.done = True
            return RewardOutput(1.0, True, {"how": "exact"}), {}
        return 0.0, {"question": f"{len(self.history)} wrong"}


class Bonus(ThreeTries):
    """Takes an argument of its own."""

    def __init__(self, task=None, bonus=0.5, max_turns=3):
        super().__init__(task, max_turns)
        self.bonus = bonus


def test_an_episode_of_several_turns():
    given = copy.deepcopy(TASK)
    env = ThreeTries(given, max_turns=3)
    observation, info = env.reset()
    assert (observation, info) == ({"question": "47 * 83?"}, {})
    assert env.step("a") == (
        {"question": "1 wrong"}, 0.0, False,
        {"response": "a", "metadata": {}, "is_correct": False},
    )  # fmt: skip
    assert env.step("3901") == (
        {}, 1.0, True, {"response": "3901", "metadata": {"how": "exact"}, "is_correct": True},
    )  # fmt: skip
    assert (env.current_turn, env.history) == (2, ["a", "3901"])
    with pytest.raises(EpisodeError):
        env.step("b")
    assert env.reset()[0] == {"question": "47 * 83?"} and env.history == []
    assert given == TASK


def test_spent_turns_end_the_episode():
    env = ThreeTries(TASK, max_turns=2)
    env.reset()
    assert [env.step("a")[2] for _ in range(2)] == [False, True]


def test_a_step_before_a_reset_is_refused():
    with pytest.raises(EpisodeError):
        ThreeTries(TASK).step("a")


def test_from_dict_takes_the_arguments_of_the_class_and_leaves_the_dict():
    fields = {**TASK, "bonus": 0.25, "max_turns": 5}
    before = copy.deepcopy(fields)
    env = Bonus.from_dict(fields)
    assert (type(env), env.bonus, env.max_turns, env.task) == (Bonus, 0.25, 5, TASK)
    assert fields == before
    assert ThreeTries.from_dict(TASK).max_turns == 3


def test_a_single_turn_is_graded_once():
    asked = []

    def reward_fn(task_info, action):
        asked.append((task_info, action))
        return math_reward_fn(task_info, action)

    env = SingleTurnEnvironment.from_dict({**TASK, "reward_fn": reward_fn})
    assert env.reset() == ({"question": "47 * 83?"}, {})
    observation, reward, done, info = env.step(r"\boxed{3901}")
    assert (observation, reward, done, info["is_correct"]) == ({}, 1.0, True, True)
    assert info["metadata"]["outcome"] == "correct"
    assert asked == [(TASK, r"\boxed{3901}")]
    env.reset()
    assert env.step("3901")[1] == 0.0


@pytest.mark.parametrize(
    ("given", "reward", "is_correct"), [(0.5, 0.5, True), (-1, -1.0, False), (True, 1.0, True)]
)
def test_a_number_is_a_reward(given, reward, is_correct):
    env = SingleTurnEnvironment(TASK, lambda task_info, action: given)
    env.reset()
    _, paid, _, info = env.step("x")
    assert (paid, type(paid), info["is_correct"]) == (reward, float, is_correct)


def test_what_is_no_reward_is_refused():
    env = SingleTurnEnvironment(TASK, lambda task_info, action: "good")
    env.reset()
    with pytest.raises(TypeError, match="must return a RewardOutput or a number, got 'good'"):
        env.step("x")


def test_without_a_reward_function_it_warns_and_pays_nothing():
    with pytest.warns(UserWarning, match="reward 0"):
        env = SingleTurnEnvironment(TASK)
    env.reset()
    assert env.step("x")[1] == 0.0


@pytest.mark.parametrize("arguments", [{"max_turns": 0}, {"max_turns": True}, {"task": [1]}])
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(EnvArgumentError):
        ThreeTries(**{"task": TASK, **arguments})
