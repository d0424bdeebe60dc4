"""DPO on a file: make what was chosen more likely than what was rejected."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllm_agents import Renderer
from rllm_agents.metrics import task_key
from rllm_agents.models import resolve_model_path
from rllm_envs import Dataset
from rllm_learn.algorithms.dpo import DPO, DPOConfig, Pair, pairs_by_reward
from rllm_learn.config import DPOFileConfig
from rllm_learn.conversations import conversation_sequences, problem_of, refuse_row
from rllm_learn.core.batch import Rollout
from rllm_learn.core.learner import Learner
from rllm_learn.errors import ConfigError
from rllm_learn.offline import check_length, run_updates, shuffled_for_ever, unused_run_dir
from rllm_learn.settings import (
    apply_torch_threads,
    load_policy_of,
    load_tokenizer,
    policy_spec,
    update_rule,
)

FIGURES = {"loss": "dpo/preference_loss", "preferred": "dpo/preferred", "margin": "dpo/margin"}


def train_on_preferences(config: DPOFileConfig) -> dict[str, Any]:
    """Train a model on pairs of a file and write it, with its metrics, to the run directory.

    The result is under `model/`, as after `train_supervised`. The reference is the model as it was
    loaded.

    Returns:
        The summary that is also written to `summary.json`.

    Raises:
        ConfigError: A setting is wrong, or a row of the data.
    """
    if config.data is None:
        raise ConfigError(
            "data is not set: name a JSONL file with `prompt`, `chosen` and `rejected` in each "
            "row, or one of episodes with `task`, `messages` and `reward`"
        )
    apply_torch_threads(config.torch_threads, config.model.path)
    path = unused_run_dir(config, "dpo")
    spec = policy_spec(config.model, resolve_model_path(config.model.path), seed=config.seed)
    tokenizer = load_tokenizer(spec.path)
    pairs = read_pairs(Path(config.data), Renderer(tokenizer), config)
    stream = shuffled_for_ever(pairs, config.seed)
    rule = update_rule(config.learner, config.model, config.num_updates, seed=config.seed)
    learner = Learner(load_policy_of(spec), rule, keeps_reference=True)
    algorithm = DPO(DPOConfig(beta=config.beta))

    def update() -> dict[str, float]:
        batch = list(itertools.islice(stream, config.batch_pairs))
        credit = algorithm.credit_pairs(_scored(learner, batch, algorithm))
        report = learner.update(credit.sequences, algorithm.loss)
        kept = ("entropy", "grad_norm", "learning_rate")
        metrics = {**{name: report.metrics[name] for name in kept}, **credit.metrics}
        return {f"dpo/{name}": value for name, value in metrics.items()}

    return run_updates(config, path, learner, update, tokenizer=tokenizer, figures=FIGURES)


def read_pairs(path: Path, renderer: Renderer, config: DPOFileConfig) -> list[Pair]:
    """Read preferences, or episodes, and tokenise them.

    A row with `chosen` is a pair: `prompt`, `chosen` and `rejected` are lists of messages, or
    texts of one. Any other row is an episode as `rllm eval` writes it; of those of one task the
    best is paired with the worst, the next with the next, as far as their rewards differ.

    Raises:
        ConfigError: A row cannot be learned from (it is named), or there is no pair.
    """
    rollouts: list[Rollout] = []
    groups: dict[str, int] = {}
    for number, row in enumerate(Dataset.from_file(path), start=1):
        if "chosen" in row:
            prompt = _messages(row.get("prompt"), "user")
            sides = [_messages(row.get(name), "assistant") for name in ("chosen", "rejected")]
            refuse_row(path, number, row, _problem_of_pair(prompt, *sides))
            group = groups.setdefault(f"row {number}", len(groups))
            judged = [([*prompt, *side], len(prompt), 1.0 - i) for i, side in enumerate(sides)]
        else:
            refuse_row(path, number, row, _problem_of_episode(row))
            if row["reward"] is None:  # a failed one, which nobody judged
                continue
            group = groups.setdefault(f"task {task_key(row['task'])}", len(groups))
            judged = [(row["messages"], 0, float(row["reward"]))]
        for messages, given, reward in judged:
            sequences = conversation_sequences(renderer, messages, given=given)
            check_length(max(len(s.token_ids) for s in sequences), number, config)
            rollouts.append(Rollout(group, reward, tuple(sequences)))
    pairs = pairs_by_reward(rollouts)
    if not pairs:
        raise ConfigError(
            f"{path} holds no pair: no two episodes of one task differ in reward; sample each task "
            "several times, for example with rllm eval samples_per_task=8"
        )
    return pairs


def _scored(learner: Learner, pairs: list[Pair], algorithm: DPO) -> list[Pair]:
    """Return pairs that carry what policy and reference say of them."""
    sequences = [s for pair in pairs for rollout in pair for s in rollout.sequences]
    scores = iter(learner.score(sequences, algorithm.scores))

    def scored(rollout: Rollout) -> Rollout:
        own = tuple(replace(s, scores=next(scores)) for s in rollout.sequences)
        return replace(rollout, sequences=own)

    return [(scored(chosen), scored(rejected)) for chosen, rejected in pairs]


def _messages(value: Any, role: str) -> Any:
    """Return a text as the message of a role; what is no text as it is."""
    return [{"role": role, "content": value}] if isinstance(value, str) else value


def _problem_of_pair(prompt: Any, chosen: Any, rejected: Any) -> str | None:
    problem = problem_of(prompt, "prompt", needs_assistant=False)
    for name, side in (("chosen", chosen), ("rejected", rejected)):
        problem = problem or problem_of(side, name)
    if problem is None and chosen == rejected:
        return "`chosen` and `rejected` are equal"
    return problem


def _problem_of_episode(row: Mapping[str, Any]) -> str | None:
    if "task" not in row or "reward" not in row or "messages" not in row:
        return "a row needs `prompt`, `chosen` and `rejected`, or `task`, `messages` and `reward`"
    reward = row["reward"]
    if reward is not None and not isinstance(reward, int | float):
        return f"`reward` must be a number or null, got {reward!r}"
    return None if reward is None else problem_of(row["messages"], "messages")
