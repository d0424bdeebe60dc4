"""PPO once more, as plain loops over rollouts, actions and positions."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from itertools import pairwise

import peft
import torch
from torch import Tensor, nn

from rllm_learn.algorithms import PPO, PPOConfig
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.core.critic import CriticRule
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.model import trainable_parameters
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.step import PolicyLearner, _scored

SETTINGS = {
    "gamma": 0.9,
    "lambda_": 0.8,
    "value_clip": 0.04,
    "vf_loss_coeff": 0.5,
    "entropy_coefficient": 0.01,
    "kl_coefficient": 0.05,
    "kl_place": "reward",
}


def ppo_rule(
    *, shares_trunk: bool, micro_tokens: int = 64, num_epochs: int = 2, minibatch: int = 3
) -> UpdateRule:
    """Two epochs of minibatches, with rates and clipping that matter."""
    return UpdateRule(
        learning_rate=LearningRate(3e-3),
        max_grad_norm=0.4,
        micro_tokens=micro_tokens,
        num_epochs=num_epochs,
        minibatch_sequences=minibatch,
        seed=5,
        critic=CriticRule(shares_trunk=shares_trunk, learning_rate=LearningRate(2e-2)),
    )


def random_rollouts(count: int = 4, *, seed: int = 0) -> list[Rollout]:
    """Rollouts of two to four steps in one or two sequences, with what they are told in between."""
    draw = torch.Generator().manual_seed(seed)

    def integer(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=draw))

    result = []
    for group in range(count):
        num_steps = integer(2, 5)
        cut = integer(1, num_steps)  # the steps before it are one sequence, the others another
        bounds = [0, num_steps] if group % 2 else [0, cut, num_steps]
        sequences = []
        for first, stop in pairwise(bounds):
            steps: list[int] = []
            for step in range(first, stop):
                steps += [-1] * integer(1, 5) + [step] * integer(1, 5)
            logprobs = (-torch.rand(len(steps), generator=draw) - 2.5).tolist()
            sequences.append(
                SampledSequence(
                    tuple(torch.randint(0, 32, (len(steps),), generator=draw).tolist()),
                    tuple(step >= 0 for step in steps),
                    tuple(lp * (s >= 0) for lp, s in zip(logprobs, steps, strict=True)),
                    tuple(steps),
                )
            )
        rewards = torch.randn(num_steps, generator=draw).tolist()
        result.append(Rollout(group, sum(rewards), tuple(sequences), step_rewards=tuple(rewards)))
    return result


def shift_head(head: nn.Module) -> None:
    """Give a value head weights that are not 0, so that its trunk has a gradient at once."""
    for parameter in head.parameters():
        values = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(3))
        parameter.data.copy_(values * 0.3)


def shift_head_of(learner: Learner) -> None:
    """Let a learner's critic start as the plain one does."""
    assert learner.critic is not None
    shift_head(learner.critic.head)


def update_of(learner: PolicyLearner, rollouts: list[Rollout], **settings) -> dict[str, float]:
    """Score, give credit and update, as a training step does; return the figures."""
    algorithm = PPO(PPOConfig(**{**SETTINGS, **settings}))
    scored = _scored(learner, algorithm.scores, rollouts)
    credit = algorithm.credit(scored, {})
    report = learner.update(credit.sequences, algorithm.loss)
    return {**credit.metrics, **report.metrics}


@dataclass
class Plain:
    """A policy and its critic, scored one sequence and one position at a time."""

    policy: nn.Module
    trunk: nn.Module
    head: nn.Linear

    @classmethod
    def of(cls, policy: nn.Module, *, shares_trunk: bool) -> Plain:
        """Make a critic beside a policy: on its trunk, or on a whole copy of it."""
        source = policy if shares_trunk else copy.deepcopy(policy)
        base = source.get_base_model() if isinstance(source, peft.PeftModel) else source
        head = nn.Linear(16, 1, dtype=torch.float64)
        shift_head(head)
        return cls(policy, base.model, head)

    def critic_parameters(self, *, shares_trunk: bool) -> list[nn.Parameter]:
        """What the critic's own rate applies to."""
        own = [] if shares_trunk else [p for p in self.trunk.parameters() if p.requires_grad]
        return [*own, *self.head.parameters()]

    def rows(self, sequence: SampledSequence) -> tuple[Tensor, Tensor]:
        """Return log-softmax rows (T, V) and values (T,) that stand before each position."""
        ids = torch.tensor([sequence.token_ids])
        logits = self.policy(input_ids=ids).logits[0].log_softmax(-1)
        states = self.trunk(input_ids=ids).last_hidden_state[0]
        values = self.head(states)[:, 0]
        nothing = torch.zeros_like(values[:1])
        return torch.cat([logits[:1] * 0, logits[:-1]]), torch.cat([nothing, values[:-1]])


def single(value: float) -> float:
    """Round to float32, which is what batches hold."""
    return torch.tensor(value, dtype=torch.float32).item()


def plain_credit(
    plain: Plain, reference: nn.Module, rollouts: list[Rollout], *, per_turn: bool
) -> list[dict]:
    """Return for each sequence its advantages, and its targets as {position: (R, V, weight)}.

    Advantages are the sum over all later actions l of (gamma lambda)^(l - k) delta_l.
    """
    gamma, lambda_ = SETTINGS["gamma"], SETTINGS["lambda_"]
    kept = []
    for rollout in rollouts:
        actions: list[tuple[int, list[int], int]] = []
        values, penalties = [], []
        for index, sequence in enumerate(rollout.sequences):
            with torch.no_grad():
                rows, own = plain.rows(sequence)
                ids = torch.tensor([sequence.token_ids])
                other = reference(input_ids=ids).logits[0].log_softmax(-1)
            for t in range(1, len(sequence.token_ids)):
                step, token = sequence.step_indices[t], sequence.token_ids[t]
                if step < 0:
                    continue
                kl = (rows[t, token] - other[t - 1, token]).item()
                if per_turn and actions and actions[-1][2] == step:
                    actions[-1][1].append(t)
                    penalties[-1] += SETTINGS["kl_coefficient"] * kl
                else:
                    actions.append((index, [t], step))
                    values.append(own[t].item())
                    penalties.append(SETTINGS["kl_coefficient"] * kl)
        rewards = [-penalty for penalty in penalties]
        for step, reward in enumerate(rollout.step_rewards):
            rewards[max(k for k, action in enumerate(actions) if action[2] == step)] += reward
        n = len(actions)
        deltas = [
            rewards[k] + gamma * (values[k + 1] if k + 1 < n else 0.0) - values[k] for k in range(n)
        ]
        found = [{"advantages": {}, "targets": {}} for _ in rollout.sequences]
        for k, (index, positions, _) in enumerate(actions):
            advantage = sum((gamma * lambda_) ** (j - k) * deltas[j] for j in range(k, n))
            for t in positions:
                found[index]["advantages"][t] = advantage
            found[index]["targets"][positions[0]] = (
                single(advantage + values[k]), single(values[k]), len(positions),
            )  # fmt: skip
        kept += found
    everything = torch.tensor([a for item in kept for a in item["advantages"].values()]).double()
    mean, deviation = everything.mean(), everything.std(correction=0)
    for item in kept:
        item["advantages"] = {
            t: single((a - mean.item()) / (deviation.item() + 1e-8))
            for t, a in item["advantages"].items()
        }
    return kept


def plain_loss(plain: Plain, sequence: SampledSequence, credit: dict) -> Tensor:
    """Sum of everything that is minimised over one sequence."""
    rows, values = plain.rows(sequence)
    total = values.sum() * 0.0
    for t, advantage in credit["advantages"].items():
        ratio = (rows[t, sequence.token_ids[t]] - single(sequence.logprobs[t])).exp()
        total = total - torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        entropy = -(rows[t].exp() * rows[t]).sum()
        total = total - SETTINGS["entropy_coefficient"] * entropy
    for t, (target, old, weight) in credit["targets"].items():
        clip = SETTINGS["value_clip"]
        near = values[t].clamp(old - clip, old + clip)
        error = torch.maximum((values[t] - target) ** 2, (near - target) ** 2)
        total = total + SETTINGS["vf_loss_coeff"] * weight * error
    return total


def plain_ppo(
    policy: nn.Module, rollouts: list[Rollout], rule: UpdateRule, *, per_turn: bool
) -> Plain:
    """Update a policy, and a critic that is made here; return both."""
    assert rule.critic is not None
    shares_trunk = rule.critic.shares_trunk
    plain = Plain.of(policy, shares_trunk=shares_trunk)
    credit = plain_credit(plain, copy.deepcopy(policy), rollouts, per_turn=per_turn)
    sequences = [sequence for rollout in rollouts for sequence in rollout.sequences]
    groups = [
        list(trainable_parameters(policy).values()),
        plain.critic_parameters(shares_trunk=shares_trunk),
    ]
    rates = (rule.learning_rate.peak, rule.critic.learning_rate.peak)
    optimizers = [
        torch.optim.AdamW(group, lr=rate, betas=rule.betas, weight_decay=rule.weight_decay)
        for group, rate in zip(groups, rates, strict=True)
    ]
    num_updates = 0
    for _ in range(rule.num_epochs):
        order = torch.Generator().manual_seed(rule.seed * 1_000_003 + num_updates)
        indices = torch.randperm(len(sequences), generator=order).tolist()
        for start in range(0, len(indices), rule.minibatch_sequences):
            minibatch = indices[start : start + rule.minibatch_sequences]
            loss = sum(plain_loss(plain, sequences[i], credit[i]) for i in minibatch)
            count = sum(len(credit[i]["advantages"]) for i in minibatch)
            for parameter in [*policy.parameters(), *groups[1]]:
                parameter.grad = None
            (loss / count).backward()
            for group, optimizer in zip(groups, optimizers, strict=True):
                torch.nn.utils.clip_grad_norm_(group, rule.max_grad_norm)
                optimizer.step()
            num_updates += 1
    return plain


def learner_of(policy: nn.Module, rule: UpdateRule, **more) -> Learner:
    """A learner whose critic starts as the plain one does."""
    learner = Learner(policy, rule, keeps_reference=True, **more)
    shift_head_of(learner)
    return learner
