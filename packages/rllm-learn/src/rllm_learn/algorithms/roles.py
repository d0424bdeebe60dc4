"""An algorithm for each role of an episode: players of a game, parts of a workflow.

Rollouts of different roles are never compared: each role gets its credit by itself, from the
algorithm that it has. Roles that learn with equal settings are one batch of their algorithm.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rllm_learn.algorithms.base import Algorithm, Credit, PlannedRollout
from rllm_learn.core.batch import Rollout, TokenBatch, TokenSequence, select_rows
from rllm_learn.core.logprobs import PolicyOutput
from rllm_learn.core.losses import LossSum

_MARK = "/"


class RoleAlgorithms:
    """Several algorithms as one. An `Algorithm`.

    Args:
        default: Of roles that have none of their own.
        own: By role.
    """

    def __init__(self, default: Algorithm, own: Mapping[str, Algorithm]):
        self._default = default
        self._own = dict(own)
        self._all = [default, *self._own.values()]

    def of(self, role: str) -> Algorithm:
        """Return the algorithm of a role."""
        return self._own.get(role, self._default)

    @property
    def scores(self) -> frozenset[str]:
        """Ask the learner for what any of them needs."""
        return frozenset().union(*(algorithm.scores for algorithm in self._all))

    def plan(self, num_tasks: int) -> list[PlannedRollout]:
        """Return rollouts enough for each of them: of every task, the most that any asks for.

        All roles of an episode play it together, so a greedy rollout is greedy for all of them.
        """
        plans = [algorithm.plan(1) for algorithm in self._all]
        counts = {
            greedy: max(sum(p.greedy == greedy for p in plan) for plan in plans)
            for greedy in (True, False)
        }
        return [
            PlannedRollout(task_index=task, group=task, greedy=greedy)
            for task in range(num_tasks)
            for greedy, count in counts.items()
            for _ in range(count)
        ]

    def refill(self, rollouts: Sequence[Rollout], num_tasks: int, num_refills: int) -> int:
        """Return the most tasks that any of them asks for, judging by its own roles."""
        wanted = [0]
        for role, own in _by_role(rollouts).items():
            algorithm = self.of(role)
            wanted.append(algorithm.refill(_asked_for(algorithm, own), num_tasks, num_refills))
        return max(wanted)

    def credit(self, rollouts: Sequence[Rollout], memory: Mapping[str, float]) -> Credit:
        """Let each role's algorithm give credit to that role's rollouts.

        Where algorithms differ, each one's loss is its own mean, and they are weighed by the
        tokens that they learn from.

        Args:
            rollouts: Of all roles.
            memory: Names begin with the role.
        """
        sequences: dict[int, list[TokenSequence]] = defaultdict(list)
        metrics: dict[str, float] = {}
        kept = dict(memory)
        for role, own in _by_role(rollouts).items():
            algorithm, mark = self.of(role), f"{role}{_MARK}"
            of_role = {k.removeprefix(mark): v for k, v in memory.items() if k.startswith(mark)}
            credit = algorithm.credit(_asked_for(algorithm, own), of_role)
            sequences[id(algorithm)] += [replace(s, role=role) for s in credit.sequences]
            kept |= {f"{mark}{name}": value for name, value in credit.memory.items()}
            metrics |= {f"{mark}{name}": value for name, value in credit.metrics.items()}
            rewards = [rollout.reward for rollout in own if not rollout.greedy]
            metrics[f"{mark}reward"] = sum(rewards) / max(len(rewards), 1)
        parts = [part for part in sequences.values() if part]
        if len(parts) > 1:
            parts = [_counted_by_tokens(part) for part in parts]
        return Credit([s for part in parts for s in part], metrics, kept)

    def loss(self, output: PolicyOutput, batch: TokenBatch) -> LossSum:
        """Sum over each role's rows the loss of its algorithm."""
        rows: dict[int, list[int]] = defaultdict(list)
        for row, role in enumerate(batch.roles):
            rows[id(self.of(role))].append(row)
        if len(rows) == 1:
            return self.of(batch.roles[0]).loss(output, batch)
        parts = [
            self.of(batch.roles[own[0]]).loss(
                select_rows(output, own, len(batch.roles)),
                select_rows(batch, own, len(batch.roles)),
            )
            for own in rows.values()
        ]
        stats = dict(parts[0].stats)
        for part in parts[1:]:
            for name, value in part.stats.items():
                stats[name] = stats[name] + value if name in stats else value
        total = parts[0].total
        for part in parts[1:]:
            total = total + part.total
        return LossSum(total, batch.count, stats)


def _by_role(rollouts: Sequence[Rollout]) -> dict[str, list[Rollout]]:
    found: dict[str, list[Rollout]] = defaultdict(list)
    for rollout in rollouts:
        found[rollout.role].append(rollout)
    return dict(sorted(found.items()))


def _asked_for(algorithm: Algorithm, rollouts: Sequence[Rollout]) -> list[Rollout]:
    """Leave greedy rollouts out, which another role's algorithm has asked for."""
    takes_greedy = any(planned.greedy for planned in algorithm.plan(1))
    return [rollout for rollout in rollouts if takes_greedy or not rollout.greedy]


def _counted_by_tokens(sequences: Sequence[TokenSequence]) -> list[TokenSequence]:
    """Scale weights and counts so that the counts add up to the number of sampled tokens."""
    tokens = sum(s.sampled.num_actions for s in sequences)
    counts = [float(s.sampled.num_actions) if s.count is None else s.count for s in sequences]
    scale = tokens / sum(counts)
    return [
        replace(s, weight=s.weight * scale, count=count * scale)
        for s, count in zip(sequences, counts, strict=True)
    ]
