"""From settings to what learns: one policy, or several that share the model's frozen weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.learner_set import LearnerPlan, make_learners, share_frozen
from rllm_learn.core.model import PolicySpec
from rllm_learn.core.parallel import Ranks
from rllm_learn.settings import load_policy_of, load_teacher


def load_learners(
    spec: PolicySpec,
    rule: UpdateRule,
    plan: LearnerPlan,
    *,
    ranks: Ranks | None = None,
    **learner_args: Any,
) -> Any:
    """Load policies and make what learns them.

    Args:
        spec: Which model; all policies of the plan begin as it.
        rule: How each of them learns.
        plan: Which policies, and which teacher beside them.
        ranks: The group that this process is one of; None: it learns alone.
        learner_args: Further arguments of each `Learner`.

    Returns:
        A Learner, or a LearnerSet where there are several or copies are kept.

    Raises:
        ConfigError: The model cannot be loaded.
    """

    def make_split(_: nn.Module | None) -> Learner:
        # A device need not hold a whole model: it is split on its way there. What is split is not
        # shared between learners.
        policy = load_policy_of(replace(spec, device="cpu"))
        teacher = load_teacher(plan.teacher and replace(plan.teacher, device="cpu"))
        return Learner(policy, rule, teacher=teacher, ranks=ranks, **learner_args)

    if ranks is not None and ranks.shards:
        return make_learners(make_split, plan)
    teacher = load_teacher(plan.teacher)

    def make(other: nn.Module | None) -> Learner:
        policy = share_frozen(load_policy_of(spec), other)
        return Learner(policy, rule, teacher=teacher, ranks=ranks, **learner_args)

    return make_learners(make, plan)
