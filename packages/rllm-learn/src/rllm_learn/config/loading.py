"""From names, overrides, mappings or Hydra's objects to checked settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, TypeVar

from hydra import compose, initialize_config_module
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rllm_agents.cli.overrides import resolve_key
from rllm_agents.errors import UserError
from rllm_learn.errors import ConfigError

Settings = TypeVar("Settings")


def load_config(config_name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Compose a configuration of `rllm_learn.config`.

    Args:
        config_name: A YAML file of that package, without its ending.
        overrides: `key=value` in Hydra's grammar, for example `env.kwargs.digits=3`.

    Raises:
        ConfigError: There is no such configuration, a key is unknown (the nearest is named), or a
            value cannot be parsed or has the wrong type.
    """
    try:
        with initialize_config_module("rllm_learn.config", version_base=None):
            # Which settings there are depends on the algorithm that is chosen.
            known = compose(config_name, [o for o in overrides if o.startswith("algorithm=")])
            check_keys(known, overrides)
            return compose(config_name, [_allow_new_kwargs(known, o) for o in overrides])
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(_one_line(error)) from error


def to_settings(config: Any, schema: type[Settings], *, config_name: str) -> Settings:
    """Return checked settings from whatever a caller has.

    Args:
        config: None (all defaults), an instance of `schema`, a DictConfig as `hydra.main` gives
            it, or a mapping of only what differs from the defaults.
        schema: The dataclass.
        config_name: The configuration that a mapping is laid over.

    Raises:
        ConfigError: A key is unknown, or a value is missing, of the wrong type or out of range.
    """
    if isinstance(config, schema):
        return config
    if is_dataclass(config) or not isinstance(config, Mapping | DictConfig | None):
        raise ConfigError(
            f"config must be a {schema.__name__}, a mapping, a DictConfig or None, "
            f"got {type(config).__name__}"
        )
    try:
        if not isinstance(config, DictConfig) or OmegaConf.get_type(config) is not schema:
            given = OmegaConf.create(dict(config or {}))
            base = load_config(config_name, _choice_of_algorithm(given))
            check_keys(base, [f"{key}=" for key in _leaves(given)])
            OmegaConf.set_struct(base, False)  # or open dictionaries would refuse new keys
            config = OmegaConf.merge(base, given)
        settings = OmegaConf.to_object(config)
    except OmegaConfBaseException as error:
        raise ConfigError(_one_line(error)) from error
    assert isinstance(settings, schema)
    return settings


def _choice_of_algorithm(given: DictConfig) -> list[str]:
    """Return the override that chooses the algorithm whose name a mapping holds.

    Raises:
        ConfigError: `algorithm` is no mapping.
    """
    algorithm = given.get("algorithm")
    if algorithm is None:
        return []
    if not isinstance(algorithm, DictConfig):
        raise ConfigError(
            f"algorithm must be a mapping such as {{'name': 'remax'}}, got {algorithm!r}"
        )
    return [f"algorithm={algorithm.name}"] if "name" in algorithm else []


def check_keys(config: DictConfig, overrides: Sequence[str]) -> None:
    """Refuse overrides of keys that do not exist.

    Raises:
        ConfigError: Naming the key and the nearest ones.
    """
    known = [*_leaves(config), *(["algorithm"] if "algorithm" in config else [])]
    open_keys = [key for key in known if _is_open(config, key)]
    # An open dictionary that has keys already is known by them; more may stand beside them.
    open_keys += {
        key.rpartition(".")[0] for key in known if _is_open(config, key.rpartition(".")[0])
    }
    for override in overrides:
        key = override.partition("=")[0].lstrip("+~")
        try:
            resolve_key(key, known, open_keys)
        except UserError as error:
            raise ConfigError(str(error)) from None


def _is_open(config: DictConfig, key: str) -> bool:
    """Whether a key holds a dictionary with keys of the user's own."""
    node = OmegaConf.select(config, key) if key else None
    return isinstance(node, DictConfig) and OmegaConf.get_type(node) is dict


def _allow_new_kwargs(config: DictConfig, override: str) -> str:
    """Write `env.kwargs.digits=3` as Hydra wants keys added to an open dictionary: with `++`."""
    parts = override.partition("=")[0].split(".")
    keys = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return f"++{override}" if any(_is_open(config, key) for key in keys) else override


def _leaves(config: DictConfig, prefix: str = "") -> Iterator[str]:
    """Yield the dotted key of every setting; an empty dictionary is one, being open."""
    for key in config:
        node = config._get_node(key)
        if isinstance(node, DictConfig) and not node._is_none() and len(node):
            yield from _leaves(node, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _one_line(error: Exception) -> str:
    """Join the lines that say what is wrong; Hydra's and OmegaConf's further lines are for us."""
    text = f"{error}\n{error.__cause__ or ''}".partition("Config search path:")
    lines = [line.strip() for line in "".join((text[0], "\n", text[2])).splitlines()]
    noise = ("object_type=", "reference_type=", "See https://", "provider=")
    kept = [line for line in lines if line and not line.startswith(noise)]
    return "; ".join(dict.fromkeys(kept)).replace("full_key: ", "at ")
