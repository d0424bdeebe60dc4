"""`Workflow`: a user's own way through a task, with as many model calls and roles as it takes."""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.agent_calls import (
    call_agent,
    conversation_of,
    reset_agent,
    settle_step,
    trajectory_of,
)
from rllm_agents.attribution import finite_number
from rllm_agents.call_threads import call_in_thread
from rllm_agents.env_calls import EnvSession
from rllm_agents.errors import EpisodeFailure, TerminationEvent, in_words
from rllm_agents.recorded_engine import RecordedEngine, step_of
from rllm_agents.types import (
    Action,
    Episode,
    Message,
    Step,
    TerminationReason,
    Trajectory,
)

_DEFAULT_NAME = Trajectory().name
_FAILURE = TerminationReason.WORKFLOW_EXCEPTION
_GRADER_TIMEOUT = TerminationReason.GRADER_TIMEOUT


class Workflow(ABC):
    """Base of workflows; a subclass writes `run`.

    ```python
    class Answer(Workflow):
        async def run(self, task, uid, **kwargs):
            solver = self.new_trajectory("solver")
            messages = [{"role": "user", "content": task["question"]}]
            output = await self.rollout_engine.get_model_response(messages, trajectory=solver)
            solver.reward = float(output.text == task["answer"])
    ```

    An engine makes several instances and runs each task on one that is idle, so what an instance
    holds is never shared between tasks that run at once; it may hold what the next task uses too.

    Args:
        rollout_engine: Given by the engine; pass it on where a subclass has its own arguments.
        gamma: If above 0, rewards of steps become returns discounted by it.
        reward_bonus_coeff: If above 0, a step's reward grows by this times its rise over the one
            before.
    """

    def __init__(
        self,
        rollout_engine: RecordedEngine,
        *,
        gamma: float = 0.0,
        reward_bonus_coeff: float = 0.0,
    ) -> None:
        self.rollout_engine = rollout_engine
        self.gamma = gamma
        self.reward_bonus_coeff = reward_bonus_coeff
        self.task: Any = None
        self.uid = ""

    @abstractmethod
    async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode | None:
        """Work on a task.

        Args:
            task: The problem.
            uid: Id of the request; it becomes the Episode's.
            **kwargs: Accepted so that workflows outlive additions.

        Returns:
            An Episode, whose judgement stands as it is; or None: then it is made of all
            trajectories that were made, committed or belong to agents, and judged by their rewards.

        Raises:
            TerminationEvent: Ends the episode for its reason.
        """

    def reset(self, task: Any = None, uid: str = "") -> None:
        """Begin a task: note it, and reset the agents that the workflow has as attributes."""
        self.task, self.uid = task, uid
        for _, agent in self._agents():
            reset_agent(agent)

    # What `run` may use

    def new_trajectory(self, name: str, task: Any = None) -> Trajectory:
        """Start a trajectory of a role; it is part of the episode.

        Trajectories of one name are compared with each other in training: N solvers of one task
        are all called "solver". One whose reward is set to None is shown and not learned from.

        Args:
            name: The role.
            task: What it worked on, where not the workflow's.
        """
        trajectory = Trajectory(name=name, task=self.task if task is None else task)
        run = self.rollout_engine.run
        run.own(trajectory)
        run.trajectories.append(trajectory)
        return trajectory

    async def ask(self, agent: BaseAgent, observation: Any = None) -> Step:
        """Let an agent take its turn: the model answers its conversation, and it acts on that.

        Args:
            agent: Whose turn it is; it has taken in what it is to answer.
            observation: Kept in the step that is returned, with its action.

        Raises:
            TerminationEvent: No token is left, or the response was cut off by its limit.
            EpisodeFailure: The engine or the agent failed.
        """
        trajectory = trajectory_of(agent)
        num_before = len(trajectory.steps)
        output = await self.rollout_engine.get_model_response(
            conversation_of(agent), trajectory=trajectory
        )
        step = step_of(output)
        step.observation = observation
        if output.finish_reason == "length":
            trajectory.steps.append(step)
            raise TerminationEvent(TerminationReason.MAX_RESPONSE_LENGTH_EXCEEDED)
        action = call_agent("update_from_model", agent.update_from_model, output.text)
        after, step = settle_step(step, agent, num_before)
        if after.uid != trajectory.uid:
            raise EpisodeFailure(
                TerminationReason.AGENT_EXCEPTION,
                "the agent exchanged its trajectory in update_from_model; it does so in reset",
            )
        step.action = action.action if isinstance(action, Action) else action
        return step

    def open_env(self, make_env: Callable[[], Any], *, is_blocking: bool = True) -> EnvSession:
        """Return an environment's session: ``await reset()``, ``await step(action)``.

        It is contained, has the engine's deadlines, and is closed when the task ends.

        Args:
            make_env: Constructs the environment.
            is_blocking: Whether the construction may block, and so runs in a thread; afterwards
                the environment itself says (`blocking = False`).
        """
        setting = self.rollout_engine.setting
        limits, threads = setting.model.limits, setting.threads
        session = EnvSession(make_env, is_blocking=is_blocking, threads=threads, limits=limits)
        self.rollout_engine.run.env_sessions.append(session)
        return session

    async def run_in_executor(
        self, function: Callable[..., Any], *arguments: Any, **keywords: Any
    ) -> Any:
        """Call blocking code in a thread and return what it returns.

        Raises:
            EpisodeFailure: It took longer than `step_timeout`, or raised an exit.
            Exception: What it raised.
        """
        setting = self.rollout_engine.setting
        name = getattr(function, "__name__", "a function")
        outcome = await call_in_thread(
            setting.threads,
            lambda: function(*arguments, **keywords),
            name,
            setting.model.limits.step_timeout_seconds,
        )
        if isinstance(outcome.error, Exception):
            raise outcome.error
        if outcome.error is not None:
            words = f"{name} raised {in_words(outcome.error)}"
            raise EpisodeFailure(_FAILURE, words) from outcome.error
        return outcome.value

    async def grade(self, reward_function: Callable[..., Any], task: Any, answer: str) -> float:
        """Judge an answer.

        Args:
            reward_function: Called with task and answer; a plain one in a thread, a coroutine
                function on the event loop. Returns a number or a `rllm_envs.RewardOutput`.
            task: The problem.
            answer: The whole response.

        Raises:
            EpisodeFailure: It raised, took longer than `step_timeout` or returned no number.
        """
        try:
            if inspect.iscoroutinefunction(reward_function):
                judged = await reward_function(task, answer)
            else:
                judged = await self.run_in_executor(reward_function, task, answer)
        except EpisodeFailure as error:
            is_late = error.reason is TerminationReason.ENV_STEP_TIMEOUT
            reason = _GRADER_TIMEOUT if is_late else TerminationReason.GRADER_ERROR
            raise EpisodeFailure(reason, str(error)) from error
        except Exception as error:
            raise EpisodeFailure(
                TerminationReason.GRADER_ERROR, f"the reward function raised {in_words(error)}"
            ) from error
        return finite_number(getattr(judged, "reward", judged), "the reward function's result")

    # What becomes of it

    def commit(
        self,
        name: str | None = None,
        agent: BaseAgent | None = None,
        trajectory: Trajectory | None = None,
        reset: bool = False,
    ) -> None:
        """Make a trajectory part of the episode.

        Args:
            name: Its role; None leaves it its name.
            agent: Whose trajectory it is; or
            trajectory: the trajectory itself.
            reset: Whether the agent is then reset, for another conversation.

        Raises:
            ValueError: Not exactly one of agent and trajectory is given.
        """
        if (agent is None) == (trajectory is None):
            raise ValueError("commit takes an agent or a trajectory, and not both")
        if agent is not None:
            trajectory = trajectory_of(agent)
        assert trajectory is not None
        if name:
            trajectory.name = name
        if agent is not None and reset:
            # An agent may empty the one that it has.
            trajectory = replace(trajectory, steps=list(trajectory.steps))
            reset_agent(agent)
        run = self.rollout_engine.run
        if all(trajectory is not made for made in run.trajectories):
            run.trajectories.append(trajectory)

    def collect_trajectories(self) -> Episode:
        """Return an Episode of what was made and committed, and of the agents' trajectories.

        An agent's is named after its attribute. Those without steps and calls are left out.
        """
        run = self.rollout_engine.run
        found = list(run.trajectories)
        for name, agent in self._agents():
            trajectory = trajectory_of(agent)
            if any(trajectory.uid == made.uid for made in found):
                continue
            if trajectory.name == _DEFAULT_NAME:
                trajectory.name = name
            # The agent's next task must not change what this one was.
            found.append(replace(trajectory, steps=list(trajectory.steps)))
        asked = {call.owner for call in run.log.calls}
        return Episode(trajectories=[t for t in found if t.steps or t.uid in asked])

    def compute_trajectory_reward(self, trajectory: Trajectory) -> None:
        """Set a trajectory's reward: what `run` has set it to, else the sum of its steps'."""
        if trajectory.reward is not None and not trajectory.reward:
            trajectory.reward = math.fsum(step.reward for step in trajectory.steps)

    def adjust_step_rewards(self, trajectory: Trajectory) -> None:
        """Shape and discount rewards of steps, as `reward_bonus_coeff` and `gamma` say."""
        steps = trajectory.steps
        if self.reward_bonus_coeff > 0.0:
            raw = [step.reward for step in steps]
            for i in range(1, len(steps)):
                steps[i].reward += self.reward_bonus_coeff * (raw[i] - raw[i - 1])
        if self.gamma > 0.0:
            following = 0.0
            for step in reversed(steps):
                step.reward = following = step.reward + self.gamma * following

    def assign_episode_correctness(self, episode: Episode) -> None:
        """Say whether the task was solved: by default, whether the rewards' sum is above 0."""
        episode.is_correct = (episode.reward or 0.0) > 0.0

    def collect_metrics(self, episode: Episode) -> None:
        """Add ``<role>_acc``, the mean reward of each role."""
        rewards: dict[str, list[float]] = {}
        for trajectory in episode.trajectories:
            if trajectory.reward is not None:
                rewards.setdefault(trajectory.name, []).append(trajectory.reward)
        for name, values in rewards.items():
            episode.metrics[f"{name}_acc"] = math.fsum(values) / len(values)

    def postprocess_episode(self, episode: Episode) -> None:
        """Judge an episode that `run` has not judged itself: rewards, correctness, metrics."""
        for trajectory in episode.trajectories:
            self.compute_trajectory_reward(trajectory)
            if len(trajectory.steps) > 1:
                self.adjust_step_rewards(trajectory)
        self.assign_episode_correctness(episode)
        self.collect_metrics(episode)

    def role_of(self, trajectory: Trajectory) -> str:
        """Return a trajectory's role: its name, or the attribute that its agent is."""
        own = {trajectory_of(agent).uid: name for name, agent in self._agents()}
        return own.get(trajectory.uid, "") if trajectory.name == _DEFAULT_NAME else trajectory.name

    def _agents(self) -> Iterator[tuple[str, BaseAgent]]:
        for name, value in vars(self).items():
            if isinstance(value, BaseAgent):
                yield name, value
            elif isinstance(value, list | tuple):
                yield from ((name, item) for item in value if isinstance(item, BaseAgent))
            elif isinstance(value, dict):
                yield from ((str(k), v) for k, v in value.items() if isinstance(v, BaseAgent))

    def find_agent(self, messages: Sequence[Message]) -> BaseAgent | None:
        """Return the agent whose conversation some messages are, None if none's.

        Raises EpisodeFailure where it is that of several.
        """
        shown = [(agent, agent.chat_completions) for _, agent in self._agents()]
        found = [agent for agent, own in shown if own is messages]
        found = found or [agent for agent, own in shown if own == messages]
        if len(found) > 1:
            raise EpisodeFailure(
                _FAILURE,
                f"{len(found)} agents have the same conversation; say whose call it is by "
                "get_model_response(..., trajectory=agent.trajectory), or use ask(agent)",
            )
        return found[0] if found else None
