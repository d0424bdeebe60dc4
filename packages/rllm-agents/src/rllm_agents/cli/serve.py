"""`rllm serve`: an OpenAI-compatible server over a rollout engine that records what it samples."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import asdict
from pathlib import Path

import click

from rllm_agents.cli.eval import check_policy, fitting_lengths, local_engine
from rllm_agents.cli.eval_server import server_arguments
from rllm_agents.cli.eval_settings import EvalSettings
from rllm_agents.cli.overrides import parse_settings, settings_table
from rllm_agents.cli.serve_settings import ServeSettings
from rllm_agents.errors import UserError
from rllm_agents.evaluation import write_episodes
from rllm_agents.gateway import Gateway, GatewaySettings, Token
from rllm_agents.gateway.access import is_loopback
from rllm_agents.limits import RolloutLimits
from rllm_agents.model_setup import make_engine_and_renderer
from rllm_agents.renderer import Renderer
from rllm_agents.rollout_engines import ROLLOUT_ENGINES
from rllm_agents.rollout_engines.base import RolloutEngine
from rllm_agents.tool_parsers import get_tool_parser
from rllm_agents.types import Episode, SamplingParams


class ServeCommand(click.Command):
    """Shows the settings below the options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options, then all settings with default and meaning."""
        super().format_options(ctx, formatter)
        with formatter.section("Settings and their defaults"):
            formatter.write_dl(settings_table(ServeSettings), col_max=40)


HELP = """Serve a model to agents written against the OpenAI protocol, until ctrl-C.

There are /v1/models, /v1/chat/completions and /v1/completions. Calls that name a session, by the
field `user`, the header X-Session-Id or an address /sessions/ID/v1, are recorded with the ids and
logprobs of every token; POST /sessions/ID/finish {"reward": 1.0} ends it.

\b
  rllm serve
  rllm serve model=Qwen/Qwen3-4B engine=vllm episodes=episodes.jsonl
  rllm serve host=0.0.0.0 token_file=token
  rllm serve engine=openai engine.base_url=http://localhost:30000/v1 model=Qwen/Qwen3-4B

model= and engine= are short for model.path= and engine.name=.
"""


@click.command("serve", cls=ServeCommand, help=HELP)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
def command(settings: tuple[str, ...]) -> None:
    """Run `rllm serve`."""
    checked = parse_settings(ServeSettings, settings)
    token = check_access(checked)
    get_tool_parser(checked.tool_parser)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    if checked.verbose:
        logging.getLogger("rllm_agents.gateway").setLevel(logging.DEBUG)
    engine, renderer, limits = load(checked)
    try:
        gateway = Gateway(engine, renderer, gateway_settings(checked, limits, token))
        asyncio.run(serve(gateway, token, checked.token_file))
    finally:
        engine.close()


def check_access(settings: ServeSettings) -> Token | None:
    """Return the token that requests must carry, drawn for this run.

    Raises:
        UserError: Other machines would reach the server without one.
    """
    if settings.token_file is not None:
        return Token.random()
    if not is_loopback(settings.host):
        raise UserError(
            f"host={settings.host!r} can be reached from other machines: name a token_file=PATH, "
            "to which a token is written that clients give as api_key; or leave host out"
        )
    return None


def load(settings: ServeSettings) -> tuple[RolloutEngine, Renderer | None, RolloutLimits]:
    """Make the engine and what it needs.

    Raises:
        UserError: Something named in the settings is not there, or does not fit.
    """
    same = EvalSettings(
        model=settings.model,
        engine=settings.engine,
        sampling=settings.sampling,
        max_prompt_length=settings.max_prompt_length,
        max_response_length=settings.max_response_length,
        torch_threads=settings.torch_threads,
    )
    check_policy(same)
    tokenizer = None
    name = settings.engine.name
    if ROLLOUT_ENGINES[name].is_remote:
        arguments, tokenizer, positions = server_arguments(same)
    else:
        name, arguments, positions = local_engine(same)
    prompt, response = fitting_lengths(same, positions)
    limits = RolloutLimits(
        max_steps=settings.max_calls, max_prompt_length=prompt, max_response_length=response
    )
    engine, renderer = make_engine_and_renderer(name, arguments, None, tokenizer, limits)
    return engine, renderer, limits


def gateway_settings(
    settings: ServeSettings, limits: RolloutLimits, token: Token | None
) -> GatewaySettings:
    """Say how the gateway listens and what it allows.

    Raises:
        UserError: A value is out of range, or the episodes cannot be written.
    """
    path = None if settings.episodes is None else Path(settings.episodes).expanduser()
    if path is not None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("a").close()
        except OSError as error:
            raise UserError(f"episodes={settings.episodes!r}: {error.strerror}") from error

    def keep(episode: Episode) -> None:
        if path is not None:
            write_episodes(path, [episode], append=True, with_tokens=True)

    name = settings.name or settings.engine.model or settings.model.path
    return GatewaySettings(
        host=settings.host,
        port=settings.port,
        token=token,
        model=name or "tiny",
        parser_name=settings.tool_parser,
        limits=limits,
        sampling=SamplingParams(**asdict(settings.sampling)),
        max_sessions=settings.max_sessions,
        idle_seconds=settings.idle_seconds,
        on_episode=keep,
    )


async def serve(gateway: Gateway, token: Token | None, token_file: str | None) -> None:
    """Listen until the process is told to end; then nothing is left of the token.

    Raises:
        UserError: The address is taken, or the token cannot be written.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with gateway:
        try:
            if token is not None and token_file is not None:
                token.write(token_file)
            click.echo(f"serving {gateway.settings.model} at {gateway.url}/v1")
            if token is not None:
                click.echo(f"clients need the token in {token_file} as api_key")
            await stop.wait()
        finally:
            if token is not None and token_file is not None:
                with contextlib.suppress(OSError):
                    Path(token_file).expanduser().unlink()
    click.echo("stopped", err=True)
