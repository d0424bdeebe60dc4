"""What a training step came to, in figures: its episodes, and where its time went."""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from time import perf_counter, process_time, time
from typing import Any

from rllm_agents import Episode
from rllm_learn.records import learned_reward

PHASES: tuple[str, ...] = ("sample", "score", "learn", "sync")
"""What a step's time is split into; what is left is bookkeeping."""
_OF_THE_ENGINE = {"num_steps", "prompt_tokens", "response_tokens", "attempts"}
"""What engines put into an episode's metrics and is counted here from its tokens."""
MAX_NAMES = 24
"""Different names from users' environments that are reported of one step."""
_NAME_LENGTH = 60


def episode_metrics(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return what a step's episodes came to; means are over those with an outcome.

    Beside the reward: lengths, the share of each `TerminationReason` (`ended/...`, over all
    episodes), and the parts of rewards (`reward_parts`).
    """
    judged = [e for e in episodes if not e.failed]
    turns = [_spans(episode) for episode in judged]
    tokens = [sum(lengths) for lengths in turns]
    num = max(len(judged), 1)
    reasons = Counter(str(e.termination_reason) for e in episodes)
    return {
        "train/reward": sum(map(learned_reward, judged)) / num,
        "train/success": sum(e.is_correct for e in judged) / num,
        "train/episodes": float(len(episodes)),
        "train/failed_episodes": float(len(episodes) - len(judged)),
        "train/turns": sum(map(len, turns)) / num,
        "train/prompt_tokens": sum(map(_first_prompt, judged)) / num,
        "train/response_tokens": sum(tokens) / num,
        "train/response_tokens_min": float(min(tokens, default=0)),
        "train/response_tokens_max": float(max(tokens, default=0)),
        **{f"ended/{name}": count / len(episodes) for name, count in reasons.items()},
        **{f"reward/{name}": value for name, value in reward_parts(judged).items()},
        **_episode_seconds(judged),
    }


def reward_parts(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return what rewards are made of: means over the episodes that have each part.

    A part is a finite number of an episode's `metrics`, or of the `metadata` that a reward function
    gave with its last grade; its `outcome`, a word, gives the share of each word. In episodes of
    several trajectories each one's reward is a part too, under its name.

    Returns:
        By name; what stands in names beside letters, digits and `_-./` is replaced, and the
        commonest `MAX_NAMES` are kept.
    """
    values: dict[str, list[float]] = defaultdict(list)
    outcomes: Counter[str] = Counter()
    num_with_outcome = 0
    for episode in episodes:
        for name, value in _parts(episode):
            if isinstance(value, str):
                outcomes[_clean(f"{name}_{value}")] += 1
                num_with_outcome += 1
            elif isinstance(value, int | float) and math.isfinite(value):
                values[_clean(name)].append(float(value))
    parts = {name: (len(v), math.fsum(v) / len(v)) for name, v in values.items()}
    parts |= {name: (count, count / num_with_outcome) for name, count in outcomes.items()}
    common = sorted(parts, key=lambda name: (-parts[name][0], name))[:MAX_NAMES]
    return {name: parts[name][1] for name in sorted(common)}


class TimeSplit:
    """Measures where a step's time goes."""

    def __init__(
        self,
        clock: Callable[[], float] = perf_counter,
        cpu_clock: Callable[[], float] = process_time,
    ) -> None:
        """Begin the step; the clocks count seconds, the second one those that were computed in."""
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._began = time()
        self._cpu_started = cpu_clock()
        self._started = clock()
        self._seconds = dict.fromkeys(PHASES, 0.0)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the time of a block as one of `PHASES`."""
        started = self._clock()
        try:
            yield
        finally:
            self._seconds[name] += self._clock() - started

    def metrics(self, *, episodes: Sequence[Episode], learned_tokens: int) -> dict[str, float]:
        """Return seconds by phase, throughput, and when the step began, in seconds since 1970.

        `time/step_cpu_seconds` are of all threads of this process: engines and learners in
        processes of their own are not in it. `time/idle_seconds` is what the learner spent without
        computing: all but scoring and learning.

        Args:
            episodes: All that were played.
            learned_tokens: Positions of the sequences that were learned from.
        """
        step = self._clock() - self._started
        spent = self._seconds
        sampled = sum(sum(_spans(episode)) for episode in episodes)
        return {
            **{f"time/{name}_seconds": seconds for name, seconds in spent.items()},
            "time/began": self._began,
            "time/step_seconds": step,
            "time/step_cpu_seconds": self._cpu_clock() - self._cpu_started,
            "time/idle_seconds": step - spent["score"] - spent["learn"],
            "time/episodes_per_second": len(episodes) / step,
            "time/sampled_tokens_per_second": sampled / (spent["sample"] or step),
            "time/learned_tokens_per_second": learned_tokens / (spent["learn"] or step),
        }


def staleness_metrics(episodes: Sequence[Episode], version: int) -> dict[str, float]:
    """Return how old the weights were that sampled a step's tokens.

    A token's staleness is the number of versions between the weights that sampled it and those
    that learn from it. Failed episodes, which are not learned from, and opponents' trajectories
    are left out.

    Args:
        episodes: All that were played.
        version: Of the weights that learn.
    """
    ages: Counter[int] = Counter()
    num_mixed = num_episodes = 0
    for episode in episodes:
        own = _token_ages(episode, version)
        ages.update(own)
        num_episodes += bool(own)
        num_mixed += len(own) > 1
    num = ages.total() or 1
    return {
        "async/staleness_mean": sum(age * count for age, count in ages.items()) / num,
        "async/staleness_max": float(max(ages, default=0)),
        "async/stale_tokens": sum(count for age, count in ages.items() if age > 0) / num,
        "async/mixed_episodes": num_mixed / (num_episodes or 1),
    }


class IdleTimes:
    """Measures how long sampler and learner wait for each other, from step to step."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        """Begin; the clock counts seconds."""
        self._clock = clock
        self._lock = threading.Lock()
        self._last = clock()
        self._num_batches = 0
        self._idle_since: float | None = self._last
        self._sampler_idle = 0.0
        self._learner_idle = 0.0

    def begun(self, batch: Future[Any]) -> None:
        """Count the sampler as busy until a batch, and all others that were begun, have ended."""
        with self._lock:
            if self._idle_since is not None:
                self._sampler_idle += self._clock() - self._idle_since
                self._idle_since = None
            self._num_batches += 1
        batch.add_done_callback(lambda _: self._ended())

    @contextmanager
    def learner_waits(self) -> Iterator[None]:
        """Count the time of a block as the learner's waiting."""
        started = self._clock()
        try:
            yield
        finally:
            self._learner_idle += self._clock() - started

    def metrics(self, episodes: Sequence[Episode]) -> dict[str, float]:
        """Return shares of the time since the last call, and begin anew.

        Args:
            episodes: What a step learns from, of whose tokens the throughput is reported.
        """
        with self._lock:
            now = self._clock()
            if self._idle_since is not None:
                self._sampler_idle += now - self._idle_since
                self._idle_since = now
            whole = (now - self._last) or 1.0
            shares = {
                "async/sampler_idle": self._sampler_idle / whole,
                "async/learner_idle": self._learner_idle / whole,
                "time/sampled_tokens_per_second": sum(map(sum, map(_spans, episodes))) / whole,
            }
            self._last, self._sampler_idle, self._learner_idle = now, 0.0, 0.0
            return shares

    def _ended(self) -> None:
        with self._lock:
            self._num_batches -= 1
            if not self._num_batches:
                self._idle_since = self._clock()


def _token_ages(episode: Episode, version: int) -> Counter[int]:
    """Count the tokens of an episode that are learned from, by their staleness."""
    if episode.failed:
        return Counter()
    ages: Counter[int] = Counter()
    for trajectory in episode.trajectories:
        if trajectory.info.get("learns", True):
            for record in trajectory.token_records:
                for turn in record.turns:
                    for span in turn.sampled_by:
                        ages[version - span.weights_version] += span.stop - span.start
    return ages


def _parts(episode: Episode) -> Iterator[tuple[str, Any]]:
    """Yield names and values, which come from users' code: anything at all."""
    for name, value in episode.metrics.items():
        if name not in _OF_THE_ENGINE and not name.endswith("_seconds"):
            yield name, value
    if len(episode.trajectories) > 1:
        for trajectory in episode.trajectories:
            if trajectory.reward is not None:
                yield trajectory.name, trajectory.reward
    for trajectory in episode.trajectories:
        info = trajectory.steps[-1].info if trajectory.steps else {}
        metadata = info.get("metadata") if isinstance(info, Mapping) else None
        if isinstance(metadata, Mapping):
            for name, value in metadata.items():
                if not isinstance(value, str) or name == "outcome":
                    yield str(name), value


def _episode_seconds(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return how long an episode waited for what, as its engine measured it: means."""
    seconds: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        for name in ("llm_seconds", "env_seconds", "total_seconds"):
            if name in episode.metrics:
                seconds[f"time/episode_{name}"].append(episode.metrics[name])
    return {name: math.fsum(values) / len(values) for name, values in seconds.items()}


def _clean(name: str) -> str:
    return re.sub(r"[^\w\-./]", "_", name)[:_NAME_LENGTH]


def _spans(episode: Episode) -> list[int]:
    """Return the sampled tokens of each turn."""
    return [
        turn.stop - turn.start
        for trajectory in episode.trajectories
        for record in trajectory.token_records
        for turn in record.turns
    ]


def _first_prompt(episode: Episode) -> int:
    """Return the tokens before the first sampled one."""
    starts = [
        record.turns[0].start
        for trajectory in episode.trajectories
        for record in trajectory.token_records
        if record.turns
    ]
    return starts[0] if starts else 0
