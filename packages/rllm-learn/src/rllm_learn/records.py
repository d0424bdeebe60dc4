"""From episodes to the plain token records that the learner's core takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rllm_agents import Episode, TokenRecord, Trajectory
from rllm_learn.algorithms import PlannedRollout
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.errors import TrainingError


def to_rollouts(episodes: Iterable[Episode], plan: Sequence[PlannedRollout]) -> list[Rollout]:
    """Return a rollout for each trajectory that the policy played and that has an outcome.

    Failed episodes are left out. An episode of several agents gives one rollout for each of their
    trajectories, with that trajectory's own reward and its name as the role; one of its
    trajectories without token ids was played by somebody else.

    Args:
        episodes: In the order of `plan`.
        plan: What each episode was made for.

    Raises:
        TrainingError: An episode has an outcome but no token ids: it was sampled by an engine
            that knows only text, and text that is tokenised again is not what was sampled.
    """
    rollouts = []
    for episode, planned in zip(episodes, plan, strict=True):
        if episode.failed:
            continue
        played = [t for t in episode.trajectories if t.token_records or not t.steps]
        if episode.trajectories and not played:
            raise TrainingError(
                f"episode {episode.id!r} has no token ids: its rollout engine returns text only, "
                "which can be evaluated but not learned from; use engine.name=transformers or vllm"
            )
        rollouts += [_to_rollout(episode, t, planned) for t in played if t.reward is not None]
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


def _to_rollout(episode: Episode, trajectory: Trajectory, planned: PlannedRollout) -> Rollout:
    reward = float(trajectory.reward or 0.0)
    return Rollout(
        planned.group,
        reward,
        tuple(to_sampled_sequence(record) for record in trajectory.token_records if record.turns),
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
