"""Code that knows nothing of this package drives its environments by their ids alone."""

import gymnasium
import numpy as np
import pytest

import rllm_envs

gymnasium.register_envs(rllm_envs)
IDS = (
    *("rllm/Math-v0", "rllm/Calculator-v0", "rllm/GuessNumber-v0", "rllm/Wordle-v0"),
    *("rllm/FrozenLake-v0", "rllm/Sudoku-v0", "rllm/SQL-v0", "rllm/Household-v0"),
    *("rllm/TicTacToe-v0", "rllm/KuhnPoker-v0"),
)
TURNS = ("rllm/TicTacToe-v0", "rllm/ConnectFour-v0", "rllm/Nim-v0", "rllm/LeducPoker-v0")
ROUNDS = ("rllm/RockPaperScissors-v0", "rllm/PrisonersDilemma-v0", "rllm/PublicGoods-v0")


@pytest.mark.parametrize("env_id", IDS)
def test_a_plain_loop(env_id):
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.make(env_id))
    env.action_space.seed(1)
    observation, info = env.reset(seed=1)
    for _ in range(300):
        assert observation in env.observation_space
        action = env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        assert np.isfinite(reward)
        if terminated or truncated:
            assert info["episode"]["l"] > 0
            observation, info = env.reset()
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_a_vector_loop_in_the_style_of_cleanrl(env_id):
    envs = gymnasium.make_vec(env_id, num_envs=4)
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)
    observations, _ = envs.reset(seed=1)
    rewards = np.zeros((64, envs.num_envs), np.float32)
    dones = np.zeros((64, envs.num_envs), np.float32)
    finished = []
    for step in range(64):
        assert len(observations) == envs.num_envs
        actions = [envs.single_action_space.sample() for _ in range(envs.num_envs)]
        observations, rewards[step], terminations, truncations, infos = envs.step(tuple(actions))
        dones[step] = np.logical_or(terminations, truncations)
        if "episode" in infos:
            finished += list(infos["episode"]["r"][infos["_episode"]])
    envs.close()
    assert len(finished) == dones.sum() > 0
    assert np.isfinite(rewards).all()


@pytest.mark.parametrize("env_id", TURNS)
def test_a_loop_over_agents(env_id):
    pettingzoo = pytest.importorskip("pettingzoo")
    pytest.importorskip("rllm_envs.multi_agent")
    env = pettingzoo.make("aec", env_id)
    env.reset(seed=1)
    for agent in env.agent_iter(max_iter=300):
        _, reward, termination, truncation, info = env.last()
        assert np.isfinite(reward)
        action = None
        if not (termination or truncation):
            action = env.action_space(agent).sample(info.get("action_mask"))
        env.step(action)
    assert not env.agents
    env.close()


@pytest.mark.parametrize("env_id", ROUNDS)
def test_a_loop_over_rounds(env_id):
    pettingzoo = pytest.importorskip("pettingzoo")
    pytest.importorskip("rllm_envs.multi_agent")
    env = pettingzoo.make("parallel", env_id)
    _, infos = env.reset(seed=1)
    for _ in range(300):
        if not env.agents:
            break
        actions = {a: env.action_space(a).sample(infos[a].get("action_mask")) for a in env.agents}
        _, rewards, _, _, infos = env.step(actions)
        assert all(np.isfinite(reward) for reward in rewards.values())
    assert not env.agents
    env.close()


@pytest.mark.slow
def test_the_wrappers_of_rllib():
    """RLlib's wrappers of PettingZoo, which a MultiAgentEnvRunner drives."""
    import pettingzoo
    from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv, PettingZooEnv

    import rllm_envs.multi_agent  # noqa: F401

    for env_id in TURNS:
        env = PettingZooEnv(pettingzoo.make("aec", env_id))
        observations, infos = env.reset(seed=1)
        for _ in range(300):
            ((agent, _),) = observations.items()
            mask = infos.get(agent, {}).get("action_mask")
            action = env.get_action_space(agent).sample(mask)
            observations, rewards, terminations, truncations, infos = env.step({agent: action})
            assert all(np.isfinite(reward) for reward in rewards.values())
            if terminations["__all__"] or truncations["__all__"]:
                break
        else:
            pytest.fail(f"{env_id} does not end")
    for env_id in ROUNDS:
        env = ParallelPettingZooEnv(pettingzoo.make("parallel", env_id))
        observations, infos = env.reset(seed=1)
        for _ in range(300):
            actions = {a: env.get_action_space(a).sample() for a in observations}
            observations, rewards, terminations, truncations, infos = env.step(actions)
            if terminations["__all__"] or truncations["__all__"]:
                break
        else:
            pytest.fail(f"{env_id} does not end")
