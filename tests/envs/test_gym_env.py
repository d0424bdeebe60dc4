import gymnasium
import pytest

from rllm_envs import EnvArgumentError, GymEnv, TaskError, UnknownEnvError, seed_tasks


def test_every_reset_of_a_seeded_env_starts_the_same_episode():
    env = GymEnv("rllm/Arithmetic-v0", seed=3)
    first, info = env.reset()
    assert list(first) == ["question"]
    assert info["turn"] == 0
    assert env.reset()[0] == first == GymEnv("rllm/Arithmetic-v0", seed=3).reset()[0]
    assert GymEnv("rllm/Arithmetic-v0", seed=4).reset()[0] != first


def test_a_step_returns_four_values_and_says_how_the_episode_ended():
    env = GymEnv("rllm/Arithmetic-v0", seed=3, observation_key=None)
    observation, _ = env.reset()
    assert isinstance(observation, str)
    observation, reward, done, info = env.step(env.oracle_action())
    assert (observation, reward, done) == ("", 1.0, True)
    assert type(reward) is float
    assert (info["terminated"], info["truncated"], info["success"]) == (True, False, True)
    env.close()
    env.close()


def test_truncation_is_told_apart_from_termination():
    env = GymEnv("rllm/Calculator-v0", env_kwargs={"max_turns": 2}, seed=0)
    env.reset()
    assert env.step("hm")[2] is False
    _, reward, done, info = env.step("hm")
    assert (reward, done, info["terminated"], info["truncated"]) == (0.0, True, False, True)


def test_from_dict_takes_its_own_fields_and_leaves_the_rest_as_the_task():
    fields = {
        "env_id": "rllm/Arithmetic-v0",
        "env_kwargs": {"digits": 2},
        "observation_key": None,
        "expression": "20 + 22",
    }
    before = dict(fields)
    env = GymEnv.from_dict(fields)
    assert fields == before
    assert env.task == {"expression": "20 + 22"}
    assert env.reset()[0] == r"What is 20 + 22? Give the answer in \boxed{}."
    assert env.step(r"\boxed{42}")[1] == 1.0


def test_from_dict_with_a_seed_alone_gives_no_task():
    env = GymEnv.from_dict({"env_id": "rllm/Arithmetic-v0", "seed": 5})
    assert env.task is None
    assert env.reset()[0] == GymEnv("rllm/Arithmetic-v0", seed=5).reset()[0]


def test_from_dict_without_an_id_says_what_it_needs():
    with pytest.raises(EnvArgumentError, match='needs "env_id"'):
        GymEnv.from_dict({"seed": 1})


def test_a_task_that_cannot_be_played_is_refused_at_reset():
    env = GymEnv("rllm/Arithmetic-v0", task={"question": "1 + 1"})
    with pytest.raises(TaskError, match="expression"):
        env.reset()


@pytest.mark.parametrize(
    ("env_id", "reason"),
    [
        ("rllm/Arithmetik-v0", r"did you mean 'rllm/Arithmetic-v0'\?.*list` shows"),
        ("nowhere/Thing-v0", "no environment is registered"),
        ("rllm/Arithmetic-v9", "no environment is registered"),
        ("a/b/c", "cannot be made|no environment"),
        ("no_such_module:x/Y-v0", "no module named 'no_such_module'"),
        (None, "must be a text"),
    ],
)
def test_an_unknown_id_is_refused_with_the_nearest(env_id, reason):
    with pytest.raises(UnknownEnvError, match=reason):
        GymEnv(env_id)


def test_an_argument_that_the_env_does_not_take_is_refused_with_the_nearest():
    with pytest.raises(EnvArgumentError, match=r"no argument 'digit'; it takes .*mean 'digits'\?"):
        GymEnv("rllm/Arithmetic-v0", env_kwargs={"digit": 3})


def test_arguments_are_checked_for_module_and_id_too():
    with pytest.raises(EnvArgumentError, match="no argument 'digit'"):
        GymEnv("rllm_envs:rllm/Arithmetic-v0", env_kwargs={"digit": 3})


def test_module_and_id_in_one_text_work():
    assert GymEnv("rllm_envs:rllm/Math-v0", seed=0).reset()[0]


def test_only_envs_that_may_wait_are_blocking(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": "1 + 1?", "answer": "2"}\n')
    assert GymEnv("rllm/Arithmetic-v0").blocking is False
    assert GymEnv("rllm/Calculator-v0").blocking is False
    assert GymEnv("rllm/Math-v0").blocking is False
    assert GymEnv("CartPole-v1").blocking is True
    pytest.importorskip("math_verify", reason="data sets are graded with math-verify")
    assert GymEnv("rllm/Math-v0", env_kwargs={"dataset": str(path)}).blocking is True
    assert GymEnv("rllm/Math-v0", task={"question": "?", "answer": "2"}).blocking is True
    generated = gymnasium.make("rllm/Math-v0")
    generated.reset(seed=0)
    assert GymEnv("rllm/Math-v0", task=generated.unwrapped.task).blocking is False


def test_an_env_without_an_oracle_says_so():
    with pytest.raises(EnvArgumentError, match="CartPole-v1 has no oracle"):
        GymEnv("CartPole-v1").oracle_action()


def test_seed_tasks_start_with_different_observations():
    tasks = seed_tasks("rllm/Arithmetic-v0", {"digits": 1, "split": "test"}, num_tasks=12)
    seeds = [task["seed"] for task in tasks]
    env = GymEnv("rllm/Arithmetic-v0", env_kwargs={"digits": 1, "split": "test"})
    shown = {env.env.reset(seed=seed)[0] for seed in seeds}
    assert len(shown) == len(tasks) == 12
    assert seeds == sorted(seeds)
    later = seed_tasks("rllm/Arithmetic-v0", None, num_tasks=2, first_seed=1000)
    assert all(task["seed"] >= 1000 for task in later)


def test_asking_for_more_tasks_than_there_are_is_refused():
    with pytest.raises(EnvArgumentError, match="different tasks"):
        seed_tasks("rllm/Arithmetic-v0", {"digits": 1, "operators": "+"}, num_tasks=100)


def test_tasks_that_look_alike_at_first_are_told_apart():
    """Every task of Wordle begins with the same text."""
    tasks = seed_tasks("rllm/Wordle-v0", None, num_tasks=20)
    env = GymEnv("rllm/Wordle-v0")
    words = set()
    for task in tasks:
        env.env.reset(seed=task["seed"])
        words.add(str(env.env.unwrapped.task))
    assert len(words) == 20
