"""``TextVectorEnv``: many text environments as one of Gymnasium's ``VectorEnv``."""

import weakref
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Space, Text
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from rllm_envs.errors import EnvArgumentError
from rllm_envs.vector.arguments import (
    checked_actions,
    checked_mode,
    checked_positive,
    per_env_options,
    per_env_seeds,
    split_mask,
)
from rllm_envs.vector.makers import EnvSource, make_here, make_in_process, shared_space, spec_of
from rllm_envs.vector.partial_batches import PartialBatchEnv
from rllm_envs.vector.pool import SlotPool
from rllm_envs.vector.process_env import ProcessEnv
from rllm_envs.vector.slot import CALLERS_MISTAKES, EnvSlot
from rllm_envs.vector.turns import Batch, blank_observation


class TextVectorEnv(PartialBatchEnv):
    """A pool of text environments, stepped together or each as it becomes ready.

    ``reset`` and ``step`` are Gymnasium's. ``send``, ``recv`` and ``async_reset`` act on any of the
    environments, so that nobody waits for the slowest: send the actions that are there, receive the
    turns that are there, and find out whose they are in ``infos["env_id"]``.

    An environment runs in this thread where it never waits (``blocking`` is False), else in a
    thread of the pool, or in a process of its own. One that raises, dies or hangs harms itself
    alone: its episode is truncated, ``info["error"]`` says why, and it is made afresh at its next
    reset. Two exceptions reach the caller of ``reset``: ``TaskError`` and ``EnvArgumentError``,
    which its arguments have caused.

    ``infos`` holds arrays in Gymnasium's form, of which none is converted: see ``batch_infos``.
    ``infos_list`` has the same as one dict for each row of the last batch.

    The modes of ``autoreset_mode``:

    - "SameStep": the step that ends an episode also starts the next one. The observation and info
      are the new ones, the old ones are in ``infos["final_obs"]`` and ``infos["final_info"]``.
    - "NextStep": the action after the end is not used; it resets.
    - "Disabled": finished environments stay idle until they are reset. ``step`` leaves them out:
      their action is not used, their reward is 0, their flags are False and their info is empty.
      ``running`` tells which are not idle.

    Args:
        envs: One environment each: a registered id, an ``EnvSpec``, or a function that makes one.
        autoreset_mode: "SameStep", "NextStep" or "Disabled", or the member of ``AutoresetMode``.
        deadline: Seconds that one step or reset may take; None: any time. With a deadline all
            environments run in threads or processes. A thread that hangs cannot be ended and is
            left behind; a process is ended.
        isolation: "none", or "process" for environments that may crash, or hang without giving the
            interpreter back. Each gets a process, in which it is made from its spec; here one of
            each kind is made, to read its spaces, and never reset.
        max_threads: Calls of waiting environments that run at the same time.

    Raises:
        EnvArgumentError: An argument is not allowed, or the environments differ in their spaces.
    """

    def __init__(
        self,
        envs: Sequence[EnvSource],
        *,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        deadline: float | None = None,
        isolation: str = "none",
        max_threads: int = 64,
    ) -> None:
        sources = [] if isinstance(envs, str) else list(envs)
        if not sources:
            raise EnvArgumentError(f"envs must be a list of one or more, got {envs!r:.80}")
        if isolation not in ("none", "process"):
            raise EnvArgumentError(f'isolation must be "none" or "process", got {isolation!r:.80}')
        self.autoreset_mode = checked_mode(autoreset_mode)
        self.deadline = checked_positive("deadline", deadline)
        self.isolation = isolation
        self.num_envs = len(sources)
        self._observation_space: Space[Any] | None = None
        self._action_space: Space[Any] | None = None
        is_apart = isolation == "process"
        slots = self._slots_apart(sources) if is_apart else self._slots_here(sources)
        self._pool = SlotPool(
            slots,
            max_threads=int(checked_positive("max_threads", max_threads) or 64),
            # A process keeps the deadline itself, because it can be killed.
            deadline=None if is_apart else self.deadline,
            are_threaded=is_apart or self.deadline is not None,
        )
        # Runs when this object is forgotten, and at exit while threads still run: later they are
        # stopped wherever they are, and one may keep a lock for ever.
        self._close_pool = weakref.finalize(self, self._pool.close)
        self.closed = False

    @classmethod
    def from_ids(
        cls,
        ids: Sequence[str],
        *,
        env_kwargs: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
        **arguments: Any,
    ) -> "TextVectorEnv":
        """Return a pool with one environment for each id; the ids may differ.

        Args:
            ids: Registered ids, also as "module:id".
            env_kwargs: Arguments of all environments, or a list with those of each.
            arguments: Those of the constructor.
        """
        if env_kwargs is None or isinstance(env_kwargs, Mapping):
            rows: Sequence[Any] = [env_kwargs or {}] * len(ids)
        else:
            rows = env_kwargs
        if isinstance(ids, str) or len(rows) != len(ids):
            raise EnvArgumentError(
                f"from_ids needs a list of ids and one env_kwargs or as many, got {ids!r:.80} and "
                f"{len(rows)} env_kwargs"
            )
        return cls(
            [spec_of(env_id, dict(row)) for env_id, row in zip(ids, rows, strict=True)],
            **arguments,
        )

    def _slots_here(self, sources: list[Any]) -> list[EnvSlot]:
        makers = [make_here(source) for source in sources]
        with ExitStack() as opened:
            envs = []
            for make in makers:
                envs.append(make())
                opened.callback(envs[-1].close)
            slots = self._slots(makers, envs)
            opened.pop_all()
        for slot, env in zip(slots, envs, strict=True):
            slot.env = env
        return slots

    def _slots_apart(self, sources: list[Any]) -> list[EnvSlot]:
        makers, samples = [], {}
        with ExitStack() as opened:
            for source in sources:
                key = repr(source) if isinstance(source, str | EnvSpec) else id(source)
                if key not in samples:
                    samples[key] = make_here(source)()
                    opened.callback(samples[key].close)
                makers.append(make_in_process(samples[key].spec, self.deadline))
            slots = self._slots(makers, list(samples.values()))
        with ExitStack() as opened:
            for slot in slots:
                opened.callback(slot.open().close)
            opened.pop_all()
        return slots

    def _slots(self, makers: list[Any], envs: list[Any]) -> list[EnvSlot]:
        self.single_observation_space = shared_space(
            [env.observation_space for env in envs], "observation space"
        )
        self.single_action_space = shared_space([env.action_space for env in envs], "action space")
        self.metadata = {**envs[0].metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = envs[0].render_mode
        blank = blank_observation(self.single_observation_space)
        return [EnvSlot(n, make, self.autoreset_mode, blank) for n, make in enumerate(makers)]

    # Spaces cost time for many environments, and few callers look at them.

    @property
    def observation_space(self) -> Space[Any]:  # type: ignore[override]
        """The space of a batch of observations."""
        if self._observation_space is None:
            self._observation_space = batch_space(self.single_observation_space, self.num_envs)
        return self._observation_space

    @property
    def action_space(self) -> Space[Any]:  # type: ignore[override]
        """The space of a batch of actions."""
        if self._action_space is None:
            self._action_space = batch_space(self.single_action_space, self.num_envs)
        return self._action_space

    @property
    def running(self) -> np.ndarray:
        """Which environments have an episode that is not over; bool of shape (num_envs,)."""
        return np.array([slot.is_running for slot in self._pool.slots], dtype=np.bool_)

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The generators of the environments."""
        return self.call("np_random")

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]
        """The seeds of the environments."""
        return self.call("np_random_seed")

    # Gymnasium's vector environment

    def reset(  # type: ignore[override]
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | Sequence[dict[str, Any] | None] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode in all environments, or in those of a mask, and wait for all.

        Args:
            seed: None, an integer (environment i gets ``seed + i``), or one for each environment.
            options: Options of all environments, or a list with those of each. Two keys of a dict
                are the pool's: ``reset_mask``, a boolean array of the environments to reset, and
                ``tasks``, one task for each environment (None: a drawn one).

        Returns:
            Observations of all environments, and infos of those that were reset.

        Raises:
            TaskError: A given task cannot be played. The other environments are reset.
            EnvArgumentError: ``seed`` or ``options`` do not fit.
            EpisodeError: Turns are under way.
        """
        self._require_rest("reset")
        mask, options = split_mask(options, self.num_envs)
        everyone = range(self.num_envs)
        seeds = per_env_seeds(seed, everyone)
        rows = per_env_options(options, self.num_envs)
        chosen = [place for place in everyone if mask is None or mask[place]]
        calls = [self._pool.reset_call(place, seeds[place], rows[place]) for place in chosen]
        turns = self._pool.finish(calls)
        for turn in turns:
            if isinstance(turn.error, CALLERS_MISTAKES):
                raise turn.error
        observations, *_, infos = self._batch(self._with_the_rest(turns))
        return observations, infos

    def step(self, actions: Any) -> Batch:
        """Act in all environments and wait for all.

        Args:
            actions: One for each environment.

        Returns:
            Observations, rewards, terminations, truncations and infos.

        Raises:
            EnvArgumentError: The number of actions is another.
            EpisodeError: An environment has not been reset, or turns are under way.
        """
        pool = self._pool
        self._require_rest("step")
        if not isinstance(self.single_action_space, Text):
            actions = tuple(iterate(self.action_space, actions))
        items = checked_actions(actions, self.num_envs)
        slots = pool.slots
        pool.require_started(slots)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            slots = [slot for slot in slots if slot.is_running]
        if pool.is_inline:
            turns = [slot.step(items[slot.index]) for slot in slots]
        elif slots:
            turns = pool.finish([pool.step_call(slot.index, items[slot.index]) for slot in slots])
        else:
            turns = []
        return self._batch(self._with_the_rest(turns))

    def render(self) -> tuple[Any, ...]:
        """Return what each environment renders."""
        return self.call("render")

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute, wrappers first.

        Raises:
            EpisodeError: Turns are under way.
            EnvProcessError: A value cannot be sent between processes.
        """
        self._require_rest("call")
        results = []
        for slot in self._pool.slots:
            env = slot.env or slot.open()
            if isinstance(env, ProcessEnv):
                results.append(env.call(name, *args, **kwargs))
                continue
            attribute = env.get_wrapper_attr(name)
            results.append(attribute(*args, **kwargs) if callable(attribute) else attribute)
        return tuple(results)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of each environment; see ``call``."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: to ``values``, or to each one's of a list.

        Raises:
            EnvArgumentError: The list has another length.
            EpisodeError: Turns are under way.
        """
        self._require_rest("set_attr")
        rows = values if isinstance(values, list | tuple) else [values] * self.num_envs
        if len(rows) != self.num_envs:
            raise EnvArgumentError(f"set_attr needs {self.num_envs} values, got {len(rows)}")
        for slot, value in zip(self._pool.slots, rows, strict=True):
            (slot.env or slot.open()).set_wrapper_attr(name, value)

    def close_extras(self, **kwargs: Any) -> None:
        """Close the environments and end threads and processes; ``close`` calls this."""
        self._close_pool()
