import threading

import gymnasium
import pytest

from rllm_envs import EnvArgumentError, EpisodeError, Response, TaskError, TextEnv


class CountdownEnv(TextEnv):
    """Say "stop" when the counter shows zero; each other action counts down by one."""

    def __init__(self, *, start=5, max_turns=9, split="all", render_mode=None):
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.start = start
        self.count = 0

    def generate_task(self):
        return {"start": int(self.np_random.integers(1, self.start + 1))}

    def validate_task(self, task):
        if not isinstance(task.get("start"), int):
            raise TaskError(f"start must be an integer, got {task.get('start')!r}")
        return task

    def begin(self, task):
        self.count = task["start"]
        return f"{self.count}"

    def respond(self, action):
        if action == "stop":
            return Response("", float(self.count == 0), terminated=True)
        self.count -= 1
        return Response(f"{self.count}", info={"noise": int(self.np_random.integers(1000))})

    def oracle_action(self):
        return "stop" if self.count == 0 else "go"


def play(env, seed, num_steps=6):
    observation, info = env.reset(seed=seed)
    episode = [(observation, info)]
    for _ in range(num_steps):
        observation, reward, terminated, truncated, info = env.step("go")
        episode.append((observation, reward, terminated, truncated, info))
    return episode


def test_reset_and_step_return_fresh_info_with_counted_turns():
    env = CountdownEnv(max_turns=3)
    _, info = env.reset(seed=0)
    assert info == {"success": False, "invalid": False, "turn": 0, "turns_left": 3}
    *_, first = env.step("go")
    *_, second = env.step("go")
    assert (first["turn"], first["turns_left"]) == (1, 2)
    assert (second["turn"], second["turns_left"]) == (2, 1)


class LoggingEnv(CountdownEnv):
    """Says in its infos what was done so far, in a list of its own."""

    def begin(self, task):
        self.log = []
        return super().begin(task)

    def respond(self, action):
        self.log.append(action)
        return Response("", info={"log": self.log})


def test_what_is_done_to_an_info_does_not_reach_the_environment():
    env = LoggingEnv(max_turns=3)
    env.reset(seed=0)
    *_, info = env.step("a")
    info["log"].append("mine")
    *_, later = env.step("b")
    assert (info["log"], later["log"]) == (["a", "mine"], ["a", "b"])


def test_equal_seeds_give_equal_episodes_and_other_seeds_others():
    env = CountdownEnv(start=100)
    assert play(env, 3) == play(env, 3) == play(CountdownEnv(start=100), 3)
    assert play(env, 3) != play(env, 4)


def test_seeds_hold_when_environments_are_stepped_interleaved():
    alone = [play(CountdownEnv(start=100), seed) for seed in range(8)]
    envs = [CountdownEnv(start=100) for _ in range(8)]
    episodes = [[env.reset(seed=seed)] for seed, env in enumerate(envs)]
    for _ in range(6):
        for env, episode in zip(envs, episodes, strict=True):
            episode.append(env.step("go"))
    assert episodes == alone


def test_seeds_hold_in_threads():
    alone = [play(CountdownEnv(start=100), seed) for seed in range(16)]
    together = {}
    threads = [
        threading.Thread(target=lambda s=s: together.update({s: play(CountdownEnv(start=100), s)}))
        for s in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[seed] for seed in range(16)] == alone


def test_reset_without_a_seed_continues_the_stream():
    env = CountdownEnv(start=10**6)
    first = [env.reset(seed=1)[0], env.reset()[0], env.reset()[0]]
    assert first == [env.reset(seed=1)[0], env.reset()[0], env.reset()[0]]
    assert len(set(first)) == 3


def test_a_given_task_is_played_and_the_callers_dict_stays_as_it_is():
    env = CountdownEnv()
    task = {"start": 4}
    assert env.reset(options={"task": task})[0] == "4"
    env.task["start"] = 99
    assert env.task == {"start": 4} == task


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"task": {"start": "x"}}, TaskError, "start must be an integer, got 'x'"),
        ({"task": 3}, TaskError, "must be a dict, got 3"),
        ({"task": {"start": {1}}}, TaskError, "must be JSON"),
        ({"tusk": {}}, EnvArgumentError, "'tusk'"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, error, reason):
    env = CountdownEnv()
    with pytest.raises(error, match=reason):
        env.reset(options=options)
    with pytest.raises(EpisodeError):
        env.step("go")


def test_steps_outside_of_an_episode_are_refused():
    env = CountdownEnv()
    with pytest.raises(EpisodeError, match="reset"):
        env.step("go")
    with pytest.raises(EpisodeError, match="reset"):
        _ = env.task
    env.reset(options={"task": {"start": 1}})
    env.step("stop")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("go")


def test_success_is_a_reward_of_one_at_the_end():
    env = CountdownEnv()
    env.reset(options={"task": {"start": 1}})
    env.step("go")
    _, reward, terminated, truncated, info = env.step("stop")
    assert (reward, terminated, truncated, info["success"]) == (1.0, True, False, True)


def test_spent_turns_truncate_but_a_single_turn_terminates():
    env = CountdownEnv(max_turns=2)
    env.reset(seed=0)
    assert env.step("go")[2:4] == (False, False)
    assert env.step("go")[2:4] == (False, True)
    single = CountdownEnv(max_turns=1)
    single.reset(seed=0)
    assert single.step("go")[2:4] == (True, False)


@pytest.mark.parametrize("action", [None, 7, b"stop", ["stop"]])
def test_an_action_that_is_no_text_is_answered_as_invalid(action):
    env = CountdownEnv()
    env.reset(options={"task": {"start": 3}})
    observation, _, _, _, info = env.step(action)
    assert observation == "2"
    assert info["invalid"] is True


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"max_turns": 0}, "at least 1, got 0"),
        ({"max_turns": True}, "got True"),
        ({"max_turns": 1.5}, "got 1.5"),
        ({"split": "dev"}, "train, test, all, got 'dev'"),
        ({"render_mode": "rgb_array"}, "ansi, human, got 'rgb_array'"),
    ],
)
def test_arguments_out_of_range_are_refused_with_what_is_allowed(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        CountdownEnv(**arguments)


def test_train_and_test_never_share_a_task():
    def drawn(split):
        env = CountdownEnv(start=500, split=split)
        return {env.reset(seed=seed)[0] for seed in range(400)}

    train, test = drawn("train"), drawn("test")
    assert train
    assert test
    assert not train & test
    # One instance in eight is held out, here of 500.
    assert 40 <= len(test) <= 85


def test_a_split_without_any_task_is_refused_with_the_remedy():
    env = CountdownEnv(start=1, split="test")
    with pytest.raises(EnvArgumentError, match='split="all"'):
        env.reset(seed=0)


def test_ansi_rendering_tells_the_episode_so_far():
    env = CountdownEnv(render_mode="ansi")
    env.reset(options={"task": {"start": 1}})
    env.step("go")
    env.step("stop")
    assert env.render() == "1\n> go\n0\n> stop\n[end, reward 1]"
    env.reset(options={"task": {"start": 2}})
    assert env.render() == "2"


def test_human_rendering_prints_whatever_the_agent_writes(capsys):
    env = CountdownEnv(render_mode="human")
    env.reset(options={"task": {"start": 1}})
    env.step("\ud800 odd")
    assert env.render() is None
    assert capsys.readouterr().out == "1\n> ? odd\n0\n"
