"""Policies of `rllm bench`: from what a user writes to what plays."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from rllm_agents.agents.chat import ChatAgent
from rllm_agents.cli.bench_settings import BenchRunSettings
from rllm_agents.cli.eval import check_policy, positions_of, sampling_params, torch_threads
from rllm_agents.cli.eval_server import server_arguments
from rllm_agents.cli.eval_settings import EvalSettings, ModelSettings
from rllm_agents.errors import UserError
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.leaderboard import SCRIPTED, Entrant, ScriptedEntrant, SuiteEntry
from rllm_agents.leaderboard.play import Result
from rllm_agents.leaderboard.provenance import weights_digest
from rllm_agents.limits import RolloutLimits
from rllm_agents.loop_thread import LoopThread
from rllm_agents.match_players import Player
from rllm_agents.match_players import Script as MatchScript
from rllm_agents.model_setup import make_engine_and_renderer
from rllm_agents.models import resolve_model_path
from rllm_agents.policy import LLMPolicy
from rllm_agents.rollout_engines import ROLLOUT_ENGINES
from rllm_agents.types import SamplingParams
from rllm_envs import GymEnv

_SERVED_POSITIONS = 32_768
"""Of a server that does not say."""


@dataclass(frozen=True)
class Policy:
    """Who plays. Made by `find_policy`, turned into an Entrant in each process that plays."""

    name: str
    """Of its row."""
    script: str = ""
    """Of `SCRIPTED`; "" where a model plays."""
    settings: EvalSettings | None = None
    """Of a model: as `rllm eval` would be told."""
    adapter: str | None = None
    n_parallel: int = 256

    @property
    def is_remote(self) -> bool:
        """Whether a server plays."""
        return self.settings is not None and ROLLOUT_ENGINES[self.settings.engine.name].is_remote

    def identity(self) -> dict[str, Any]:
        """Return what decides what the policy does, and no path of this machine."""
        if self.settings is None:
            return {"script": self.script}
        engine, model = self.settings.engine, self.settings.model
        found: dict[str, Any] = {
            "engine": engine.name,
            "system_prompt": self.settings.agent.system_prompt,
        }
        if self.is_remote:
            # An address may name a private machine, or hold a password.
            server = hashlib.sha256(str(engine.base_url).encode()).hexdigest()[:12]
            return {**found, "model": _last_part(engine.model or model.path), "server": server}
        path = resolve_model_path(model.path or "tiny")
        found |= {"model": _last_part(model.path or "tiny"), "weights": weights_digest(path)}
        if self.adapter is not None:
            found["adapter_weights"] = weights_digest(Path(self.adapter))
        return {**found, "dtype": model.dtype}

    def entrant(self) -> Entrant:
        """Make what plays.

        Raises:
            UserError: The model or the adapter cannot be loaded.
        """
        if self.settings is None:
            return ScriptedEntrant(self.script)
        if self.is_remote:
            return ServerEntrant(self.settings, self.n_parallel)
        return LocalEntrant(self.settings, self.adapter, self.n_parallel)


def find_policy(settings: BenchRunSettings) -> Policy:
    """Find who plays, and mistakes that need no model to be seen.

    Raises:
        UserError: There is no such policy, or settings do not fit together.
    """
    named = settings.policy
    if named in SCRIPTED:
        if settings.adapter is not None or settings.model.path is not None:
            raise UserError(f"policy={named} plays without a model; leave out model and adapter")
        return Policy(_row_name(settings, named), script=named)
    evaluated = EvalSettings(
        model=replace(settings.model),
        engine=replace(settings.engine),
        agent=settings.agent,
        sampling=settings.sampling,
        torch_threads=settings.torch_threads,
    )
    adapter = settings.adapter
    if named is not None and re.match(r"https?://", named):
        evaluated.engine.name, evaluated.engine.base_url = "openai", named
        named = evaluated.engine.model or evaluated.model.path or "server"
    elif named is not None:
        model, own_adapter = _model_of(named, settings.model)
        evaluated.model.path = model
        if adapter is not None and own_adapter is not None:
            raise UserError(f"policy={named!r} has an adapter itself; leave out adapter={adapter}")
        adapter = adapter or own_adapter
    elif settings.model.path is None and settings.engine.base_url is None:
        raise UserError(
            f"policy= says who plays: {', '.join(SCRIPTED)}, tiny, a model, the directory of a "
            "training run or of an adapter, or the address of a server"
        )
    else:
        named = settings.engine.model or settings.model.path or "server"
    check_policy(evaluated)
    policy = Policy(
        _row_name(settings, _last_part(adapter if settings.adapter else named) or "model"),
        settings=evaluated,
        adapter=None if adapter is None else str(Path(adapter).expanduser()),
        n_parallel=settings.n_parallel_agents,
    )
    if policy.is_remote and adapter is not None:
        raise UserError("a server's model takes no adapter here; load it into the server")
    if not policy.is_remote and evaluated.model.path == settings.policy:
        resolve_model_path(settings.policy or "tiny", "policy")
    return policy


def _model_of(named: str, model: ModelSettings) -> tuple[str, str | None]:
    """Return the model and the adapter that a policy's name leads to."""
    path = Path(named).expanduser()
    if (path / "adapter_config.json").is_file():
        return model.path or _base_of_adapter(path), str(path)
    if (path / "config.yaml").is_file() and (path / "adapter").is_dir():
        return model.path or _base_of_run(path), str(path / "adapter")
    if (path / "config.yaml").is_file() and (path / "model").is_dir():
        return str(path / "model"), None
    if model.path is not None and model.path != named:
        raise UserError(
            f"policy={named!r} is a model itself, beside model={model.path!r}; name one of them"
        )
    return named, None


def _base_of_adapter(path: Path) -> str:
    try:
        base = json.loads((path / "adapter_config.json").read_text("utf-8"))
        return str(base["base_model_name_or_path"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: its model is not named there; say model=: {error}") from error


def _base_of_run(path: Path) -> str:
    try:
        return str(yaml.safe_load((path / "config.yaml").read_text("utf-8"))["model"]["path"])
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UserError(
            f"{path / 'config.yaml'} does not say which model was trained; say model=: {error}"
        ) from error


def _row_name(settings: BenchRunSettings, made_of: str) -> str:
    """Return the name of the row: a file name, and nothing else."""
    name = settings.name
    if name is None:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", made_of).strip("-.") or "model"
        name = name if settings.seed == 0 else f"{name}-seed-{settings.seed}"
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", name) is None:
        raise UserError(f"name must be letters, digits, '.', '_' and '-', got {name!r:.80}")
    return name


def _last_part(name: str | None) -> str:
    """Return a model's or directory's name without where it is."""
    return "" if name is None else Path(name).expanduser().name


class _ModelEntrant:
    """What policies with a model share: budgets within the model's positions."""

    def __init__(self, settings: EvalSettings, positions: int, n_parallel: int) -> None:
        self._sampling = sampling_params(settings)
        self._agent_args = {"system_prompt": settings.agent.system_prompt}
        self._positions = positions
        self._n_parallel = n_parallel

    def limits(self, entry: SuiteEntry) -> RolloutLimits:
        """Return an entry's budgets; a response gets at most half of the model's positions."""
        response = max(1, min(entry.max_tokens, self._positions // 2))
        return RolloutLimits(
            max_steps=entry.max_turns,
            max_prompt_length=max(1, self._positions - response),
            max_response_length=response,
        )

    def _engine(
        self, entry: SuiteEntry, env_args: Mapping[str, Any], engine: Any, tokenizer: Any
    ) -> AgentExecutionEngine:
        limits = self.limits(entry)
        return AgentExecutionEngine(
            agent_class=ChatAgent,
            agent_args=self._agent_args,
            env_class=GymEnv,
            env_args=env_args,
            rollout_engine=engine,
            tokenizer=tokenizer,
            max_prompt_length=limits.max_prompt_length,
            max_response_length=limits.max_response_length,
            max_steps=limits.max_steps,
            n_parallel_agents=self._n_parallel,
        )


class LocalEntrant(_ModelEntrant):
    """A model loaded here, with an adapter or without.

    Args:
        settings: As `rllm eval` is told.
        adapter: A directory.
        n_parallel: Most episodes in flight.

    Raises:
        UserError: The model or the adapter cannot be loaded.
    """

    def __init__(self, settings: EvalSettings, adapter: str | None, n_parallel: int) -> None:
        path = resolve_model_path(settings.model.path or "tiny")
        super().__init__(settings, positions_of(path), n_parallel)
        threads = torch_threads(settings)
        if threads is not None:
            import torch  # takes seconds, and scripted policies need none

            torch.set_num_threads(threads)
        engine = settings.engine
        arguments: dict[str, Any] = {
            "dtype": settings.model.dtype,
            "device": settings.model.device,
            "max_batch_size": engine.max_batch_size,
        }
        if engine.name == "vllm":
            arguments |= {"kv_cache_gib": engine.kv_cache_gib, "vllm_args": engine.vllm_args}
        self._policy = LLMPolicy(
            path,
            adapter=None if adapter is None else {"adapter": adapter},
            agent_args=self._agent_args,
            engine_name=engine.name,
            rollout_engine_args={k: v for k, v in arguments.items() if v is not None},
            sampling_params=self._sampling,
            max_prompt_length=self._positions - self._positions // 2,
            max_response_length=max(1, self._positions // 2),
        )
        self._player = self._policy.player(adapter=self._policy.adapter)

    def engine(self, entry: SuiteEntry, env_args: Mapping[str, Any]) -> AgentExecutionEngine:
        """Return what plays the episodes of an entry, within its budgets."""
        renderer = self._player.renderer
        assert renderer is not None  # engines that load a model have its tokenizer
        return self._engine(entry, env_args, self._policy.rollout_engine, renderer.tokenizer)

    def player(self, entry: SuiteEntry, seed: int) -> Player | MatchScript:
        """Return who plays a match that has this seed."""
        return replace(self._player, sampling=replace(self._sampling, seed=seed))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do asynchronous work on the policy's event loop."""
        return self._policy.run(work)

    def close(self) -> None:
        """End the engine."""
        self._policy.close()


class ServerEntrant(_ModelEntrant):
    """A model behind an OpenAI-compatible server.

    Args:
        settings: As `rllm eval` is told.
        n_parallel: Most episodes in flight.

    Raises:
        UserError: The settings do not fit together.
        EngineError: The server cannot be reached.
    """

    def __init__(self, settings: EvalSettings, n_parallel: int) -> None:
        arguments, tokenizer, positions = server_arguments(settings)
        super().__init__(settings, positions or _SERVED_POSITIONS, n_parallel)
        self._tokenizer = tokenizer
        limits = RolloutLimits(
            max_prompt_length=self._positions - self._positions // 2,
            max_response_length=max(1, self._positions // 2),
        )
        self._remote, self._renderer = make_engine_and_renderer(
            settings.engine.name, arguments, None, tokenizer, limits
        )
        self._loop = LoopThread("server")

    def engine(self, entry: SuiteEntry, env_args: Mapping[str, Any]) -> AgentExecutionEngine:
        """Return what plays the episodes of an entry, within its budgets."""
        return self._engine(entry, env_args, self._remote, self._tokenizer)

    def player(self, entry: SuiteEntry, seed: int) -> Player | MatchScript:
        """Return who plays a match that has this seed."""
        return Player(
            agent=ChatAgent,
            engine=self._remote,
            agent_args=self._agent_args,
            renderer=self._renderer,
            sampling=replace(self._sampling, seed=seed),
            learns=False,
        )

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Do asynchronous work on one event loop, which keeps connections open."""
        return self._loop.run(work)

    def close(self) -> None:
        """Close the connections."""
        self._remote.close()
        self._loop.close()


def suite_sampling(settings: BenchRunSettings) -> SamplingParams:
    """Return how a model's tokens are drawn.

    Raises:
        UserError: A value is out of range.
    """
    return sampling_params(EvalSettings(sampling=settings.sampling))
