"""RLlib's own options: which are honoured here, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
from ray.rllib.utils.from_config import NotProvided

from rllm_learn.errors import ConfigError

UNSET: Any = NotProvided
"""Default of an argument that may be left out."""

_Value = TypeVar("_Value")

_HONOURED = """
    algo_class env env_config seed in_evaluation evaluation_config framework_str
    num_env_runners num_envs_per_env_runner num_cpus_per_env_runner custom_resources_per_env_runner
    restart_failed_env_runners max_num_env_runner_restarts delay_between_env_runner_restarts_s
    env_runner_health_probe_timeout_s env_runner_restore_timeout_s
    num_learners num_cpus_per_learner num_gpus_per_learner custom_resources_per_learner
    lr grad_clip num_epochs minibatch_size
    evaluation_interval evaluation_num_env_runners evaluation_duration evaluation_duration_unit
    callbacks_class callbacks_on_algorithm_init callbacks_on_train_result
    callbacks_on_evaluate_start callbacks_on_evaluate_end callbacks_on_checkpoint_loaded
    num_cpus_for_main_process custom_resources_for_main_process placement_strategy
    min_time_s_per_iteration extra_python_environs_for_worker
    log_level log_sys_usage batch_mode rollout_fragment_length
    _is_frozen _validate_config _use_msgpack_checkpoints
"""
HONOURED = frozenset(_HONOURED.split())
"""RLlib's own options that have an effect here; another that is changed is refused."""

REASONS: Mapping[str, str] = {
    "train_batch_size": "a step is counted in tasks: .training(tasks_per_step=...)",
    "_train_batch_size_per_learner": "a step is counted in tasks: .training(tasks_per_step=...), "
    "and memory bounded by .training(micro_tokens=...)",
    "gamma": "discounting is the algorithm's: .training(step_credit='per_step', gamma=...), or "
    "PPOConfig().training(gamma=...)",
    "policies": "who plays and who learns is said by .players({...})",
    "policy_mapping_fn": "who plays and who learns is said by .players({...})",
    "_rl_module_spec": "the policy is a transformers model: .model(path) and .lora(rank)",
    "_model_config": "the policy is a transformers model: .model(path) and .lora(rank)",
    "_learner_class": "losses are algorithms of rllm_learn.algorithms, which any learner runs",
    "_learner_connector": "learners take token records, not RLlib's batches",
    "_env_to_module_connector": "the agent makes messages of observations: .agent(agent_class=...)",
    "_module_to_env_connector": "the agent makes actions of responses: .agent(agent_class=...)",
    "torch_skip_nan_gradients": "a step whose gradient is not finite is skipped always",
    "_torch_grad_scaler_class": "compute in bfloat16 needs none: .model(path, dtype='bfloat16')",
    "_torch_lr_scheduler_classes": "use .training(warmup_updates=...)",
    "torch_compile_learner": "the learner's shapes change with every batch",
    "sample_timeout_s": "bound episodes: .rollout(step_timeout=..., trajectory_timeout=...)",
    "evaluation_parallel_to_training": "engines are shared, and would change weights meanwhile",
    "ignore_env_runner_failures": "lost runners are restarted and their episodes played again",
    "num_gpus_per_env_runner": "env runners hold no model; engines do: .engine(num_gpus=...)",
    "num_gpus": "name who needs them: .learners(num_gpus_per_learner=...), .engine(num_gpus=...)",
    "optimizer": "the optimizer is AdamW: .training(betas=..., weight_decay=...)",
    "shuffle_batch_per_epoch": "minibatches are drawn in a new order each epoch always",
    "explore": "evaluation plays both sampled and greedy",
}


def check_rllib_options(config: AlgorithmConfig) -> None:
    """Refuse an option of RLlib that was changed and has no effect here.

    Args:
        config: Of a class of ours; what a new one of that class holds counts as unchanged.

    Raises:
        ConfigError: Naming the option, and why, or what to use instead.
    """
    fresh = type(config)()
    # RLlib writes some values in another form when it copies a configuration.
    copied = vars(type(config).from_state(fresh.get_state()))
    ours = vars(fresh).keys() - vars(AlgorithmConfig()).keys()
    for name, value in vars(config).items():
        if name in HONOURED or name in ours or name not in vars(fresh):
            continue
        if not any(_equal(value, default[name]) for default in (vars(fresh), copied)):
            reason = REASONS.get(name, "it has no effect on a language agent's training here")
            raise ConfigError(f"{name.lstrip('_')}={value!r:.80} cannot be honoured: {reason}")


def _equal(one: Any, other: Any) -> bool:
    try:
        return one is other or bool(one == other)
    except Exception:  # values of RLlib compare themselves with what they do not expect
        return False


def given(value: Any, before: _Value) -> _Value:
    """Return a value, or where it was left out the one of before."""
    return before if value is UNSET else value
