"""Example episodes as text: the oracle of an environment, or the experts of a game, play."""

from collections.abc import Mapping
from typing import Any

from rllm_envs.cli.game_table import make_table
from rllm_envs.core import TextEnv
from rllm_envs.gym_env import GymEnv


def example(env_id: str, kind: str, arguments: Mapping[str, Any], *, seed: int = 0) -> str:
    """Return an episode as text; the lines of an action begin with ``> `` or ``agent> ``.

    Args:
        env_id: A registered id.
        kind: "gymnasium", "aec" or "parallel".
        arguments: Arguments of the environment.
        seed: Seed of the episode.

    Returns:
        The episode; empty where the environment is no ``TextEnv`` and so has no oracle.

    Raises:
        RllmEnvsError: The environment cannot be made.
    """
    if kind == "gymnasium":
        return _oracle_episode(env_id, arguments, seed)
    return _expert_game(env_id, kind, arguments, seed)


def _oracle_episode(env_id: str, arguments: Mapping[str, Any], seed: int) -> str:
    env = GymEnv(env_id, env_kwargs=arguments, seed=seed)
    raw = env.env.unwrapped
    try:
        if not isinstance(raw, TextEnv):
            return ""
        raw.render_mode = "ansi"
        raw.reset(seed=seed)
        is_over = False
        while not is_over:
            *_, terminated, truncated, _ = raw.step(raw.oracle_action())
            is_over = terminated or truncated
        return raw.render() or ""
    finally:
        env.close()


def _expert_game(env_id: str, kind: str, arguments: Mapping[str, Any], seed: int) -> str:
    table = make_table(env_id, kind, arguments)
    table.start(seed)
    lines: list[str] = []
    introduced: set[str] = set()
    while table.movers:
        for agent in table.movers:
            lines.append(f"[{agent}]")
            if agent not in introduced:
                introduced.add(agent)
                lines += [table.game.rules(agent), ""]
            lines.append(table.view(agent))
        texts = {agent: table.expert_action(agent) for agent in table.movers}
        lines += [f"{agent}> {text}" for agent, text in texts.items()]
        table.play(texts)
    scores = ", ".join(f"{agent} {score:g}" for agent, score in table.scores.items())
    return "\n".join([*lines, f"[end: {scores}]"])
