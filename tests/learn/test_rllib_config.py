"""What `GRPOConfig` takes, what it turns it into, and what it refuses."""

from __future__ import annotations

import pytest

from rllm_agents import ToolAgent
from rllm_envs import BaseEnv
from rllm_learn import rllib
from rllm_learn.algorithms import ALGORITHMS
from rllm_learn.algorithms import PPOConfig as PPOSettings
from rllm_learn.config import TrainerConfig, to_settings
from rllm_learn.errors import ConfigError
from rllm_learn.rllib import GRPOConfig, LLMAlgorithmConfig, PPOConfig, ReMaxConfig


class OwnEnv(BaseEnv):
    def reset(self):
        return {}, {}

    def step(self, action):
        return {}, 0.0, True, {}

    @staticmethod
    def from_dict(info):
        return OwnEnv()


def config() -> GRPOConfig:
    return GRPOConfig().environment("rllm/Calculator-v0")


def test_unset_options_are_the_defaults_of_rllm_train():
    expected = to_settings(None, TrainerConfig, config_name="grpo_trainer")
    assert config().trainer_config() == expected


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_a_configuration_of_rllib(name):
    found = [
        value
        for value in vars(rllib).values()
        if isinstance(value, type)
        and issubclass(value, LLMAlgorithmConfig)
        and value is not LLMAlgorithmConfig
        and value.algorithm_name == name
    ]
    (config_class,) = found
    fresh = config_class().environment("rllm/Calculator-v0")
    fresh.validate()
    expected = to_settings(None, TrainerConfig, config_name=f"{name}_trainer")
    assert fresh.trainer_config() == expected
    algorithm_class = fresh.algo_class
    assert algorithm_class.__name__ + "Config" == config_class.__name__
    assert type(algorithm_class.get_default_config()) is config_class


def test_an_algorithm_takes_its_own_settings_and_no_others():
    config = ReMaxConfig().environment("rllm/Calculator-v0").training(group_size=3)
    assert config.trainer_config().algorithm.group_size == 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ConfigError, match="clip_low"):
        config.copy().training(clip_low=0.1).validate()
    with pytest.raises(ConfigError, match="no probability ratio"):
        config.copy().training(num_epochs=2).validate()


def test_ppo_takes_the_names_of_rllib_where_they_mean_the_same():
    settings = (
        PPOConfig()
        .environment("rllm/Calculator-v0")
        .training(lr=1e-4, gamma=0.99, lambda_=0.9, clip_param=0.3, entropy_coeff=0.01)
        .training(vf_loss_coeff=0.5, vf_clip_param=10.0, vf_share_layers=True, num_epochs=2)
        .training(minibatch_size=64, gae_over="turns", critic_learning_rate=1e-3)
    )
    settings.validate()
    algorithm = settings.trainer_config().algorithm
    assert algorithm == PPOSettings(
        gamma=0.99,
        lambda_=0.9,
        clip_low=0.3,
        clip_high=0.3,
        entropy_coefficient=0.01,
        vf_loss_coeff=0.5,
        vf_clip_param=10.0,
        vf_share_layers=True,
        gae_over="turns",
        critic_learning_rate=1e-3,
    )
    learner = settings.trainer_config().learner
    assert (learner.num_epochs, learner.minibatch_sequences) == (2, 64)
    without = PPOConfig().environment("rllm/Calculator-v0").training(use_gae=False, clip_high=0.4)
    algorithm = without.trainer_config().algorithm
    assert algorithm == PPOSettings(use_gae=False, clip_high=0.4)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"use_critic": False}, "use_critic=False.*REINFORCEConfig"),
        ({"kl_coeff": 0.2}, "policy before the update.*kl_coefficient"),
        ({"use_kl_loss": True}, "policy before the update.*kl_coefficient"),
        ({"kl_target": 0.01}, "constant: kl_coefficient"),
        ({"lr_schedule": []}, "warmup_updates"),
    ],
)
def test_options_of_rllibs_ppo_that_mean_something_else_say_what_to_use(option, words):
    with pytest.raises(ConfigError, match=words):
        PPOConfig().training(**option)


def test_options_reach_the_settings_they_name():
    settings = (
        config()
        .environment(env_config={"max_turns": 2})
        .model("somewhere", dtype="bfloat16")
        .lora(rank=4, alpha=2.0)
        .engine("vllm", max_batch_size=7, vllm_args={"tensor_parallel_size": 2})
        .rollout(temperature=0.7, max_steps=3)
        .env_runners(num_envs_per_env_runner=11)
        .training(lr=1e-4, grad_clip=0.5, minibatch_size=9, group_size=4, micro_tokens=99)
        .evaluation(evaluation_duration=5, greedy=False)
        .debugging(seed=3)
        .trainer_config()
    )
    assert settings.env.kwargs == {"max_turns": 2}
    assert (settings.model.path, settings.model.dtype) == ("somewhere", "bfloat16")
    assert (settings.model.lora_rank, settings.model.lora_alpha) == (4, 2.0)
    assert settings.engine.name == "vllm" and settings.engine.max_batch_size == 7
    assert settings.engine.vllm_args == {"tensor_parallel_size": 2}
    assert (settings.rollout.temperature, settings.rollout.max_steps) == (0.7, 3)
    assert settings.rollout.n_parallel_agents == 11
    assert (settings.learner.learning_rate, settings.learner.max_grad_norm) == (1e-4, 0.5)
    assert (settings.learner.minibatch_sequences, settings.learner.micro_tokens) == (9, 99)
    assert settings.algorithm.group_size == 4  # pyright: ignore[reportAttributeAccessIssue]
    assert (settings.eval.num_tasks, settings.eval.greedy, settings.seed) == (5, False, 3)


def test_a_class_is_an_environment_and_its_arguments_are_env_config():
    own = GRPOConfig().environment(OwnEnv, env_config={"a": 1}).agent(ToolAgent)
    players = own.chosen_players()
    assert (players.env_class, players.agent_class) == (OwnEnv, ToolAgent)
    assert players.env_args == {"a": 1}


def test_a_copy_and_a_restored_state_are_valid_too():
    for again in (config().copy(), GRPOConfig.from_state(config().training(lr=1e-4).get_state())):
        again.validate()
        assert again.trainer_config().env.id == "rllm/Calculator-v0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.env_runners(sample_timeout_s=5.0),
            "bound episodes",
        ),
        (lambda c: c.multi_agent(policies={"a", "b"}), r"RLModules.*\.players\("),
        (lambda c: c.env_runners(num_gpus_per_env_runner=1), r"\.engine\(num_gpus"),
        (lambda c: c.evaluation(evaluation_parallel_to_training=True), "engines are shared"),
        (lambda c: c.framework(torch_skip_nan_gradients=True), "skipped always"),
        (lambda c: c.env_runners(num_env_runners=1), "num_engines=1"),
        (lambda c: c.training(lr=[[0, 1e-3], [9, 1e-4]]), "lr must be a number or None"),
        (lambda c: c.training(lr=2.0), r"learning_rate must be in \(0, 1\)"),
        (lambda c: c.training(group_sizes=4), r"unknown setting 'learner\.group_sizes'"),
        (lambda c: c.training(group_size=1), "group_size must be at least 2"),
        (lambda c: c.evaluation(evaluation_duration_unit="timesteps"), "number of held-out tasks"),
        (lambda c: c.model("tiny", dtyp="float16"), r"model\.dtyp"),
        (lambda c: c.engine("transformers", kv_cache_gib=1.0), "no such setting"),
        (lambda c: c.fault_tolerance(init_timeout_s=0), "init_timeout_s must be above 0"),
    ],
)
def test_what_cannot_be_honoured_is_refused_with_the_reason(change, message):
    with pytest.raises(ConfigError, match=message):
        change(config()).validate()


def test_no_environment_is_an_error_that_shows_how_to_name_one():
    with pytest.raises(ConfigError, match=r'\.environment\("rllm/'):
        GRPOConfig().validate()


def test_tune_reserves_what_the_actors_take():
    request = (
        config()
        .env_runners(num_env_runners=1)
        .engine(num_engines=1)
        .learners(num_learners=2, num_cpus_per_learner=0.25)
    )
    bundles = request.algo_class.default_resource_request(request.to_dict()).bundles
    assert bundles == [{"CPU": 0.25}, {"CPU": 0.25}, {"CPU": 0.25}, {"CPU": 0.25}, {"CPU": 0.5}]


def test_playing_ahead_of_the_learner_is_refused():
    config = GRPOConfig().environment("rllm/Arithmetic-v0").rollout(max_staleness=1)
    with pytest.raises(ConfigError, match="max_staleness=1 is of `rllm train`"):
        config.trainer_config()


def test_weights_are_split_over_two_learners_or_more():
    config().learners(num_learners=2, sharding="fsdp").validate()
    assert config().learners(num_learners=2, sharding="fsdp").copy().sharding == "fsdp"
    with pytest.raises(ConfigError, match="num_learners is 1"):
        config().learners(num_learners=1, sharding="fsdp").validate()
    with pytest.raises(ConfigError, match="muon_learning_rate is for whole matrices"):
        split = config().learners(num_learners=2, sharding="fsdp").lora(rank=0)
        split.training(muon_learning_rate=0.02).validate()
    with pytest.raises(ConfigError, match="one of replicate, fsdp, got 'zero3'"):
        config().learners(num_learners=2, sharding="zero3").validate()
