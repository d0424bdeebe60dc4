"""``check_text_env``: Gymnasium's checks and this package's contract, as one call."""

import contextlib
import copy
import io
import random
import warnings
from typing import Any

import gymnasium
from gymnasium.utils.env_checker import check_env

from rllm_envs.core import TextEnv
from rllm_envs.errors import ContractError
from rllm_envs.tasks import canonical_json

REQUIRED_INFO = {"success": bool, "invalid": bool, "turn": int, "turns_left": int}
NUM_SEEDS = 16
NUM_RANDOM_EPISODES = 20

_FRAGMENTS = (
    *("", " ", "42", "-7", "3/4", "\\boxed{", "}", "\\boxed{42}", "\\boxed{}", "<think>"),
    *("</think>", "<calc>1/0</calc>", "<calc>", "</calc>", "answer", "\n", "\x00", "\ud800", "é"),
    *("{", "\\frac{1}{0}", "%s", "None", "9" * 50),
)


def check_text_env(env: gymnasium.Env[str, str]) -> None:
    """Raise unless an environment keeps the contract of :class:`TextEnv`.

    Runs Gymnasium's ``check_env`` with warnings as errors, and then: equal seeds give equal
    episodes, also when another instance is stepped between; the oracle reaches the reward threshold
    of the spec (1 without a spec); no text makes ``step`` raise; info has the required keys, and
    each key keeps one type; a given task is played as it is; tasks are JSON.

    Args:
        env: A ``TextEnv``, wrapped by ``gymnasium.make`` or not. It is reset several times.

    Raises:
        ContractError: The environment breaks a rule; the message says which, and where.
    """
    raw = env.unwrapped
    if not isinstance(raw, TextEnv):
        raise ContractError(f"{type(raw).__name__} is not a subclass of rllm_envs.TextEnv")
    name = raw.spec.id if raw.spec is not None else type(raw).__name__
    _check_gymnasium(raw, name)
    _check_determinism(raw, name)
    types: dict[str, type] = {}
    _check_oracle(raw, name, types)
    _check_random_text(raw, name, types)
    _check_given_task(raw, name)


def _check_gymnasium(env: TextEnv, name: str) -> None:
    # The check makes the environment in every render mode; "human" prints.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        try:
            # Without a spec Gymnasium can only warn that it cannot make the env in other modes.
            check_env(env, skip_render_check=env.spec is None)
        except (AssertionError, Warning, TypeError, gymnasium.error.Error) as error:
            raise ContractError(f"{name}: gymnasium's check_env: {error}") from error


def _check_determinism(env: TextEnv, name: str) -> None:
    other = copy.deepcopy(env)
    for seed in range(NUM_SEEDS):
        alone = _play_oracle(env, seed)
        other.reset(seed=seed + 1)
        interleaved = _play_oracle(env, seed, between=lambda: other.step("x") and other.reset())
        if alone != interleaved:
            raise ContractError(
                f"{name}: seed {seed} gives another episode when another instance is stepped "
                "between; use self.np_random only"
            )


def _check_oracle(env: TextEnv, name: str, types: dict[str, type]) -> None:
    threshold = 1.0
    if env.spec is not None and env.spec.reward_threshold is not None:
        threshold = env.spec.reward_threshold
    totals, successes = [], 0
    for seed in range(NUM_SEEDS):
        episode = _play_oracle(env, seed)
        for _, _, info in episode:
            _check_info(info, types, name)
        totals.append(sum(reward for _, reward, _ in episode))
        successes += episode[-1][2]["success"]
    mean = sum(totals) / NUM_SEEDS
    if mean < threshold or successes == 0 or (threshold >= 1.0 and successes < NUM_SEEDS):
        raise ContractError(
            f"{name}: the oracle reaches the mean reward {mean:g} and success in {successes} of "
            f"{NUM_SEEDS} episodes; it must reach the reward threshold, {threshold:g}"
        )


def _check_random_text(env: TextEnv, name: str, types: dict[str, type]) -> None:
    rng = random.Random(0)
    for seed in range(NUM_RANDOM_EPISODES):
        _, info = env.reset(seed=seed)
        _check_info(info, types, name)
        is_over = False
        while not is_over:
            action: Any = "".join(rng.choices(_FRAGMENTS, k=rng.randint(0, 6)))
            # Not every policy returns text.
            action = rng.choice([action] * 8 + [None, 7])
            try:
                observation, _, terminated, truncated, info = env.step(action)
            except Exception as error:
                raise ContractError(f"{name}: step({action!r}) raises {error!r}") from error
            if observation not in env.observation_space:
                raise ContractError(
                    f"{name}: {observation!r:.80} is outside {env.observation_space}"
                )
            _check_info(info, types, name)
            is_over = terminated or truncated


def _check_info(info: dict[str, Any], types: dict[str, type], name: str) -> None:
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


def _check_given_task(env: TextEnv, name: str) -> None:
    first, _ = env.reset(seed=1)
    task = env.task
    canonical_json(task)
    env.reset(seed=2)
    again, _ = env.reset(options={"task": task})
    if again != first:
        raise ContractError(
            f"{name}: reset(options={{'task': task}}) shows {again!r:.80}, but the same task drawn "
            f"by a seed shows {first!r:.80}"
        )


def _play_oracle(env: TextEnv, seed: int, between: Any = lambda: None) -> list[tuple]:
    observation, info = env.reset(seed=seed)
    episode: list[tuple] = [(observation, 0.0, info)]
    is_over = False
    while not is_over:
        between()
        observation, reward, terminated, truncated, info = env.step(env.oracle_action())
        episode.append((observation, reward, info))
        is_over = terminated or truncated
    return episode
