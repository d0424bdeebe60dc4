import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.puzzles.bandit import GAP, BanditEnv

TASK = {"names": ["red", "blue", "gold"], "percent": [80, 40, 0]}


def start(**arguments):
    env = BanditEnv(**arguments)
    return env, env.reset(seed=0, options={"task": TASK})[0]


def test_the_first_observation_names_the_machines_and_not_their_chances():
    _, observation = start()
    assert "red, blue, gold" in observation
    assert "80" not in observation


def test_the_reward_is_the_mean_chance_over_the_best_chance():
    env, _ = start(max_turns=4)
    for action in (r"\boxed{red}", r"\boxed{Blue}", "nothing"):
        assert env.step(action)[1:4] == (0.0, False, False)
    _, reward, terminated, truncated, info = env.step(r"\boxed{ red }")
    # (80 + 40 + 0 + 80) / (4 * 80)
    assert reward == pytest.approx(0.625)
    assert (terminated, truncated, info["success"]) == (True, False, False)


def test_playing_the_best_in_more_than_half_of_the_turns_is_success():
    env, _ = start(max_turns=3)
    env.step(r"\boxed{gold}")
    env.step(r"\boxed{red}")
    _, reward, _, _, info = env.step(r"\boxed{red}")
    assert reward == pytest.approx(2 / 3)
    assert info["success"] is True


def test_machines_win_as_often_as_their_chance_says():
    env, _ = start(max_turns=1000)
    for _ in range(400):
        assert env.step(r"\boxed{gold}")[0].startswith("gold: lost.")
    assert env.step("?")[4]["wins"] == 0
    for _ in range(500):
        _, _, _, _, info = env.step(r"\boxed{red}")
    # Four standard deviations of a binomial of 500 and 0.8 are 36.
    assert abs(info["wins"] - 400) < 36


def test_other_text_is_invalid_and_costs_a_play():
    env, _ = start()
    observation, _, _, _, info = env.step(r"\boxed{green}")
    assert observation == (
        r"Write the name of a machine in a box, such as \boxed{red}. Plays left: 19."
    )
    assert (info["invalid"], info["success"], info["turns_left"]) == (True, False, 19)


def test_drawn_machines_have_one_best_with_a_gap():
    env = BanditEnv(num_arms=5)
    for seed in range(50):
        env.reset(seed=seed)
        *others, best = sorted(env.task["percent"])
        assert 60 <= best <= 95
        assert others[-1] <= best - GAP
        assert others[0] >= 5
        assert len(set(env.task["names"])) == 5


@pytest.mark.parametrize(
    "task",
    [
        {},
        {"names": ["red"], "percent": [50]},
        {"names": ["red", "red"], "percent": [50, 40]},
        {"names": ["red", "Blue"], "percent": [50, 40]},
        {"names": ["red", "blue"], "percent": [50]},
        {"names": ["red", "blue"], "percent": [50, 101]},
        {"names": ["red", "blue"], "percent": [0, 0]},
    ],
)
def test_tasks_that_cannot_be_played_are_refused(task):
    with pytest.raises(TaskError):
        BanditEnv().reset(options={"task": task})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_arms"):
        BanditEnv(num_arms=1)
