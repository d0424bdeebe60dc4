"""Shares of a batch, and one update on several ranks against a plain loop on one."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
import torch.multiprocessing as multiprocessing
from learn_fakes import (
    double_policy,
    plain_update,
    random_sequences,
    sequence,
    sequences_of_prompts,
)

from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.core.parallel import ProcessGroupRanks, SingleRank, share_of

RULE = UpdateRule(learning_rate=LearningRate(1e-2), max_grad_norm=0.7, micro_tokens=40)
LOSS = GRPO(GRPOConfig()).loss


class OneOf(SingleRank):
    """A rank of several, for what needs no communication."""

    def __init__(self, rank: int, size: int):
        self.rank = rank
        self.size = size


def learn_on_rank(rank: int, size: int, address: str, sequences: list, place: str) -> None:
    """What each process of a group does; runs in a process of its own."""
    torch.set_num_threads(1)
    ranks = ProcessGroupRanks(
        rank=rank, size=size, address=address, device=torch.device("cpu"), timeout_seconds=60
    )
    learner = Learner(double_policy(), RULE, ranks=ranks)
    report = learner.update(sequences, LOSS)
    torch.save((learner.state_dict()["parameters"], report.metrics), f"{place}/{rank}.pt")
    ranks.close()


def test_shares_are_disjoint_whole_and_balanced():
    sequences = [sequence([1] * n, sampled=[1]) for n in (9, 8, 7, 6, 5, 4, 3, 2)]
    shares = [share_of(sequences, OneOf(rank, 3)) for rank in range(3)]
    assert sorted(len(s) for share in shares for s in share) == [2, 3, 4, 5, 6, 7, 8, 9]
    # 44 tokens over three ranks: longest first to the emptiest gives 9+4+3, 8+5+2, 7+6.
    assert sorted(sum(map(len, share)) for share in shares) == [13, 15, 16]


def test_a_prompts_sequences_go_to_one_rank_where_ranks_stay_balanced():
    # Four prompts of 20 ids with four sequences of 5: a lot is 40, and two ranks get two each.
    sequences = sequences_of_prompts([(20, [5] * 4)] * 4)
    shares = [share_of(sequences, OneOf(rank, 2)) for rank in range(2)]
    assert [len({s.sampled.token_ids[:20] for s in share}) for share in shares] == [2, 2]
    assert [len(share) for share in shares] == [8, 8]
    # One prompt: lots of at most 100 / 8 ids are single sequences, and each rank gets as many.
    shares = [share_of(sequences[::4], OneOf(rank, 2)) for rank in range(2)]
    assert [len(share) for share in shares] == [2, 2]


def test_a_rank_may_get_nothing_and_one_rank_gets_everything():
    only = [sequence([1, 2], sampled=[1])]
    assert share_of(only, OneOf(0, 2)) == only
    assert share_of(only, OneOf(1, 2)) == []
    assert share_of(only, SingleRank()) == only


@pytest.mark.parametrize("count", [1, 5])
def test_an_update_on_two_ranks_equals_a_plain_loop_also_where_one_has_no_share(
    tmp_path: Path, count: int
):
    sequences = random_sequences(count)
    policy = double_policy()
    before = {name: p.detach().clone() for name, p in policy.named_parameters()}
    plain = copy.deepcopy(policy)
    plain_update(plain, sequences, RULE)
    changes = {name: p.detach() - before[name] for name, p in plain.named_parameters()}
    alone = Learner(policy, RULE).update(sequences, LOSS)
    address = f"file://{tmp_path}/rendezvous"
    multiprocessing.spawn(
        learn_on_rank, args=(2, address, sequences, str(tmp_path)), nprocs=2, join=True
    )
    of_ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    for parameters, metrics in of_ranks:
        assert parameters.keys() == changes.keys()
        for name, change in changes.items():
            difference = parameters[name] - before[name] - change
            # Adam divides by the root of the second moment: rounding of a gradient near 0 shows.
            assert difference.norm() < 1e-6 * change.norm()
        assert metrics == pytest.approx(alone.metrics, rel=1e-9)
    for name in changes:
        assert torch.equal(of_ranks[0][0][name], of_ranks[1][0][name])
