"""``python -m rllm_envs play ID``: a person in the place of the model, or at a table of experts."""

import argparse
import random
import shutil
import sys
from collections.abc import Mapping
from typing import Any

import gymnasium

from rllm_envs.cli.arguments import (
    UsageError,
    add_env_options,
    choose_kind,
    parse_arguments,
    seed_number,
)
from rllm_envs.cli.console import HELP, Console
from rllm_envs.cli.game_table import GameTable, make_table
from rllm_envs.core import TextEnv
from rllm_envs.errors import EnvArgumentError
from rllm_envs.gym_env import GymEnv

MAX_WIDTH = 100
MAX_DRAWN_SEED = 9_999
EVERYONE = "all"


def add_command(commands: Any) -> None:
    """Add ``play`` to the parser."""
    parser = commands.add_parser("play", help="play an environment yourself")
    parser.add_argument("env_id", metavar="ID", help="such as rllm/Math-v0")
    parser.add_argument("--seed", type=seed_number, help="which task; a random one by default")
    parser.add_argument(
        "--seat",
        help=f'in a game for several agents: whom you play, such as player_1, or "{EVERYONE}"; '
        "the first agent by default. The others are played by the game's expert.",
    )
    add_env_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Play one episode in the terminal.

    Raises:
        RllmEnvsError: The id, an argument or the seat is unknown.
    """
    kind = choose_kind(options.env_id, options.kind)
    arguments = parse_arguments(options.arguments)
    seed = options.seed
    if seed is None:
        seed = random.SystemRandom().randint(0, MAX_DRAWN_SEED)
    width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    console = Console(sys.stdin, sys.stdout, width)
    title = f"{options.env_id}, seed {seed}\n{HELP}\n"
    if kind != "gymnasium":
        table = make_table(options.env_id, kind, arguments)
        seats = _seats(table, options.seat)
        console.say(title)
        play_game(table, seats, console, seed)
        return 0
    if options.seat is not None:
        # Some environments over games have an argument of this name.
        arguments.setdefault("seat", options.seat)
    play_env(_text_env(options.env_id, arguments), console, seed, title)
    return 0


def play_env(env: gymnasium.Env[str, str], console: Console, seed: int, title: str = "") -> None:
    """Let a person play one episode.

    Args:
        env: An environment of text; it is closed at the end.
        console: The person.
        seed: Seed of the episode.
        title: What is shown first.
    """
    raw = env.unwrapped
    oracle = raw.oracle_action if isinstance(raw, TextEnv) else lambda: "There is no oracle."
    of_turns = f" of {raw.max_turns}" if isinstance(raw, TextEnv) else ""
    try:
        observation, info = env.reset(seed=seed)
        console.say(f"{title}\n{observation}" if title else observation)
        turn, total = 0, 0.0
        terminated = truncated = False
        while not (terminated or truncated):
            prompt = f"[turn {turn + 1}{of_turns}] > "
            action = console.ask_action(prompt, oracle)
            if action is None:
                console.say("You left before the end.")
                return
            observation, reward, terminated, truncated, info = env.step(action)
            turn, total = turn + 1, total + float(reward)
            if observation:
                console.say(observation)
        console.say(_ending(total, turn, truncated, info))
    finally:
        env.close()


def _ending(total: float, turns: int, truncated: bool, info: Mapping[str, Any]) -> str:
    parts = [f"reward {total:g}", f"{turns} turn{'s' * (turns != 1)}"]
    if "success" in info:
        parts.insert(0, "solved" if info["success"] else "not solved")
    if truncated:
        parts.append("the turns are spent")
    return f"\nThe end: {', '.join(parts)}."


def play_game(table: GameTable, seats: tuple[str, ...], console: Console, seed: int) -> None:
    """Let a person play some seats of a game; the expert plays the others.

    What the others write is not shown, because it may be secret: the person reads what an agent of
    that seat reads.

    Args:
        table: The game.
        seats: The agents whom the person plays.
        console: The person.
        seed: Seed of the game.
    """
    table.start(seed)
    introduced: set[str] = set()
    while table.movers:
        texts: dict[str, str] = {}
        for agent in table.movers:
            if agent not in seats:
                texts[agent] = table.expert_action(agent)
                continue
            if agent not in introduced:
                introduced.add(agent)
                console.say(f"{table.game.rules(agent)}\n")
            console.say(f"[{agent}]\n{table.view(agent)}")
            prompt = f"[{agent}, move {table.game.num_moves + 1}] > "
            action = console.ask_action(prompt, lambda agent=agent: table.expert_action(agent))
            if action is None:
                console.say("You left before the end.")
                return
            texts[agent] = action
        table.play(texts)
    for agent in seats:
        console.say(f"[{agent}]\n{table.view(agent)}")
    scores = ", ".join(f"{agent} {score:g}" for agent, score in table.scores.items())
    console.say(f"\nThe end: {scores}.")


def _seats(table: GameTable, seat: str | None) -> tuple[str, ...]:
    if seat == EVERYONE:
        return table.agents
    if seat is not None and seat not in table.agents:
        raise UsageError(f"--seat must be one of {', '.join(table.agents)}, {EVERYONE}; got {seat}")
    return (seat or table.agents[0],)


def _text_env(env_id: str, arguments: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    env = GymEnv(env_id, env_kwargs=arguments).env
    if not isinstance(env.action_space, gymnasium.spaces.Text):
        raise EnvArgumentError(
            f"{env_id} cannot be played by writing: its actions are {env.action_space}, not text"
        )
    return env
