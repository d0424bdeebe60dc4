"""``python -m rllm_envs``: list the environments, show one, or play one in the terminal."""

import argparse
import inspect
import sys
from collections.abc import Sequence

from rllm_envs.catalog import CATALOG
from rllm_envs.core import TextEnv
from rllm_envs.errors import RllmEnvsError
from rllm_envs.gym_env import GymEnv


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code: 0, or 2 after a user's mistake."""
    parser = argparse.ArgumentParser(
        prog="python -m rllm_envs", description="List, show and play text environments."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("list", help="list all environments (the default)")
    show = commands.add_parser("show", help="show what an environment asks, rewards and accepts")
    show.add_argument("env_id", metavar="ID", help="such as rllm/Math-v0")
    play = commands.add_parser("play", help="play an environment yourself")
    play.add_argument("env_id", metavar="ID", help="such as rllm/Math-v0")
    play.add_argument("--seed", type=int, default=None, help="which task; a random one by default")
    options = parser.parse_args(arguments)
    try:
        if options.command == "show":
            _show(options.env_id)
        elif options.command == "play":
            _play(options.env_id, options.seed)
        else:
            _list()
    except RllmEnvsError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


def _list() -> None:
    width = max(len(entry.id) for entry in CATALOG)
    for entry in CATALOG:
        sys.stdout.write(f"{entry.id:<{width}}  {entry.summary}\n")
    sys.stdout.write("\npython -m rllm_envs show ID | python -m rllm_envs play ID\n")


def _show(env_id: str) -> None:
    env = GymEnv(env_id, seed=0, observation_key=None)
    observation, _ = env.reset()
    sys.stdout.write(f"{env_id}\n\n{inspect.getdoc(type(env.env.unwrapped))}\n\n## Example\n")
    sys.stdout.write(f"{observation}\n")
    if isinstance(env.env.unwrapped, TextEnv):
        sys.stdout.write(f"> {env.oracle_action()}\n")
    env.close()


def _play(env_id: str, seed: int | None) -> None:
    env = GymEnv(env_id, seed=seed, observation_key=None)
    sys.stdout.write("Type an action and press Enter; end with ctrl-D.\n\n")
    observation, _ = env.reset()
    done, total = False, 0.0
    while not done:
        sys.stdout.write(f"{observation}\n> ")
        sys.stdout.flush()
        line = sys.stdin.readline()
        if not line:
            break
        observation, reward, done, _ = env.step(line.rstrip("\n"))
        total += reward
    sys.stdout.write(f"{observation}\nReward {total:g}\n" if done else "\n")
    env.close()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
