"""Calls into agents' code, contained: whatever one does, its own episode alone ends, typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rllm_agents.agent import BaseAgent
from rllm_agents.errors import EpisodeFailure, RendererError, in_words
from rllm_agents.renderer import check_messages
from rllm_agents.types import Message, Step, TerminationReason, Trajectory

_T = TypeVar("_T")


def call_agent(name: str, function: Callable[..., _T], *arguments: Any) -> _T:
    """Call an agent's code.

    Raises:
        EpisodeFailure: It raised, exits and leaked cancellations included.
    """
    try:
        return function(*arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise EpisodeFailure(
            TerminationReason.AGENT_EXCEPTION, f"{name} of the agent raised {in_words(error)}"
        ) from error


def reset_agent(agent: BaseAgent) -> None:
    """Reset an agent that has played before, so that it begins a new trajectory.

    Raises:
        EpisodeFailure: It raised, or keeps its steps.
    """
    call_agent("reset", agent.reset)
    if trajectory_of(agent).steps:
        # The base class's own, which the `reset` of a subclass need not know of.
        agent._trajectory = Trajectory()
    if trajectory_of(agent).steps:
        raise EpisodeFailure(
            TerminationReason.AGENT_EXCEPTION,
            f"{type(agent).__name__} keeps the steps of its trajectory in reset; renew it there",
        )


def conversation_of(agent: BaseAgent) -> tuple[Message, ...]:
    """Return the messages that the next response answers.

    Raises:
        EpisodeFailure: They are no conversation.
    """
    messages = call_agent("chat_completions", getattr, agent, "chat_completions")
    try:
        check_messages(messages)
    except RendererError as error:
        raise EpisodeFailure(TerminationReason.AGENT_EXCEPTION, str(error)) from error
    return tuple(map(dict, messages))


def trajectory_of(agent: BaseAgent) -> Trajectory:
    """Return the agent's trajectory.

    Raises:
        EpisodeFailure: It is none.
    """
    trajectory = call_agent("trajectory", getattr, agent, "trajectory")
    if not isinstance(trajectory, Trajectory) or not isinstance(trajectory.steps, list):
        raise EpisodeFailure(
            TerminationReason.AGENT_EXCEPTION,
            "the agent's trajectory must be a Trajectory with a list of steps, got "
            f"{trajectory!r:.120}",
        )
    return trajectory


def settle_step(step: Step, agent: BaseAgent, num_before: int) -> tuple[Trajectory, Step]:
    """Put a step into the agent's trajectory, or its facts into the one that the agent appended.

    Args:
        step: Of the response that the agent has just taken in.
        agent: Whose response it is.
        num_before: Steps of the trajectory before that response.

    Returns:
        The trajectory and the step that stands in it.

    Raises:
        EpisodeFailure: The agent appended more than one step, or took some away.
    """
    trajectory = trajectory_of(agent)
    if len(trajectory.steps) == num_before:
        trajectory.steps.append(step)
        return trajectory, step
    if len(trajectory.steps) != num_before + 1:
        raise EpisodeFailure(
            TerminationReason.AGENT_EXCEPTION,
            f"after {num_before + 1} responses the agent's trajectory has "
            f"{len(trajectory.steps)} steps; update_from_model appends one Step or none",
        )
    own = trajectory.steps[-1]
    own.prompt_ids, own.response_ids = step.prompt_ids, step.response_ids
    own.logprobs, own.model_response = step.logprobs, step.model_response
    own.model_output = step.model_output
    own.observation, own.reward, own.done = step.observation, 0.0, False
    own.chat_completions = own.chat_completions or step.chat_completions
    return trajectory, own


def credit_steps(rewarded: Sequence[tuple[Step, float]], gamma: float) -> float:
    """Write rewards and discounted returns into steps; what an agent wrote there does not count.

    Args:
        rewarded: Steps in their order, each with its reward.
        gamma: Discount, in [0, 1].

    Returns:
        The sum of the rewards.
    """
    mc_return = total = 0.0
    for step, reward in reversed(rewarded):
        step.reward = reward
        step.mc_return = mc_return = reward + gamma * mc_return
        total += reward
    return total
