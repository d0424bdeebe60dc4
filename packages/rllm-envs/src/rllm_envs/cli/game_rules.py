"""PettingZoo's own tests as rules of ``python -m rllm_envs check`` (extra ``multi``)."""

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pettingzoo
from pettingzoo.test import api_test, parallel_api_test, render_test
from pettingzoo.test.seed_test import parallel_seed_test, seed_test
from pettingzoo.utils.conversions import parallel_to_aec

GameRule = tuple[str, str, str, Callable[[], str]]
"""Name, summary, remedy, and the check: it raises, or returns why it does not apply, or ""."""

NUM_CYCLES = 100
_API_REMEDY = (
    "see pettingzoo.farama.org, Testing Environments; text observations need a dtype: return "
    "rllm_envs.multi_agent.TextObs(text)"
)
_SEED_REMEDY = "draw all chance from a generator that reset(seed=...) makes"


def game_rules(env: Any, make: Callable[..., Any]) -> list[GameRule]:
    """Return PettingZoo's tests for an environment.

    Args:
        env: A PettingZoo AEC or parallel environment.
        make: Makes another one; takes ``render_mode``.
    """
    if isinstance(env, pettingzoo.AECEnv):
        return [
            ("api", "PettingZoo's api_test", _API_REMEDY, _quiet(api_test, env, NUM_CYCLES)),
            ("seeds", "PettingZoo's seed_test", _SEED_REMEDY, _quiet(seed_test, make, NUM_CYCLES)),
            (
                "rendering",
                "PettingZoo's render_test",
                "render() returns a text in mode 'ansi' and None in mode 'human'",
                _rendering(env, make),
            ),
        ]
    return [
        (
            "api",
            "PettingZoo's parallel_api_test",
            _API_REMEDY,
            _quiet(parallel_api_test, env, NUM_CYCLES),
        ),
        (
            "conversion",
            "PettingZoo's api_test after parallel_to_aec",
            _API_REMEDY,
            lambda: _quiet(api_test, parallel_to_aec(make()), NUM_CYCLES)(),
        ),
        (
            "seeds",
            "PettingZoo's parallel_seed_test",
            _SEED_REMEDY,
            _quiet(parallel_seed_test, make, NUM_CYCLES),
        ),
    ]


def _rendering(env: Any, make: Callable[..., Any]) -> Callable[[], str]:
    def check() -> str:
        if not env.metadata.get("render_modes"):
            return "its metadata names no render_modes"
        return _quiet(render_test, lambda render_mode: make(render_mode=render_mode))()

    return check


def _quiet(test: Callable[..., Any], *arguments: Any) -> Callable[[], str]:
    def check() -> str:
        with _silence():
            test(*arguments)
        return ""

    return check


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    # PettingZoo's tests print, and warn that texts are no arrays.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
