import contextlib
import io
import json
import random
import subprocess
import sys
import warnings

import pettingzoo
import pytest
from pettingzoo.test import api_test, parallel_api_test, render_test
from pettingzoo.test.seed_test import parallel_seed_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec, turn_based_aec_to_parallel

from rllm_envs import CATALOG, EnvArgumentError, UnknownEnvError
from rllm_envs.multi_agent import GAMES, make_aec, make_parallel, register_games

IDS = [entry.id for entry in GAMES]
AEC = [entry.id for entry in GAMES if entry.kind == "aec"]
PARALLEL = [entry.id for entry in GAMES if entry.kind == "parallel"]
ZERO_SUM = {
    *("rllm/TicTacToe-v0", "rllm/ConnectFour-v0", "rllm/Nim-v0", "rllm/KuhnPoker-v0"),
    *("rllm/LeducPoker-v0", "rllm/LiarsDice-v0", "rllm/Debate-v0", "rllm/RockPaperScissors-v0"),
}
FRAGMENTS = (
    *("", " ", "42", "-7", "\\boxed{", "}", "\\boxed{1}", "\\boxed{1 1}", "\\boxed{}", "<think>"),
    *("</think>", "yes", "no", "\n", "\x00", "\ud800", "é", "%s", "\\boxed{9999999999}", "1+1"),
    *("\\boxed{call}", "\\boxed{accept}", "\\boxed{1/0}", "\\boxed{" + "9" * 5000 + "}"),
)


def make(env_id, **arguments):
    return pettingzoo.make("aec" if env_id in AEC else "parallel", env_id, **arguments)


@contextlib.contextmanager
def quiet():
    # PettingZoo's tests print, and warn that texts are no arrays.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def play_aec(env, choose, between=lambda: None):
    """Play the game that has been reset; what happened, and the scores."""
    events, scores = [], dict.fromkeys(env.possible_agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, truncated, info = env.last()
        scores[agent] += reward
        between()
        action = None if terminated or truncated else choose(agent, info)
        events.append((agent, str(observation), reward, terminated, info, action))
        env.step(action)
    return events, scores


def play_parallel(env, observations, infos, choose, between=lambda: None):
    events, scores = [], dict.fromkeys(env.possible_agents, 0.0)
    while env.agents:
        actions = {agent: choose(agent, infos[agent]) for agent in env.agents}
        between()
        observations, rewards, terminations, truncations, infos = env.step(actions)
        events.append((dict(observations), rewards, terminations, truncations, infos, actions))
        for agent, reward in rewards.items():
            scores[agent] += reward
    return events, scores


def play(env, seed, choose, **arguments):
    first = env.reset(seed=seed)
    if isinstance(env, pettingzoo.AECEnv):
        return play_aec(env, choose, **arguments)
    return play_parallel(env, *first, choose, **arguments)


def expert(env):
    return lambda agent, info: env.expert_action(agent)


def test_the_catalog_names_each_game_once_and_the_views_have_the_ids_of_their_games():
    assert len(set(IDS)) == len(IDS)
    views = {entry.id for entry in CATALOG if entry.category == "multi_agent"}
    assert views == {
        *("rllm/TicTacToe-v0", "rllm/ConnectFour-v0", "rllm/Nim-v0", "rllm/KuhnPoker-v0"),
        *("rllm/LeducPoker-v0", "rllm/LiarsDice-v0"),
    }
    assert views <= set(AEC)


@pytest.mark.parametrize("entry", GAMES, ids=IDS)
def test_the_entries_tell_the_number_of_players(entry):
    assert make(entry.id).max_num_agents == entry.num_players


@pytest.mark.parametrize("env_id", AEC)
def test_turn_games_become_parallel_by_pettingzoos_conversion(env_id):
    with quiet():
        parallel_api_test(turn_based_aec_to_parallel(make(env_id)), num_cycles=30)


@pytest.mark.parametrize("env_id", AEC)
def test_turn_games_pass_pettingzoos_api_test(env_id):
    with quiet():
        api_test(make(env_id), num_cycles=200)


@pytest.mark.parametrize("env_id", PARALLEL)
def test_round_games_pass_pettingzoos_tests_in_both_forms(env_id):
    with quiet():
        parallel_api_test(make(env_id), num_cycles=50)
        api_test(parallel_to_aec(make(env_id)), num_cycles=50)


@pytest.mark.parametrize("env_id", IDS)
def test_equal_seeds_give_equal_games_in_pettingzoos_test(env_id):
    with quiet():
        (seed_test if env_id in AEC else parallel_seed_test)(lambda: make(env_id), num_cycles=50)


@pytest.mark.parametrize("env_id", AEC)
def test_turn_games_render_in_each_mode(env_id):
    with quiet():
        render_test(lambda render_mode: make(env_id, render_mode=render_mode))


@pytest.mark.parametrize("env_id", PARALLEL)
def test_round_games_render_in_each_mode(env_id, capsys):
    env = make(env_id, render_mode="ansi")
    play(env, 0, expert(env))
    shown = env.render()
    assert shown.count("player_0> ") == env.unwrapped.game.num_rounds
    assert "[end: player_0" in shown
    env = make(env_id, render_mode="human")
    play(env, 0, expert(env))
    assert env.render() is None
    assert capsys.readouterr().out == shown + "\n"


@pytest.mark.parametrize("env_id", IDS)
def test_random_text_never_raises_and_the_game_ends(env_id):
    rng = random.Random(0)
    env = make(env_id)

    def choose(agent, info):
        if info.get("action_mask") and rng.random() < 0.5:
            return rng.choice(info["action_mask"])
        text = "".join(rng.choices(FRAGMENTS, k=rng.randint(0, 5)))
        return rng.choice([text] * 9 + [7])

    for seed in range(200):
        _, scores = play(env, seed, choose)
        assert set(scores) == set(env.possible_agents)
        if env_id in ZERO_SUM:
            assert sum(scores.values()) == pytest.approx(0)


@pytest.mark.parametrize("env_id", IDS)
def test_a_game_is_the_same_alone_and_between_other_games(env_id):
    env, other = make(env_id), make(env_id)
    for seed in range(8):
        alone = play(env, seed, expert(env))
        interleaved = play(env, seed, expert(env), between=lambda: other.reset())
        assert interleaved == alone


@pytest.mark.parametrize("env_id", IDS)
def test_listed_moves_are_legal_and_info_keeps_its_types(env_id):
    rng = random.Random(1)
    env = make(env_id)
    types = {}

    def choose(agent, info):
        for key, value in info.items():
            assert types.setdefault(key, type(value)) is type(value)
        assert not info["invalid"]
        mask = info.get("action_mask")
        return rng.choice(mask) if mask else env.expert_action(agent)

    for seed in range(20):
        _, scores = play(env, seed, choose)
        if env_id in ZERO_SUM:
            assert sum(scores.values()) == pytest.approx(0)
    assert {"invalid", "turn"} <= set(types)


@pytest.mark.parametrize("env_id", IDS)
def test_a_task_can_be_given_and_is_then_the_same_game(env_id):
    env = make(env_id)
    first = play(env, 3, expert(env))
    task = env.unwrapped.task
    assert json.loads(json.dumps(task)) == task
    env.reset(seed=4)
    again = env.reset(options={"task": task})
    if env_id in AEC:
        assert play_aec(env, expert(env)) == first
    else:
        assert play_parallel(env, *again, expert(env)) == first


@pytest.mark.parametrize("env_id", IDS)
def test_the_splits_share_no_task(env_id):
    tasks = {}
    for split in ("train", "test"):
        env = make(env_id, split=split)
        tasks[split] = set()
        for seed in range(40):
            env.reset(seed=seed)
            tasks[split].add(json.dumps(env.unwrapped.task, sort_keys=True))
    assert len(tasks["train"]) == len(tasks["test"]) == 40
    assert not tasks["train"] & tasks["test"]


@pytest.mark.parametrize("env_id", IDS)
def test_the_game_class_says_in_its_docstring_how_it_is_played(env_id):
    doc = type(make(env_id).unwrapped.game).__doc__
    for section in ("Description", "Moves", "Rewards", "Arguments"):
        assert f"## {section}\n" in doc


def test_unknown_ids_and_arguments_are_refused_with_what_there_is():
    with pytest.raises(UnknownEnvError, match="rllm/TicTacToe-v0"):
        make_aec("rllm/TikTakToe-v0")
    with pytest.raises(UnknownEnvError, match="parallel"):
        make_parallel("rllm/TicTacToe-v0")
    with pytest.raises(EnvArgumentError, match=r"openings.*it takes opening_plies"):
        make_aec("rllm/TicTacToe-v0", openings=1)
    with pytest.raises(EnvArgumentError, match="max_retries"):
        make_aec("rllm/TicTacToe-v0", max_retries=11)


def test_registering_twice_changes_nothing(recwarn):
    assert register_games()
    assert not recwarn.list


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_one_import_registers_the_games_in_a_fresh_process():
    code = (
        "import pettingzoo, rllm_envs.multi_agent\n"
        "env = pettingzoo.make('aec', 'rllm/TicTacToe-v0')\n"
        "env.reset(seed=1)\n"
        "print(env.agent_selection, len(env.last()[4]['action_mask']))\n"
    )
    assert run(code) == "player_0 9"


def test_games_can_be_played_by_one_agent_where_pettingzoo_is_not_installed():
    code = (
        "import sys\n"
        "sys.modules['pettingzoo'] = None\n"
        "import gymnasium, rllm_envs\n"
        "env = gymnasium.make('rllm/TicTacToe-v0', seat='first')\n"
        "env.reset(seed=1)\n"
        "print(env.step(r'\\boxed{5}')[1])\n"
        "from rllm_envs.multi_agent import make_aec\n"
        "try:\n"
        "    make_aec('rllm/TicTacToe-v0')\n"
        "except rllm_envs.MissingDependencyError as error:\n"
        "    print(error)\n"
    )
    assert run(code) == (
        "0.0\ngames for several agents need pettingzoo: pip install 'rllm-envs[multi]'"
    )
