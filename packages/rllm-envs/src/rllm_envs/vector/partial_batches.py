"""``PartialBatchEnv``: EnvPool's verbs, which act on those environments that are ready."""

from collections.abc import Sequence
from typing import Any

from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode, VectorEnv

from rllm_envs.errors import EpisodeError
from rllm_envs.vector.arguments import (
    checked_actions,
    checked_env_ids,
    per_env_options,
    per_env_seeds,
)
from rllm_envs.vector.pool import SlotPool
from rllm_envs.vector.turns import Batch, Turn, batch_turns


class PartialBatchEnv(VectorEnv[Any, Any, Any]):
    """What of ``TextVectorEnv`` does not wait for all environments."""

    closed = True  # until there is something to close

    autoreset_mode: AutoresetMode
    _pool: SlotPool
    _last_turns: Sequence[Turn] = ()

    @property
    def infos_list(self) -> list[dict[str, Any]]:
        """The infos of the last batch as one dict for each row, with ``env_id`` (int)."""
        return [{**turn.info, "env_id": turn.env_id} for turn in self._last_turns]

    def async_reset(
        self,
        env_ids: Sequence[int] | None = None,
        seeds: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | Sequence[dict[str, Any] | None] | None = None,
    ) -> None:
        """Start episodes without waiting; ``recv`` returns their first observations.

        Args:
            env_ids: Environments to reset; all by default.
            seeds: None, an integer (environment i gets ``seeds + i``), or one for each of them.
            options: As in ``reset``, with lists for ``env_ids``. A task that cannot be played gives
                a truncated turn with ``info["error"]``.

        Raises:
            EnvArgumentError: An argument does not fit.
            EpisodeError: One of them is under way.
        """
        self._require_open()
        places = checked_env_ids(env_ids, self.num_envs)
        rows = per_env_options(options, len(places))
        calls = zip(places, per_env_seeds(seeds, places), rows, strict=True)
        self._pool.start([self._pool.reset_call(*call) for call in calls])

    def send(self, actions: Sequence[Any], env_ids: Sequence[int] | None = None) -> None:
        """Act in some environments without waiting; ``recv`` returns what follows.

        Args:
            actions: One for each of ``env_ids``.
            env_ids: Environments to act in; all by default.

        Raises:
            EnvArgumentError: An argument does not fit.
            EpisodeError: One of them is under way, has not been reset, or, in mode "Disabled", is
                finished; then no action is sent.
        """
        self._require_open()
        places = checked_env_ids(env_ids, self.num_envs)
        items = checked_actions(actions, len(places))
        slots = [self._pool.slots[place] for place in places]
        self._pool.require_free(places)
        self._pool.require_started(slots)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            for slot in slots:
                if not slot.is_running:
                    raise EpisodeError(
                        f"environment {slot.index} is finished: async_reset([{slot.index}]) first"
                    )
        calls = zip(places, items, strict=True)
        self._pool.start([self._pool.step_call(*call) for call in calls])

    def recv(self, min_envs: int = 1, timeout: float | None = None) -> Batch:
        """Return the turns that are ready, in the order in which they became so.

        Args:
            min_envs: Wait for this many, or for all that are under way where these are fewer.
            timeout: Seconds to wait at most; then fewer turns may come, or none.

        Returns:
            Observations, rewards, terminations, truncations and infos, a row for each turn;
            ``infos["env_id"]`` says whose it is. A reset is a turn with reward 0.

        Raises:
            EpisodeError: No turn is under way.
        """
        self._require_open()
        return self._batch(self._pool.receive(min_envs, timeout))

    async def arecv(self, min_envs: int = 1, timeout: float | None = None) -> Batch:
        """Do the same as ``recv`` without keeping the event loop."""
        self._require_open()
        return self._batch(await self._pool.areceive(min_envs, timeout))

    def _batch(self, turns: list[Turn]) -> Batch:
        self._last_turns = turns
        return batch_turns(self.single_observation_space, turns)

    def _with_the_rest(self, turns: list[Turn]) -> list[Turn]:
        """Return a turn for each environment: those that did nothing show what they last showed."""
        if len(turns) == self.num_envs:
            return turns
        done = {turn.env_id: turn for turn in turns}
        return [
            done.get(slot.index) or Turn(slot.index, slot.observation, 0.0, False, False, {})
            for slot in self._pool.slots
        ]

    def _require_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError("the pool is closed; make another one")

    def _require_rest(self, name: str) -> None:
        if self.closed or self._pool.busy:
            self._require_open()
            self._pool.require_rest(name)
