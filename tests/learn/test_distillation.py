from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from learn_fakes import random_sequences, summed_gradients, tiny_policy

from rllm_learn.algorithms import Distillation, DistillationConfig
from rllm_learn.core.batch import Rollout, SampledSequence, Scores
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.model import PolicySpec
from rllm_learn.errors import ConfigError
from rllm_learn.settings import teacher_spec


def scored(student: float, teacher: float) -> Rollout:
    """A rollout that sampled its second of two ids."""
    scores = Scores(policy=(0.0, student), teacher=(0.0, teacher))
    return Rollout(0, 0.0, (SampledSequence((1, 2), (False, True), (0.0, -1.0), scores=scores),))


def test_the_advantage_is_how_much_more_likely_the_teacher_finds_the_token():
    credit = Distillation(DistillationConfig()).credit(
        [scored(-1.0, -0.25), scored(-0.5, -2.5)], {}
    )
    assert [s.advantages for s in credit.sequences] == [(0.0, 0.75), (0.0, -2.0)]
    assert credit.metrics == {"teacher_kl": 0.625}


def test_the_estimate_has_the_gradient_of_the_reverse_divergence():
    # Three tokens: the exact gradient of KL(p || q) against the mean of -A log p over all tokens,
    # weighed by their probability under the student.
    logits = torch.tensor([0.3, -0.5, 0.9], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([0.2, 0.7, 0.1], dtype=torch.float64)
    p = logits.softmax(-1)
    (exact,) = torch.autograd.grad((p * (p.log() - q.log())).sum(), logits, retain_graph=True)
    algorithm = Distillation(DistillationConfig())
    logp = p.detach().log()
    rollouts = [scored(float(logp[v]), float(q[v].log())) for v in range(3)]
    advantages = torch.tensor([s.advantages[1] for s in algorithm.credit(rollouts, {}).sequences])
    mask = torch.ones(3, dtype=torch.bool)
    losses = algorithm.token_losses(p.log(), torch.zeros(3), advantages.double(), mask).values
    (estimate,) = torch.autograd.grad((p.detach() * losses).sum(), logits)
    assert torch.allclose(exact, estimate, atol=1e-6)


@pytest.mark.parametrize("micro_tokens", [1, 10_000])
def test_an_update_is_the_plain_loop_over_sampled_tokens(micro_tokens):
    student, teacher = tiny_policy(1), tiny_policy(2)
    drawn = [item.sampled for item in random_sequences(6)]
    terms = []
    for sampled in drawn:
        ids = torch.tensor([sampled.token_ids])
        ours = torch.log_softmax(student(input_ids=ids).logits[0], -1)
        theirs = torch.log_softmax(teacher(input_ids=ids).logits[0], -1).detach()
        for t, is_sampled in enumerate(sampled.action_mask):
            if is_sampled:
                token = sampled.token_ids[t]
                gap = theirs[t - 1, token] - ours[t - 1, token].detach()
                terms.append(-gap * ours[t - 1, token])
    torch.stack(terms).mean().backward()
    expected = {name: p.grad for name, p in student.named_parameters()}
    student.zero_grad()

    learner = Learner(student, UpdateRule(micro_tokens=micro_tokens), teacher=teacher)
    algorithm = Distillation(DistillationConfig())
    scores = learner.score(drawn, algorithm.scores)
    rollouts = [
        Rollout(i, 0.0, (replace(sampled, scores=own),))
        for i, (sampled, own) in enumerate(zip(drawn, scores, strict=True))
    ]
    before = {name: p.clone() for name, p in teacher.named_parameters()}
    gradients = summed_gradients(student)
    learner.update(algorithm.credit(rollouts, {}).sequences, algorithm.loss)
    for name, gradient in expected.items():
        assert torch.allclose(gradients[name] / len(terms), gradient, atol=1e-5), name
    assert all(torch.equal(before[name], p) for name, p in teacher.named_parameters())


def test_a_student_that_is_its_own_teacher_learns_nothing():
    learner = Learner(tiny_policy(), UpdateRule(), teacher=tiny_policy())
    (item,) = random_sequences(1)
    (scores,) = learner.score([item.sampled], {"policy", "teacher"})
    rollout = Rollout(0, 1.0, (replace(item.sampled, scores=scores),))
    credit = Distillation(DistillationConfig()).credit([rollout], {})
    assert credit.metrics["teacher_kl"] == pytest.approx(0.0, abs=1e-6)


def test_a_learner_without_a_teacher_refuses_to_score_with_one():
    (item,) = random_sequences(1)
    with pytest.raises(ValueError, match="teacher=model"):
        Learner(tiny_policy(), UpdateRule()).score([item.sampled], {"teacher"})


def test_a_teacher_must_be_named_be_there_and_share_the_vocabulary(tmp_path):
    from rllm_agents.models import TINY

    student = PolicySpec(path=TINY)
    with pytest.raises(ConfigError, match=r"algorithm\.teacher must be a model directory"):
        teacher_spec(DistillationConfig(), student)
    with pytest.raises(ConfigError, match=r"algorithm\.teacher='/nowhere' does not exist"):
        teacher_spec(DistillationConfig(teacher="/nowhere"), student)
    from transformers import AutoTokenizer

    tiny_policy().save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    tokenizer.add_tokens(["another"])
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="another vocabulary"):
        teacher_spec(DistillationConfig(teacher=str(tmp_path)), student)
    spec = teacher_spec(DistillationConfig(teacher="tiny"), student)
    assert spec is not None
    assert (spec.path, spec.lora_rank) == (TINY, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rollouts_per_task": 0}, "rollouts_per_task"),
        ({"kl_coefficient": 0.1, "kl_place": "reward"}, "does nothing in distillation"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        DistillationConfig(**settings)
