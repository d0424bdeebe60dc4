"""From episodes to the plain token records that the learner's core takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rllm_agents import Episode, TokenRecord
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.errors import TrainingError


def to_rollouts(episodes: Iterable[Episode], plan: Sequence[PlannedRollout]) -> list[Rollout]:
    """Return a rollout for each episode that has an outcome; failed ones are left out.

    Args:
        episodes: In the order of `plan`.
        plan: What each episode was made for.

    Raises:
        TrainingError: An episode has an outcome but no token ids: it was sampled by an engine
            that knows only text, and text that is tokenised again is not what was sampled.
    """
    rollouts = []
    for episode, planned in zip(episodes, plan, strict=True):
        reward = episode.reward
        if reward is None:
            continue
        records = [r for trajectory in episode.trajectories for r in trajectory.token_records]
        sequences = tuple(to_sampled_sequence(record) for record in records if record.turns)
        if not sequences and any(trajectory.steps for trajectory in episode.trajectories):
            raise TrainingError(
                f"episode {episode.id!r} has no token ids: its rollout engine returns text only, "
                "which can be evaluated but not learned from; use engine.name=transformers or vllm"
            )
        rollouts.append(Rollout(planned.group, reward, sequences, greedy=planned.greedy))
    return rollouts


def to_sampled_sequence(record: TokenRecord) -> SampledSequence:
    """Mark the sampled spans of a token record position by position."""
    mask = [False] * len(record.token_ids)
    for turn in record.turns:
        mask[turn.start : turn.stop] = [True] * (turn.stop - turn.start)
    return SampledSequence(record.token_ids, tuple(mask), record.logprobs)
