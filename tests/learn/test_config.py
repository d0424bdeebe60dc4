from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from rllm_learn.algorithms import ALGORITHMS, REINFORCEConfig, ReMaxConfig
from rllm_learn.config import DPOFileConfig, SFTConfig, TrainerConfig, load_config, to_settings
from rllm_learn.errors import ConfigError
from rllm_learn.settings import update_rule


def settings(*overrides):
    return to_settings(
        load_config("grpo_trainer", overrides), TrainerConfig, config_name="grpo_trainer"
    )


def test_overrides_reach_their_settings_with_their_types():
    config = settings("seed=3", "learner.learning_rate=1e-4", "env.kwargs.digits=2", "run_dir=a b")
    assert (config.seed, config.learner.learning_rate) == (3, 1e-4)
    assert config.env.kwargs == {"digits": 2}
    assert config.run_dir == "a b"
    assert config.algorithm.name == "grpo"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("sed=3", "unknown setting 'sed'; did you mean seed?"),
        ("learner.learningrate=1", "did you mean learner.learning_rate?"),
        ("learner.lr=1", "learner.learning_rate or"),
        ("group_size=4", "did you mean algorithm.group_size?"),
        ("seed=abc", "'abc' of type 'str' could not be converted to Integer"),
        ("seed=-1", "seed must be >= 0, got -1"),
        ("learner.learning_rate=7", r"in \(0, 1\).* got 7.0"),
        ("learner.learning_rate=nan", r"in \(0, 1\).* got nan"),
        ("algorithm.group_size=1", "at least 2, got 1: a rollout is compared"),
        ("algorithm.clip_low=1.5", r"clip_low must be in \[0, 1\], got 1.5"),
        ("rollout.temperature=0", "rollout.temperature must be above 0, got 0"),
        ("model.dtype=int8", "one of float32, bfloat16, float16, got 'int8'"),
        ("algorithm=nope", "grpo"),
        ("algorithm.name=rloo", "choose an algorithm with algorithm=rloo"),
        ("algorithm.divide_by_sdt=false", "did you mean algorithm.divide_by_std?"),
        ("env=rllm/Math-v0", "name one of them: .*env.id"),
        ("seed", "missing EQUAL"),
    ],
)
def test_a_mistake_is_named_with_its_remedy_on_one_line(override, words):
    with pytest.raises(ConfigError, match=words) as caught:
        settings(override)
    assert "\n" not in str(caught.value)


def test_a_mapping_is_laid_over_the_defaults():
    config = to_settings(
        {"num_steps": 3, "env": {"kwargs": {"digits": 1}}},
        TrainerConfig,
        config_name="grpo_trainer",
    )
    assert (config.num_steps, config.tasks_per_step) == (3, 32)
    assert config.env.kwargs == {"digits": 1}


def test_unknown_keys_of_a_mapping_and_other_types_are_refused():
    with pytest.raises(ConfigError, match=r"unknown setting 'learner\.rate'"):
        to_settings({"learner": {"rate": 1}}, TrainerConfig, config_name="grpo_trainer")
    with pytest.raises(ConfigError, match=r"must be a TrainerConfig, .* got int"):
        to_settings(3, TrainerConfig, config_name="grpo_trainer")


def test_a_resolved_configuration_reads_back_as_itself():
    config = settings("seed=5", "env.kwargs.digits=2")
    text = OmegaConf.to_yaml(OmegaConf.structured(config))
    again = to_settings(OmegaConf.create(text), TrainerConfig, config_name="grpo_trainer")
    assert again == config


def test_an_algorithm_brings_its_own_settings():
    config = settings(
        "algorithm=reinforce",
        "algorithm.baseline=running",
        "algorithm.masked_endings=[timeout,max_turns_exceeded]",
    )
    assert isinstance(config.algorithm, REINFORCEConfig)
    assert config.algorithm.baseline == "running"
    assert config.algorithm.masked_endings == ["timeout", "max_turns_exceeded"]
    with pytest.raises(ConfigError, match=r"unknown setting 'algorithm\.group_size'"):
        settings("algorithm=reinforce", "algorithm.group_size=4")


def test_a_mapping_chooses_an_algorithm_by_its_name():
    given = {"algorithm": {"name": "remax", "group_size": 2}}
    config = to_settings(given, TrainerConfig, config_name="grpo_trainer")
    assert config.algorithm == ReMaxConfig(group_size=2)
    with pytest.raises(ConfigError, match=r"\{'name': 'remax'\}, got 'remax'"):
        to_settings({"algorithm": "remax"}, TrainerConfig, config_name="grpo_trainer")


def test_limits_of_responses_reach_the_algorithms_that_read_them():
    changes = ("rollout.max_response_length=77",)
    assert settings("algorithm=dapo", *changes).algorithm.max_length == 77
    assert settings("algorithm=dr_grpo", *changes).algorithm.length_constant == 77


def test_the_critic_has_a_rate_that_suits_its_model():
    def rate(*overrides) -> float:
        config = settings("algorithm=ppo", *overrides)
        rule = update_rule(config.learner, config.model, 1, seed=0, critic=config.algorithm.critic)
        assert rule.critic is not None
        return rule.critic.learning_rate.peak

    assert rate() == 3e-3
    assert rate("algorithm.critic_learning_rate=2e-4", "learner.learning_rate=1e-3") == 2e-4
    assert rate("model.path=some/where") == 1e-4
    assert rate("model.path=some/where", "model.lora_rank=0") == 1e-5
    head = "algorithm.vf_share_layers=true"
    assert rate("model.path=some/where", "model.lora_rank=0", head) == 1e-4
    warm = settings("algorithm=ppo", "learner.warmup_updates=9")
    rule = update_rule(warm.learner, warm.model, 1, seed=0, critic=warm.algorithm.critic)
    assert rule.critic is not None and rule.critic.learning_rate.warmup_updates == 9
    assert settings().algorithm.critic is None


@pytest.mark.parametrize("change", ["learner.num_epochs=2", "learner.minibatch_sequences=64"])
def test_losses_without_a_ratio_refuse_a_second_step_on_the_same_samples(change):
    for name in ("rloo", "remax", "reinforce"):
        with pytest.raises(ConfigError, match=f"algorithm={name} has no probability ratio"):
            settings(f"algorithm={name}", change)
    for name in ("grpo", "cispo", "gspo", "reinforce_plus_plus", "ppo"):
        settings(f"algorithm={name}", change)


def test_every_algorithm_has_a_configuration_file_and_a_title():
    for name, (schema, _) in ALGORITHMS.items():
        config = to_settings(None, TrainerConfig, config_name=f"{name}_trainer")
        assert type(config.algorithm) is schema
        assert config.algorithm.title


def test_every_configuration_file_is_complete():
    for name, schema in (
        *((f"{algorithm}_trainer", TrainerConfig) for algorithm in ALGORITHMS),
        ("sft", SFTConfig),
        ("sft_tiny", SFTConfig),
        ("dpo", DPOFileConfig),
    ):
        assert to_settings(load_config(name), schema, config_name=name) is not None


def test_a_script_with_hydra_main_composes_the_same_settings(tmp_path):
    # As users write it: the decorator alone must find the files and the schemas.
    import subprocess
    import sys

    script = tmp_path / "script.py"
    script.write_text(
        "import hydra\n"
        "from rllm_learn.config import TrainerConfig, to_settings\n"
        '@hydra.main(config_path="pkg://rllm_learn.config", config_name="grpo_trainer", '
        "version_base=None)\n"
        "def main(config):\n"
        '    print(to_settings(config, TrainerConfig, config_name="grpo_trainer").num_steps)\n'
        "main()\n"
    )
    run = subprocess.run(
        [sys.executable, str(script), "num_steps=7", f"hydra.run.dir={tmp_path}/hydra"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert run.stdout.strip() == "7"
