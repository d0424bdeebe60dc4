"""``check_text_env``: Gymnasium's checks and this package's contract, rule by rule."""

import contextlib
import copy
import inspect
import io
import random
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from rllm_envs.core import TextEnv
from rllm_envs.errors import ContractError, excerpt
from rllm_envs.tasks import canonical_json

REQUIRED_INFO = {"success": bool, "invalid": bool, "turn": int, "turns_left": int}
NUM_SEEDS = 16
NUM_INTERLEAVED_SEEDS = 8
NUM_THREADS = 4
NUM_THREAD_SEEDS = 2
NUM_RANDOM_EPISODES = 50

_FRAGMENTS = (
    *("", " ", "42", "-7", "3/4", "\\boxed{", "}", "\\boxed{42}", "\\boxed{}", "<think>"),
    *("</think>", "<calc>1/0</calc>", "<calc>", "</calc>", "answer", "\n", "\x00", "\ud800", "é"),
    *("{", "\\frac{1}{0}", "%s", "None", "9" * 50),
    *("\\boxed{0}", "\\boxed{1}", "\\boxed{yes}", "\\boxed{a}"),
)

Episode = list[tuple[str, float, dict[str, Any]]]
"""Observation, reward and info of the reset and of each step."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the contract. Written in ``CONTRACT``, read by all that checks it."""

    name: str
    """One word."""
    summary: str
    """What holds where the rule is kept."""
    remedy: str
    """What to do where it is broken."""
    check: Callable[["Subject"], str]
    """Raises ``ContractError`` where the rule is broken; returns why it does not apply, or ""."""


class Subject:
    """An environment under test, and the episodes that several rules look at.

    Args:
        env: A ``TextEnv``, wrapped by ``gymnasium.make`` or not.

    Raises:
        ContractError: It is no ``TextEnv``.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        raw = getattr(env, "unwrapped", env)
        if not isinstance(raw, TextEnv):
            raise ContractError(f"{type(raw).__name__} is not a subclass of rllm_envs.TextEnv")
        self.env = raw
        self.name = raw.spec.id if raw.spec is not None else type(raw).__name__

    @property
    def threshold(self) -> float:
        """The reward threshold of the spec, 1 without one."""
        spec = self.env.spec
        if spec is None or spec.reward_threshold is None:
            return 1.0
        return spec.reward_threshold

    @cached_property
    def oracle_episodes(self) -> list[Episode]:
        """An episode of the oracle for each seed from 0."""
        return [_play_oracle(self.env, seed) for seed in range(NUM_SEEDS)]

    @cached_property
    def random_episodes(self) -> tuple[list[Episode], ContractError | None]:
        """The episodes of random text, and what ended them before their time."""
        rng = random.Random(0)
        episodes: list[Episode] = []
        for seed in range(NUM_RANDOM_EPISODES):
            episodes.append([])
            try:
                self._play_random_text(seed, rng, episodes[-1])
            except ContractError as error:
                return episodes, error
        return episodes, None

    def _play_random_text(self, seed: int, rng: random.Random, episode: Episode) -> None:
        observation, info = self.env.reset(seed=seed)
        episode.append((observation, 0.0, info))
        is_over = False
        while not is_over:
            action: Any = "".join(rng.choices(_FRAGMENTS, k=rng.randint(0, 6)))
            # Not every policy returns text.
            action = rng.choice([action] * 8 + [None, 7])
            try:
                observation, reward, terminated, truncated, info = self.env.step(action)
            except Exception as error:
                raise ContractError(f"{self.name}: step({action!r}) raises {error!r}") from error
            if observation not in self.env.observation_space:
                raise ContractError(
                    f"{self.name}: {observation!r:.80} is outside {self.env.observation_space}"
                )
            episode.append((observation, reward, info))
            is_over = terminated or truncated


def check_text_env(env: gymnasium.Env[str, str]) -> None:
    """Raise unless an environment keeps the contract of :class:`TextEnv`.

    Checks each rule of ``CONTRACT`` in turn: Gymnasium's ``check_env`` with warnings as errors;
    equal seeds give equal episodes, also when another instance is stepped between and in threads;
    the oracle reaches the reward threshold of the spec (1 without a spec); no text makes ``step``
    raise; info has the required keys, and each key keeps one type; random text earns at most half
    of the threshold; a given task is played as it is; tasks are JSON; ``ansi`` renders; the spec
    survives JSON.

    One rule is not checked: an environment uses no network, unless its page says so.

    Args:
        env: A ``TextEnv``, wrapped by ``gymnasium.make`` or not. It is reset many times.

    Raises:
        ContractError: The environment breaks a rule; the message says which, and where.
    """
    subject = Subject(env)
    for rule in CONTRACT:
        rule.check(subject)


def _check_gymnasium(subject: Subject) -> str:
    # The check makes the environment in every render mode; "human" prints.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        try:
            # Without a spec Gymnasium can only warn that it cannot make the env in other modes.
            check_env(subject.env, skip_render_check=subject.env.spec is None)
        except (AssertionError, Warning, TypeError, gymnasium.error.Error) as error:
            raise ContractError(f"{subject.name}: gymnasium's check_env: {error}") from error
    return ""


def _check_seeds(subject: Subject) -> str:
    other = copy.deepcopy(subject.env)
    for seed, alone in enumerate(subject.oracle_episodes[:NUM_INTERLEAVED_SEEDS]):
        other.reset(seed=seed + 1)
        interleaved = _play_oracle(
            subject.env, seed, between=lambda: other.step("x") and other.reset()
        )
        if alone != interleaved:
            raise ContractError(
                f"{subject.name}: seed {seed} gives another episode when another instance is "
                "stepped between; use self.np_random only"
            )
    return ""


def _check_threads(subject: Subject) -> str:
    seeds = range(NUM_THREAD_SEEDS)

    def play_all(env: TextEnv) -> list[Episode]:
        # Sleeping for no time lets another thread run, so that the episodes interleave.
        return [_play_oracle(env, seed, between=lambda: time.sleep(0)) for seed in seeds]

    expected = subject.oracle_episodes[:NUM_THREAD_SEEDS]
    copies = [copy.deepcopy(subject.env) for _ in range(NUM_THREADS)]
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        games = [pool.submit(play_all, env) for env in copies]
    for game in games:
        error = game.exception()
        if error is not None:
            raise ContractError(
                f"{subject.name}: an episode in a thread raises {error!r}"
            ) from error
        for seed, (alone, in_thread) in enumerate(zip(expected, game.result(), strict=True)):
            if alone != in_thread:
                raise ContractError(
                    f"{subject.name}: seed {seed} gives another episode in a thread, beside "
                    f"{NUM_THREADS - 1} others, than alone"
                )
    return ""


def _check_oracle(subject: Subject) -> str:
    episodes, threshold = subject.oracle_episodes, subject.threshold
    mean = sum(map(_total, episodes)) / len(episodes)
    successes = sum(bool(episode[-1][2].get("success")) for episode in episodes)
    if mean < threshold or successes == 0 or (threshold >= 1.0 and successes < NUM_SEEDS):
        raise ContractError(
            f"{subject.name}: the oracle reaches the mean reward {mean:g} and success in "
            f"{successes} of {NUM_SEEDS} episodes; it must reach the reward threshold, "
            f"{threshold:g}"
        )
    return ""


def _check_any_text(subject: Subject) -> str:
    _, failure = subject.random_episodes
    if failure is not None:
        raise failure
    return ""


def _check_info(subject: Subject) -> str:
    types: dict[str, type] = {}
    for episode in (*subject.oracle_episodes, *subject.random_episodes[0]):
        for _, _, info in episode:
            _check_one_info(info, types, subject.name)
    return ""


def _check_one_info(info: dict[str, Any], types: dict[str, type], name: str) -> None:
    for key, kind in REQUIRED_INFO.items():
        if type(info.get(key)) is not kind:
            raise ContractError(
                f"{name}: info[{key!r}] must be {kind.__name__}, got {info.get(key)!r:.80}"
            )
    for key, value in info.items():
        expected = types.setdefault(key, type(value))
        if value is None or type(value) is not expected:
            raise ContractError(
                f"{name}: info[{key!r}] is {value!r:.80} after {expected.__name__}; a key keeps "
                "one type and is never None"
            )


def _check_guessing(subject: Subject) -> str:
    episodes, failure = subject.random_episodes
    if failure is not None:
        return "random text makes step raise"
    mean = sum(map(_total, episodes)) / len(episodes)
    # Half of the way down to 0; below 0 the same distance, because thresholds may be negative.
    bound = subject.threshold - abs(subject.threshold) / 2
    if mean > bound:
        raise ContractError(
            f"{subject.name}: random text earns {mean:g} on average over {len(episodes)} episodes; "
            f"at most {bound:g} is allowed, with the reward threshold {subject.threshold:g}"
        )
    return ""


def _check_given_task(subject: Subject) -> str:
    env = subject.env
    first, _ = env.reset(seed=1)
    task = env.task
    canonical_json(task)
    env.reset(seed=2)
    again, _ = env.reset(options={"task": task})
    if again != first:
        raise ContractError(
            f"{subject.name}: reset(options={{'task': task}}) shows {again!r:.80}, but the same "
            f"task drawn by a seed shows {first!r:.80}"
        )
    return ""


def _check_rendering(subject: Subject) -> str:
    parameters = inspect.signature(type(subject.env)).parameters.values()
    if not any(p.name == "render_mode" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise ContractError(
            f"{subject.name}: {type(subject.env).__name__}() takes no render_mode, so "
            "gymnasium.make(..., render_mode='ansi') fails"
        )
    env = copy.deepcopy(subject.env)
    env.render_mode = "ansi"
    first = _play_oracle(env, 0)[0][0]
    shown = env.render()
    if not isinstance(shown, str) or first not in shown:
        raise ContractError(
            f"{subject.name}: render() in mode 'ansi' returns {excerpt(shown)} after an episode; "
            f"it must be a text that holds the first observation, {excerpt(first)}"
        )
    return ""


def _check_spec(subject: Subject) -> str:
    spec = subject.env.spec
    if spec is None:
        return "gymnasium.make has not made it, so it has no spec"
    if not isinstance(spec.entry_point, str):
        return "its entry point is not written as 'module:Class'"
    try:
        again = gymnasium.make(EnvSpec.from_json(spec.to_json()))
    except Exception as error:
        raise ContractError(
            f"{subject.name}: the spec does not survive JSON: {error!r:.200}"
        ) from error
    first, expected = again.reset(seed=0)[0], subject.oracle_episodes[0][0][0]
    again.close()
    if first != expected:
        raise ContractError(
            f"{subject.name}: made from the JSON of its spec it begins with {excerpt(first)} at "
            f"seed 0, and not with {excerpt(expected)}"
        )
    return ""


CONTRACT = (
    Rule(
        "gymnasium",
        "gymnasium's check_env accepts it without a warning",
        "call super().__init__(); reset and step are written by TextEnv, do not override them",
        _check_gymnasium,
    ),
    Rule(
        "seeds",
        "equal seeds give equal episodes, also while another instance is stepped",
        "draw from self.np_random only, and keep no state in modules or classes",
        _check_seeds,
    ),
    Rule(
        "threads",
        f"equal seeds give equal episodes in {NUM_THREADS} threads",
        "no module or class state, no signals, and nothing that belongs to one thread",
        _check_threads,
    ),
    Rule(
        "oracle",
        "oracle_action reaches the reward threshold (1 where none is registered)",
        "mend oracle_action or the grading; where luck decides, register a lower reward_threshold",
        _check_oracle,
    ),
    Rule(
        "any-text",
        "no text makes step raise, and observations are in their space",
        'answer what respond cannot read with a hint and info {"invalid": True}',
        _check_any_text,
    ),
    Rule(
        "info",
        "info has success, invalid, turn and turns_left; each key keeps one type, never None",
        "give each key a value of one type in every Response; the four required ones are kept by "
        "TextEnv",
        _check_info,
    ),
    Rule(
        "guessing",
        "random text earns at most half of the reward threshold",
        "ask for more than a guess: more possible answers, or no reward for taking part",
        _check_guessing,
    ),
    Rule(
        "tasks",
        "a task is JSON, and reset(options={'task': task}) plays exactly that task",
        "put all chance into the task that generate_task returns, and let begin show only that",
        _check_given_task,
    ),
    Rule(
        "rendering",
        "render_mode 'ansi' returns the episode as text",
        "take render_mode=None in __init__ and pass it to super().__init__()",
        _check_rendering,
    ),
    Rule(
        "spec",
        "made from the JSON of its spec it is the same environment",
        "register entry_point='module:Class' and arguments that are names and numbers",
        _check_spec,
    ),
)
"""The rules, in the order in which they are checked."""


def _total(episode: Episode) -> float:
    return sum(reward for _, reward, _ in episode)


def _play_oracle(env: TextEnv, seed: int, between: Any = lambda: None) -> Episode:
    observation, info = env.reset(seed=seed)
    episode: Episode = [(observation, 0.0, info)]
    is_over = False
    while not is_over:
        between()
        observation, reward, terminated, truncated, info = env.step(env.oracle_action())
        episode.append((observation, reward, info))
        is_over = terminated or truncated
    return episode
