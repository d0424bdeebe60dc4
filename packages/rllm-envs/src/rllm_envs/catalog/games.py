"""Games against an opponent; the games themselves are in ``multi_agent/catalog.py``."""

from rllm_envs.catalog.entry import EnvEntry

GAMES = (
    EnvEntry(
        "rllm/TicTacToe-v0",
        "rllm_envs.multi_agent.tictactoe:TicTacToeEnv",
        "noughts and crosses against an opponent",
        reward_threshold=0.8,
    ),
    EnvEntry(
        "rllm/ConnectFour-v0",
        "rllm_envs.multi_agent.connect_four:ConnectFourEnv",
        "four in a row against an opponent",
        reward_threshold=0.95,
    ),
    EnvEntry(
        "rllm/Nim-v0",
        "rllm_envs.multi_agent.nim:NimEnv",
        "take the last object from piles, against an opponent",
    ),
    EnvEntry(
        "rllm/KuhnPoker-v0",
        "rllm_envs.multi_agent.kuhn_poker:KuhnPokerEnv",
        "poker with three cards against an opponent, twenty hands",
        reward_threshold=0.1,
    ),
    EnvEntry(
        "rllm/LeducPoker-v0",
        "rllm_envs.multi_agent.leduc_poker:LeducPokerEnv",
        "poker with six cards against an opponent, ten hands",
        reward_threshold=0.3,
    ),
    EnvEntry(
        "rllm/LiarsDice-v0",
        "rllm_envs.multi_agent.liars_dice:LiarsDiceEnv",
        "bid on hidden dice against an opponent",
        reward_threshold=0.7,
    ),
)
