"""Advantage estimators and losses of users' own, by the names that settings choose them by.

`algorithm.advantage=NAME` and `algorithm.loss=NAME` take what was registered under the name;
`MODULE:NAME` imports the module first, in every process that reads the settings.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from torch import Tensor

from rllm_learn.core.losses import TokenLosses
from rllm_learn.errors import ConfigError

AdvantageEstimator: TypeAlias = Callable[[Sequence[float], Sequence[Hashable]], Sequence[float]]
"""From values (rewards, or returns of steps) and keys, equal where values are compared, to one
advantage a value. Those of `rllm_learn.core.advantages` are such functions."""
TokenLoss: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], TokenLosses]
"""From logprobs (with gradient), log_ratio (logprobs less those of the policy that sampled),
advantages and mask (True at sampled tokens), all (B, T), to the loss at each token."""

_ADVANTAGES: dict[str, AdvantageEstimator] = {}
_LOSSES: dict[str, TokenLoss] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


def register_advantage(name: str) -> Callable[[Function], Function]:
    """Return a decorator that makes an advantage estimator available as `algorithm.advantage`.

    Args:
        name: An identifier that no other estimator has.

    Raises:
        ConfigError: The name is taken, or is none.
    """
    return _registrar(_ADVANTAGES, "advantage", name)


def register_loss(name: str) -> Callable[[Function], Function]:
    """Return a decorator that makes a loss available as `algorithm.loss`.

    Args:
        name: An identifier that no other loss has.

    Raises:
        ConfigError: The name is taken, or is none.
    """
    return _registrar(_LOSSES, "loss", name)


@dataclass(frozen=True)
class CheckedAdvantage:
    """A registered estimator, whose answers are checked. Made by `find_advantage`."""

    name: str
    """As the settings say it."""
    estimate: AdvantageEstimator

    def __call__(self, values: Sequence[float], keys: Sequence[Hashable]) -> list[float]:
        """Return one finite number a value.

        Raises:
            ConfigError: The estimator answers with something else.
        """
        advantages = [float(advantage) for advantage in self.estimate(values, keys)]
        if len(advantages) != len(values) or not all(map(math.isfinite, advantages)):
            raise ConfigError(
                f"algorithm.advantage={self.name} must return one finite number a value: "
                f"got {len(advantages)} for {len(values)} values, {advantages!r:.200}"
            )
        return advantages


@dataclass(frozen=True)
class CheckedLoss:
    """A registered loss, whose answers are checked. Made by `find_loss`."""

    name: str
    """As the settings say it."""
    compute: TokenLoss

    def __call__(
        self, logprobs: Tensor, log_ratio: Tensor, advantages: Tensor, mask: Tensor
    ) -> TokenLosses:
        """Return the loss at each token, all tensors (B, T).

        Raises:
            ConfigError: The loss answers with something else.
        """
        losses = self.compute(logprobs, log_ratio, advantages, mask)
        values = losses.values if isinstance(losses, TokenLosses) else None
        if values is None or values.shape != logprobs.shape:
            found = type(losses).__name__ if values is None else f"values of {tuple(values.shape)}"
            raise ConfigError(
                f"algorithm.loss={self.name} must return TokenLosses with values of the shape of "
                f"logprobs, {tuple(logprobs.shape)}, got {found}"
            )
        return losses


def find_advantage(name: str) -> CheckedAdvantage:
    """Return the estimator of a name.

    Args:
        name: As it was registered, or `module:name`.

    Raises:
        ConfigError: Nothing of that name is registered, or its module cannot be imported.
    """
    return CheckedAdvantage(name, _find(_ADVANTAGES, "advantage", name))


def find_loss(name: str) -> CheckedLoss:
    """Return the loss of a name.

    Args:
        name: As it was registered, or `module:name`.

    Raises:
        ConfigError: Nothing of that name is registered, or its module cannot be imported.
    """
    return CheckedLoss(name, _find(_LOSSES, "loss", name))


def _registrar(registry: dict[str, Any], setting: str, name: str) -> Callable[[Function], Function]:
    if not name.isidentifier():
        raise ConfigError(f"the name of a registered {setting} must be an identifier, got {name!r}")

    def register(function: Function) -> Function:
        known = registry.get(name)
        if known is not None and _home(known) != _home(function):
            raise ConfigError(
                f"algorithm.{setting}={name} is {_home(known)} already and cannot be "
                f"{_home(function)}: register it under another name"
            )
        registry[name] = function  # a module that is loaded again replaces its own
        return function

    return register


def _home(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _find(registry: Mapping[str, Any], setting: str, name: str) -> Any:
    module, _, own = name.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ConfigError(
                f"algorithm.{setting}={name!r}: module {module} cannot be imported: {error}"
            ) from error
    if own not in registry:
        names = ", ".join(registry) or "none"
        raise ConfigError(
            f"algorithm.{setting}={name!r}: no {setting} is registered as {own!r} (registered: "
            f"{names}); @register_{setting}({own!r}) registers it, and MODULE:{own} imports the "
            "module that does"
        )
    return registry[own]
