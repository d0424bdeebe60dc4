"""From episodes to the plain token records that the learner's core takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from rllm_agents import Episode, TokenRecord, Trajectory
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.errors import TrainingError


def to_rollouts(
    episodes: Iterable[Episode],
    plan: Sequence[PlannedRollout],
    adapters: Mapping[str, str] | None = None,
) -> list[Rollout]:
    """Return a rollout for each trajectory that the policy played and that has an outcome.

    Failed episodes are left out. An episode of several agents gives one rollout for each of their
    trajectories, with that trajectory's own reward and its name as the role; one of its
    trajectories without token ids was played by somebody else.

    Args:
        episodes: In the order of `plan`.
        plan: What each episode was made for.
        adapters: By role, the policy that it plays with and that learns from it; needed where
            several learn.

    Raises:
        TrainingError: An episode has an outcome but no token ids: it was sampled by an engine
            that knows only text, and text that is tokenised again is not what was sampled.
    """
    rollouts = []
    for episode, planned in zip(episodes, plan, strict=True):
        if episode.failed:
            continue
        learning = [t for t in episode.trajectories if t.info.get("learns", True)]
        played = [t for t in learning if t.token_records or not t.steps]
        if learning and not played:
            raise TrainingError(
                f"episode {episode.id!r} has no token ids: its rollout engine returns text only, "
                "which can be evaluated but not learned from; use engine.name=transformers or vllm"
            )
        rollouts += [
            _to_rollout(episode, t, planned, (adapters or {}).get(t.name, ""))
            for t in played
            if t.reward is not None
        ]
    return rollouts


def to_sampled_sequence(record: TokenRecord) -> SampledSequence:
    """Mark the sampled spans of a token record position by position."""
    mask = [False] * len(record.token_ids)
    steps = [-1] * len(record.token_ids)
    for turn in record.turns:
        length = turn.stop - turn.start
        mask[turn.start : turn.stop] = [True] * length
        steps[turn.start : turn.stop] = [turn.step_index] * length
    return SampledSequence(record.token_ids, tuple(mask), record.logprobs, tuple(steps))


def learned_reward(episode: Episode) -> float:
    """Return what those who learn have earned together; of opponents nothing counts."""
    return sum(t.reward or 0.0 for t in episode.trajectories if t.info.get("learns", True))


def _to_rollout(
    episode: Episode, trajectory: Trajectory, planned: PlannedRollout, adapter: str
) -> Rollout:
    reward = float(trajectory.reward or 0.0)
    sequences = [to_sampled_sequence(r) for r in trajectory.token_records if r.turns]
    return Rollout(
        planned.group,
        reward,
        tuple(replace(sequence, adapter=adapter) for sequence in sequences),
        greedy=planned.greedy,
        role=trajectory.name,
        ending=str(episode.termination_reason or ""),
        step_rewards=_step_rewards(trajectory, reward),
    )


def _step_rewards(trajectory: Trajectory, reward: float) -> tuple[float, ...]:
    """Return rewards of steps that add up to the trajectory's own.

    A workflow may judge a trajectory as a whole; what its steps do not account for was earned at
    the last one.
    """
    rewards = [step.reward for step in trajectory.steps]
    if rewards:
        rewards[-1] += reward - sum(rewards)
    return tuple(rewards)
