"""``Benchmark``: what is known of one public data set, and how its rows become tasks."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rllm_envs.errors import DatasetNotFoundError
from rllm_envs.tasks import MAX_ROW_BYTES, Task

Row = Mapping[str, Any]
"""One row as the data set has it."""

ToTask = Callable[[Row], Task | None]
"""Makes a task of a row. None leaves the row out, because it holds no problem that can be graded,
such as a proof; it raises ``DatasetError`` where a field is missing or of a wrong type."""


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One public data set. Written in the tables of this package, read by ``load_benchmark``."""

    name: str
    """Usual name: lower case, words joined by ``_``."""
    hub_id: str
    """Repository of the data set hub, as "owner/name"."""
    splits: Mapping[str, str]
    """Split of the hub by our split: "train" is to be trained on, "test" is what results are
    reported on (the labelled part of it), "validation" what is left."""
    env_id: str
    """Environment that plays the tasks."""
    to_task: ToTask
    """Mapping from a row to a task."""
    reward: str
    """Reward function, as "module:name"."""
    metric: str
    """What is reported, in a few words."""
    config: str | None = None
    """Configuration of the repository, where it has several."""
    data_files: Mapping[str, str] = field(default_factory=dict)
    """Files of the repository by our split, where it cannot be loaded by its name alone."""
    licence: str | None = None
    """Licence as the repository states it; None where it states none or where it is not known."""
    num_rows: Mapping[str, int] = field(default_factory=dict)
    """Rows by our split, where the number is known."""
    aliases: tuple[str, ...] = ()
    """Other usual names."""
    max_row_bytes: int = MAX_ROW_BYTES
    """Longest row that is read."""
    is_gated: bool = False
    """Whether the hub gives it only to those who accepted its conditions."""

    @property
    def default_split(self) -> str:
        """The split that results are reported on: "test", or the only one."""
        return "test" if "test" in self.splits else next(iter(self.splits))

    @property
    def reward_fn(self) -> Any:
        """The reward function: ``(task_info, action) -> RewardOutput``."""
        module, _, name = self.reward.partition(":")
        return getattr(importlib.import_module(module), name)

    def split_named(self, split: str | None) -> str:
        """Return our name of a split, which may be given by our name or by the hub's.

        Raises:
            DatasetNotFoundError: There is no such split; the message lists what exists.
        """
        if split is None:
            return self.default_split
        if split in self.splits:
            return split
        for ours, hubs in self.splits.items():
            if hubs == split:
                return ours
        known = ", ".join(self.splits)
        raise DatasetNotFoundError(
            f"benchmark {self.name!r} has no split {split!r:.40}; it has {known}: "
            f"give split={self.default_split!r}"
        )
