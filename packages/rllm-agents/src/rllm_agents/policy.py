"""`LLMPolicy`: a language model that acts in any Gymnasium environment, one or a vector of them."""

from __future__ import annotations

import asyncio
import itertools
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from gymnasium.vector import AutoresetMode

from rllm_agents.adapter_turns import AdapterEngine, AdapterTurns
from rllm_agents.agent import BaseAgent
from rllm_agents.agents.chat import ChatAgent
from rllm_agents.errors import PromptTooLongError, UserError
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.limits import RolloutLimits
from rllm_agents.loop_thread import LoopThread
from rllm_agents.match_players import Player
from rllm_agents.model_calls import derive_seed
from rllm_agents.model_setup import make_engine_and_renderer, parse_sampling
from rllm_agents.models import resolve_model_path
from rllm_agents.renderer import ChatTokenizer, check_messages
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.types import Action, GenerationRequest, SamplingParams

_Result = TypeVar("_Result")
_session_numbers = itertools.count()


class LLMPolicy:
    """A model, its chat template and an agent, as a function from observations to actions.

    Example:
        ```python
        policy = LLMPolicy("tiny", sampling_params={"temperature": 0.0})
        env = gymnasium.make("rllm/Calculator-v0")
        observation, _ = env.reset(seed=0)
        policy.reset()
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy.act(observation))
            over = terminated or truncated
        ```

    Args:
        model: A model directory, a hub name, or "tiny".
        adapter: A LoRA adapter's directory, or several by name, of which the first is set.
        agent_class: Turns observations into messages and responses into actions.
        agent_args: Its keyword arguments.
        engine_name: "transformers" or "vllm".
        rollout_engine_args: More of the engine's arguments.
        tokenizer: By default the one beside the model.
        renderer_args: More of the Renderer's arguments, `thinking` ("template", "keep" or "drop")
            and `template_arguments`.
        sampling_params: SamplingParams or a mapping of its fields; with a seed, every turn of every
            episode has a stream of its own.
        max_prompt_length: Most tokens of a first prompt.
        max_response_length: Most tokens after it, over all turns of an episode.

    Raises:
        UserError: Something named is not there, or out of range.
    """

    def __init__(  # noqa: PLR0913  (what a policy may be told)
        self,
        model: str | Path = "tiny",
        *,
        adapter: str | Path | Mapping[str, str | Path] | None = None,
        agent_class: Callable[..., BaseAgent] = ChatAgent,
        agent_args: Mapping[str, Any] | None = None,
        engine_name: str = "transformers",
        rollout_engine_args: Mapping[str, Any] | None = None,
        tokenizer: ChatTokenizer | None = None,
        renderer_args: Mapping[str, Any] | None = None,
        sampling_params: SamplingParams | Mapping[str, Any] | None = None,
        max_prompt_length: int = 4096,
        max_response_length: int = 8192,
    ) -> None:
        self._limits = RolloutLimits(
            max_prompt_length=max_prompt_length, max_response_length=max_response_length
        )
        self.sampling_params = parse_sampling(sampling_params)[0]
        self._agent_class = agent_class
        self._agent_args = dict(agent_args or {})
        self._renderer_args = dict(renderer_args or {})
        self._path = resolve_model_path(str(model))
        named = {str(adapter): adapter} if isinstance(adapter, str | Path) else adapter or {}
        adapters = {name: _read_adapter(path) for name, path in named.items()}
        engine, renderer = make_engine_and_renderer(
            engine_name,
            {**(rollout_engine_args or {}), "model": str(self._path)},
            None,
            tokenizer,
            self._limits,
            renderer_args,
        )
        assert renderer is not None  # engines that load a model have its tokenizer
        self._engine, self._renderer = engine, renderer
        self._loop = LoopThread("policy")
        self._adapters: dict[str, Any] = adapters
        self._adapter: str | None = None
        self._turns = AdapterTurns(self)
        self._base: dict[str, Any] = {}
        self._slots: dict[int, _Conversation] = {}
        self._num_episodes: dict[int, int] = {}
        self._awaits_reset: set[int] = set()
        self._has_warned = False
        self._resets_in_next_step = False
        if adapters:
            self.set_adapter(next(iter(adapters)))

    @property
    def rollout_engine(self) -> RolloutEngine:
        """What samples."""
        return self._engine

    @property
    def adapters(self) -> tuple[str, ...]:
        """Names of the adapters that are loaded."""
        return tuple(self._adapters)

    @property
    def adapter(self) -> str | None:
        """The adapter that acts; None for the model alone."""
        return self._adapter

    def load_adapter(self, name: str, path: str | Path) -> None:
        """Read an adapter under a name; `set_adapter` lets it act.

        Raises:
            UserError: The name is taken, or the directory holds no adapter of this kind.
        """
        if name in self._adapters:
            raise UserError(f"an adapter named {name!r} is loaded already; choose another name")
        self._adapters[name] = _read_adapter(path)

    def set_adapter(self, name: str | None) -> None:
        """Act with an adapter, or with the model alone; conversations go on.

        The adapter is merged into the weights, so it costs nothing while sampling.

        Raises:
            UserError: No adapter has this name, or it is none of this model's.
        """
        self._check_adapter(name)
        self.run(self.activate(name))

    async def activate(self, name: str | None) -> None:
        """Do what `set_adapter` does, on the policy's event loop.

        Raises:
            UserError: The adapter is none of this model's.
        """
        from rllm_agents.rollout_engines.checkpoint_files import read_weights  # loads torch

        before = self._adapters[self._adapter].weight_names if self._adapter is not None else []
        after = self._adapters[name].weight_names if name is not None else []
        unread = [n for n in dict.fromkeys([*before, *after]) if n not in self._base]
        self._base |= read_weights(self._path, unread)
        tensors = {n: self._base[n] for n in before}
        if name is not None:
            tensors |= self._adapters[name].merged(self._base)
        if tensors:
            version = self._engine.weights_version + 1
            await self._engine.load_weights(tensors, version=version)
        self._adapter = name

    def player(self, *, adapter: str | None = None, learns: bool = False, name: str = "") -> Player:
        """Return the policy as a player of matches, which are played by `run`.

        Players of one policy with different adapters take turns: completions of one adapter are
        sampled together, and the weights are exchanged between them.

        Args:
            adapter: The adapter that plays; None for the model alone.
            learns: See `Player`.
            name: See `Player`.

        Raises:
            UserError: No adapter has this name.
        """
        self._check_adapter(adapter)
        return Player(
            agent=self._agent_class,
            engine=AdapterEngine(self._turns, self._engine, adapter),
            agent_args=self._agent_args,
            renderer=self._renderer,
            sampling=self.sampling_params,
            learns=learns,
            name=name,
        )

    def reset(self, env: Any = None) -> None:
        """Forget all conversations: what comes next are first observations.

        Args:
            env: The environment or vector environment that is driven. A vector environment says
                when it begins new episodes by itself; without it, `act` takes an observation that
                comes with `done` for the first one of a new episode.
        """
        self._slots.clear()
        self._awaits_reset.clear()
        mode = getattr(env, "metadata", {}).get("autoreset_mode") if env is not None else None
        self._resets_in_next_step = mode == AutoresetMode.NEXT_STEP

    def act(self, observations: Any, done: Any = None) -> Any:
        """Return an action for an observation, or for each of a vector's observations.

        Args:
            observations: A text (or what the agent takes), or a sequence of them, one for each
                environment of a vector.
            done: Whether the last step ended the episode, for each environment
                (``terminated | truncated``); None where none did.

        Returns:
            What the agent does: a text with ChatAgent; a tuple for a sequence. Where a conversation
            has no room left, and where a vector environment ignores the action, that is "".
        """
        if isinstance(observations, str | Mapping):
            return self.run(self._act([observations], [bool(done)]))[0]
        if not isinstance(observations, Sequence | np.ndarray):
            raise UserError(
                "observations must be a text or a sequence of texts, got "
                f"{type(observations).__name__}"
            )
        ended = [False] * len(observations) if done is None else [bool(d) for d in done]
        if len(ended) != len(observations):
            raise UserError(f"{len(observations)} observations, but done has {len(ended)} entries")
        return tuple(self.run(self._act(list(observations), ended)))

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Do asynchronous work with the policy's engine on its event loop, and wait for it."""
        return self._loop.run(work)

    def execution_engine(
        self, *, env_class: Any, env_args: Mapping[str, Any] | None = None, max_steps: int = 64
    ) -> AgentExecutionEngine:
        """Return an engine that runs whole episodes with this policy; run it with `run`."""
        return AgentExecutionEngine(
            agent_class=self._agent_class,
            agent_args=self._agent_args,
            env_class=env_class,
            env_args=env_args,
            rollout_engine=self._engine,
            tokenizer=self._renderer.tokenizer,
            renderer_args=self._renderer_args,
            sampling_params=self.sampling_params,
            max_prompt_length=self._limits.max_prompt_length,
            max_response_length=self._limits.max_response_length,
            max_steps=max_steps,
        )

    def close(self) -> None:
        """End the engine and the thread; again does nothing."""
        self._engine.close()
        self._loop.close()

    def __enter__(self) -> Self:
        """Return the policy, which is closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the policy."""
        self.close()

    async def _act(self, observations: Sequence[Any], ended: Sequence[bool]) -> list[Any]:
        return list(
            await asyncio.gather(
                *(
                    self._act_in(slot, observation, is_over)
                    for slot, (observation, is_over) in enumerate(
                        zip(observations, ended, strict=True)
                    )
                )
            )
        )

    async def _act_in(self, slot: int, observation: Any, is_over: bool) -> Any:
        if is_over:
            self._slots.pop(slot, None)
            if self._resets_in_next_step:
                return ""  # the environment ignores it and shows the next first observation
        if slot not in self._slots:
            self._num_episodes[slot] = self._num_episodes.get(slot, 0) + 1
            seed = derive_seed(self.sampling_params.seed, slot, self._num_episodes[slot])
            self._slots[slot] = _Conversation(
                self._agent_class(**self._agent_args), self._renderer.transcript(), seed
            )
        return await self._slots[slot].turn(self, observation)

    def _check_adapter(self, name: str | None) -> None:
        if name is not None and name not in self._adapters:
            known = ", ".join(self._adapters) or "none"
            raise UserError(f"no adapter is named {name!r}; loaded: {known}")

    def _room(self, num_prompt: int, num_first: int) -> int:
        """Return how many tokens may be sampled after a prompt; 0 or less: none."""
        room = self._limits.room(num_prompt, num_first)
        most = getattr(self._engine, "max_model_length", None)
        return room if most is None else min(room, most - num_prompt)

    def _warn_of_length(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(
                "a conversation has no room for another response, and the policy acts with an "
                "empty text; raise max_prompt_length or max_response_length",
                stacklevel=2,
            )


class _Conversation:
    """One episode's agent and transcript."""

    def __init__(self, agent: BaseAgent, transcript: Any, seed: int | None) -> None:
        self._agent = agent
        self._agent.reset()
        self._transcript = transcript
        self._seed = seed
        self._num_turns = 0
        self._num_first = 0
        self._session_id = f"policy-{next(_session_numbers)}"

    async def turn(self, policy: LLMPolicy, observation: Any) -> Any:
        self._agent.update_from_env(observation, 0.0, False, {})
        messages = tuple(self._agent.chat_completions)
        check_messages(messages)
        try:
            prompt_ids = self._transcript.prompt_ids(messages)
        except PromptTooLongError:
            policy._warn_of_length()
            return ""
        self._num_first = self._num_first or len(prompt_ids)
        room = policy._room(len(prompt_ids), self._num_first)
        if room <= 0:
            policy._warn_of_length()
            return ""
        sampling = policy.sampling_params
        completion = await policy.rollout_engine.generate(
            GenerationRequest(
                messages=messages,
                prompt_ids=prompt_ids,
                sampling=SamplingParams(
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k,
                    max_tokens=min(room, sampling.max_tokens or room),
                    seed=derive_seed(self._seed, self._num_turns),
                ),
                session_id=self._session_id,
            )
        )
        self._transcript.add(completion)
        self._num_turns += 1
        action = self._agent.update_from_model(completion.text)
        return action.action if isinstance(action, Action) else action


def _read_adapter(path: str | Path) -> Any:
    from rllm_agents.rollout_engines.adapters import LoraAdapter  # loads torch

    adapter = LoraAdapter.from_path(path)
    if not adapter.is_finite():
        raise UserError(f"the adapter in {str(path)!r} has numbers that are not finite")
    return adapter
