from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
import walk_envs  # registers the test environments
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

from rllm_envs import CATALOG, EnvArgumentError, EpisodeError, TaskError
from rllm_envs.spaces import UnicodeText
from rllm_envs.vector import TextVectorEnv
from rllm_envs.wrappers import DictObservation

MODES = ["SameStep", "NextStep", "Disabled"]
EXECUTORS = {"inline": {}, "threads": {"deadline": 60.0}, "processes": {"isolation": "process"}}
SEEDS = [5, 11, 2]


def walk_pool(num_envs=3, **arguments):
    return TextVectorEnv.from_ids(["test/Walk-v0"] * num_envs, **arguments)


def action_of(place, turn):
    return f"{place}.{turn}"


def plain_loop(mode, seed, place, num_steps):
    """What one environment does under an autoreset mode, written out without a pool."""
    env = gymnasium.make("test/Walk-v0")
    observation, info = env.reset(seed=seed)
    told = [(observation, 0.0, False, False, info)]
    is_over = False
    for turn in range(num_steps):
        if is_over and mode == "Disabled":
            told.append((told[-1][0], 0.0, False, False, {}))
            continue
        if is_over and mode == "NextStep":
            observation, info = env.reset()
            told.append((observation, 0.0, False, False, info))
            is_over = False
            continue
        observation, reward, terminated, truncated, info = env.step(action_of(place, turn))
        is_over = terminated or truncated
        if is_over and mode == "SameStep":
            first, first_info = env.reset()
            info = {**first_info, "final_obs": observation, "final_info": info}
            observation = first
        told.append((observation, reward, terminated, truncated, info))
    return told


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("mode", MODES)
def test_each_env_of_a_pool_does_what_it_does_alone(mode, executor):
    alone = [plain_loop(mode, seed, place, 12) for place, seed in enumerate(SEEDS)]
    assert sum(turn[2] or turn[3] for turns in alone for turn in turns) >= 3
    envs = walk_pool(autoreset_mode=mode, **EXECUTORS[executor])
    try:
        observations, _ = envs.reset(seed=SEEDS)
        zeros = np.zeros(3)
        told = [(observations, zeros, zeros, zeros, envs.infos_list)]
        for turn in range(12):
            batch = envs.step([action_of(place, turn) for place in range(3)])
            told.append((*batch[:4], envs.infos_list))
    finally:
        envs.close()
    for place in range(3):
        seen = [tuple(column[place] for column in columns) for columns in told]
        assert [turn[:4] for turn in seen] == [turn[:4] for turn in alone[place]]
        assert [turn[4] for turn in seen] == [{**turn[4], "env_id": place} for turn in alone[place]]


def test_make_vec_returns_the_pool_and_its_spec_makes_it_again():
    envs = gymnasium.make_vec(
        "rllm/Arithmetic-v0", num_envs=2, digits=1, autoreset_mode="NextStep", deadline=9
    )
    assert isinstance(envs, TextVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    again = gymnasium.make_vec(gymnasium.envs.registration.EnvSpec.from_json(envs.spec.to_json()))
    assert (again.num_envs, again.deadline) == (2, 9)
    assert again.reset(seed=4)[0] == envs.reset(seed=4)[0]
    assert again.get_attr("digits") == (1, 1)
    for pool in (envs, again):
        pool.close()


@pytest.mark.parametrize(
    "env_id", [e.id for e in CATALOG if not e.extra or find_spec(e.extra.replace("-", "_"))]
)
def test_every_env_of_the_catalog_plays_in_a_pool(env_id):
    envs = gymnasium.make_vec(env_id, num_envs=2, autoreset_mode="Disabled")
    singles = [gymnasium.make(env_id) for _ in range(2)]
    firsts = [env.reset(seed=3 + place)[0] for place, env in enumerate(singles)]
    assert list(envs.reset(seed=3)[0]) == firsts
    actions = [env.unwrapped.oracle_action() for env in singles]
    assert list(envs.call("oracle_action")) == actions
    alone = [env.step(action)[:4] for env, action in zip(singles, actions, strict=True)]
    assert list(zip(*envs.step(actions)[:4], strict=True)) == alone
    envs.close()


def test_a_time_limit_is_one_of_each_env():
    envs = gymnasium.make_vec(
        "test/Walk-v0", num_envs=1, vectorization_mode="sync", max_episode_steps=2
    )
    ours = TextVectorEnv.from_ids(
        ["test/Walk-v0"], env_kwargs={"max_episode_steps": 2}, autoreset_mode="NextStep"
    )
    for pool in (envs, ours):
        pool.reset(options={"task": {"length": 6, "salt": 1}})
        assert [pool.step(["a"])[3].tolist() for _ in range(2)] == [[False], [True]]
        pool.close()


def test_the_default_mode_is_same_step_and_classes_keep_their_metadata():
    before = dict(gymnasium.make("rllm/Math-v0").metadata)
    envs = gymnasium.make_vec("rllm/Math-v0", num_envs=2)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert gymnasium.make("rllm/Math-v0").metadata == before
    envs.close()


def test_ids_and_arguments_may_differ():
    ids = ["rllm/Arithmetic-v0", "rllm_envs:rllm/Calculator-v0"]
    envs = TextVectorEnv.from_ids(ids, env_kwargs=[{"digits": 1}, {"max_turns": 7}])
    observations, infos = envs.reset(seed=[3, 4])
    singles = [
        gymnasium.make(ids[0], digits=1).reset(seed=3)[0],
        gymnasium.make(ids[1], max_turns=7).reset(seed=4)[0],
    ]
    assert list(observations) == singles
    assert list(infos["turns_left"]) == [1, 7]
    envs.close()


def test_envs_are_made_from_functions_and_specs_with_their_wrappers():
    wrapped = DictObservation(gymnasium.make("test/Walk-v0"))
    envs = TextVectorEnv([wrapped.spec, lambda: DictObservation(gymnasium.make("test/Walk-v0"))])
    observations, _ = envs.reset(seed=[1, 1])
    first = wrapped.reset(seed=1)[0]["question"]
    assert observations == {"question": (first, first)}
    observations, *_ = envs.step(["a", "a"])
    assert len(set(observations["question"])) == 1
    envs.close()


def test_spaces_are_batched_and_contain_what_comes():
    envs = walk_pool()
    assert envs.single_observation_space == UnicodeText()
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    assert len(envs.action_space.sample()) == 3
    envs.close()


def test_text_spaces_are_joined_and_others_must_be_equal():
    def short():
        env = gymnasium.make("test/Walk-v0")
        env.action_space = UnicodeText(10, min_length=1)
        return env

    envs = TextVectorEnv(["test/Walk-v0", short])
    assert envs.single_action_space == UnicodeText()
    envs.close()
    with pytest.raises(EnvArgumentError, match="one observation space"):
        TextVectorEnv(["test/Walk-v0", lambda: DictObservation(gymnasium.make("test/Walk-v0"))])


def test_an_integer_seed_counts_up_and_a_mask_resets_some():
    envs = walk_pool()
    firsts = [gymnasium.make("test/Walk-v0").reset(seed=7 + place)[0] for place in range(3)]
    assert list(envs.reset(seed=7)[0]) == firsts
    shown, *_ = envs.step(["a", "b", "c"])
    options = {"reset_mask": np.array([False, True, False])}
    observations, infos = envs.reset(seed=7, options=options)
    assert list(observations) == [shown[0], firsts[1], shown[2]]
    assert list(infos["_turn"]) == [False, True, False]
    assert list(options) == ["reset_mask"]
    envs.close()


def test_each_env_plays_the_task_it_is_given():
    envs = walk_pool()
    task = {"length": 2, "salt": 9}
    observations, _ = envs.reset(seed=1, options={"tasks": [None, task, {"length": 3, "salt": 8}]})
    alone = gymnasium.make("test/Walk-v0").reset(seed=1)[0]
    assert observations == (alone, "start 2 9", "start 3 8")
    mask = np.array([True, False, False])
    observations, _ = envs.reset(options={"reset_mask": mask, "task": task})
    assert observations == ("start 2 9", "start 2 9", "start 3 8")
    observations, _ = envs.reset(options=[{"task": task}, None, {"task": task}])
    assert (observations[0], observations[2]) == ("start 2 9", "start 2 9")
    envs.close()


@pytest.mark.parametrize("executor", ["inline", "processes"])
def test_a_task_that_cannot_be_played_is_the_callers_mistake(executor):
    envs = TextVectorEnv.from_ids(["rllm/Calculator-v0"] * 2, **EXECUTORS[executor])
    good = {"expression": "2 * 3"}
    try:
        with pytest.raises(TaskError, match="expression"):
            envs.reset(options={"tasks": [good, {"expression": "two"}]})
        observations, _ = envs.reset(options={"task": good})
        assert all("2 * 3" in text for text in observations)
    finally:
        envs.close()


def test_finished_envs_stay_idle_when_autoreset_is_disabled():
    envs = walk_pool(2, autoreset_mode="Disabled")
    envs.reset(options={"tasks": [{"length": 1, "salt": 0}, {"length": 3, "salt": 0}]})
    assert envs.running.tolist() == [True, True]
    _, _, terminated, _, _ = envs.step(["a", "a"])
    assert terminated.tolist() == [True, False]
    assert envs.running.tolist() == [False, True]
    observations, rewards, terminated, truncated, infos = envs.step([None, "b"])
    assert observations[0].startswith("a ")
    assert observations[1].startswith("b ")
    assert (rewards[0], rewards[1] > 0) == (0.0, True)
    assert not terminated.any() and not truncated.any()
    assert infos["_draw"].tolist() == [False, True]
    envs.step([None, "c"])
    assert envs.running.tolist() == [False, False]
    assert envs.step([None, None])[1].tolist() == [0.0, 0.0]
    envs.close()


def test_gymnasiums_statistics_count_returns_and_lengths():
    # Gymnasium's wrapper leaves out the first reward after a "SameStep" autoreset.
    envs = DictInfoToList(RecordEpisodeStatistics(walk_pool(2, autoreset_mode="NextStep")))
    _, infos = envs.reset(seed=3)
    assert [info["turn"] for info in infos] == [0, 0]
    num_ended, totals = 0, np.zeros(2)
    for turn in range(12):
        _, rewards, terminated, truncated, infos = envs.step([f"{turn}"] * 2)
        totals += rewards
        for place in np.flatnonzero(terminated | truncated):
            assert infos[place]["episode"]["r"] == pytest.approx(totals[place])
            assert infos[place]["episode"]["l"] == infos[place]["turn"]
            num_ended, totals[place] = num_ended + 1, 0
    assert num_ended >= 4
    envs.close()


def test_gymnasiums_list_of_infos_is_the_pools():
    pool = walk_pool(2)
    envs = DictInfoToList(pool)
    envs.reset(seed=3)
    num_ended = 0
    for turn in range(12):
        *_, infos = envs.step([f"{turn}"] * 2)
        assert infos == pool.infos_list
        num_ended += sum("final_obs" in info for info in infos)
    assert num_ended >= 4
    envs.close()


def test_statistics_are_right_for_envs_that_wait_for_a_mask():
    envs = RecordEpisodeStatistics(walk_pool(2, autoreset_mode="Disabled"))
    envs.reset(options={"tasks": [{"length": 1, "salt": 0}, {"length": 3, "salt": 0}]})
    for _ in range(3):
        *_, infos = envs.step(["a", "a"])
    assert infos["episode"]["l"].tolist() == [0, 3]
    task = {"length": 2, "salt": 0}
    envs.reset(options={"reset_mask": np.array([True, True]), "task": task})
    envs.step(["a", "a"])
    *_, infos = envs.step(["a", "a"])
    assert infos["episode"]["l"].tolist() == [2, 2]
    assert envs.episode_count == 4
    envs.close()


def test_methods_and_attributes_of_all_envs_can_be_reached():
    envs = walk_pool(2)
    envs.reset(seed=1)
    assert envs.call("oracle_action") == ("go", "go")
    assert envs.get_attr("max_turns") == (4, 4)
    envs.set_attr("max_turns", [2, 3])
    assert envs.get_attr("max_turns") == (2, 3)
    assert envs.np_random_seed == (1, 2)
    assert [g.bit_generator.state["bit_generator"] for g in envs.np_random] == ["PCG64"] * 2
    with pytest.raises(EnvArgumentError, match="2 values"):
        envs.set_attr("max_turns", [1])
    envs.close()


def test_envs_render_as_they_do_alone():
    envs = walk_pool(2, env_kwargs={"render_mode": "ansi"})
    observations, _ = envs.reset(seed=1)
    assert (envs.render_mode, envs.render()) == ("ansi", observations)
    envs.close()


def test_a_thousand_envs_start_and_step():
    envs = gymnasium.make_vec("rllm/Arithmetic-v0", num_envs=1000)
    observations, _ = envs.reset(seed=0)
    assert len(set(observations)) > 900
    rewards = envs.step(envs.call("oracle_action"))[1]
    assert rewards.sum() == 1000
    envs.close()


def test_wrong_calls_are_refused_and_harm_nothing():
    envs = walk_pool(2)
    with pytest.raises(EpisodeError, match=r"reset\(\) first"):
        envs.step(["a", "b"])
    first, _ = envs.reset(seed=1)
    for actions in ("ab", ["a"], 7, ["a"] * 3):
        with pytest.raises(EnvArgumentError):
            envs.step(actions)
    for arguments in (
        {"seed": [1]},
        {"options": {"tasks": [{}]}},
        {"options": [None]},
        {"options": {"reset_mask": [True, False]}},
        {"options": {"reset_mask": np.array([False, False])}},
        {"options": {"colour": "red"}},
    ):
        with pytest.raises(EnvArgumentError):
            envs.reset(**arguments)
    assert envs.reset(seed=1)[0] == first
    envs.close()
    with pytest.raises(ClosedEnvironmentError):
        envs.step(["a", "b"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"autoreset_mode": "never"},
        {"deadline": 0},
        {"deadline": "1"},
        {"isolation": "thread"},
        {"max_threads": -1},
    ],
)
def test_arguments_out_of_range_are_refused(arguments):
    with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
        walk_pool(**arguments)


def test_sources_that_make_no_env_are_refused():
    for envs in ([], "rllm/Math-v0", [7]):
        with pytest.raises(EnvArgumentError):
            TextVectorEnv(envs)
    with pytest.raises(gymnasium.error.Error):
        TextVectorEnv(["rllm/Nothing-v0"])
    with pytest.raises(EnvArgumentError, match="as many"):
        TextVectorEnv.from_ids(["test/Walk-v0"], env_kwargs=[{}, {}])
    with pytest.raises(EnvArgumentError, match="module:Class"):
        TextVectorEnv([walk_envs.WalkEnv], isolation="process")
