"""The table of environments, one line each, and their entry into Gymnasium's registry."""

from dataclasses import dataclass, field
from typing import Any

import gymnasium


@dataclass(frozen=True, slots=True)
class EnvEntry:
    """One registered environment. Written in ``CATALOG``, read by registration and the listing."""

    id: str
    """Gymnasium id."""
    entry_point: str
    """Class as "module:name", so that nothing is imported before it is made."""
    summary: str
    """What the agent does, in a few words."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Registered arguments: names and numbers, never data, because Gymnasium copies them."""
    reward_threshold: float | None = 1.0
    """Mean reward at which the task counts as solved."""
    nondeterministic: bool = False
    """Whether equal seeds may differ: only for tasks that ask a live service."""

    @property
    def category(self) -> str:
        """The folder that the environment is in: "reasoning", "puzzles", "tool_use", ..."""
        return self.entry_point.split(".")[1]


CATALOG = (
    EnvEntry(
        "rllm/Arithmetic-v0",
        "rllm_envs.reasoning.arithmetic:ArithmeticEnv",
        "add and subtract integers, one turn",
    ),
    EnvEntry(
        "rllm/Math-v0",
        "rllm_envs.reasoning.math_problem:MathEnv",
        "small maths problems, or any data set of questions and answers, one turn",
    ),
    EnvEntry(
        "rllm/MathRetry-v0",
        "rllm_envs.reasoning.math_retry:MathRetryEnv",
        "the problems of Math-v0 with several attempts, told when an answer is not right",
    ),
    EnvEntry(
        "rllm/Calculator-v0",
        "rllm_envs.tool_use.calculator:CalculatorEnv",
        "multiply with a calculator at hand, a few turns",
    ),
    EnvEntry(
        "rllm/GuessNumber-v0",
        "rllm_envs.puzzles.guess_number:GuessNumberEnv",
        "find a hidden number from higher and lower",
    ),
    EnvEntry(
        "rllm/GuessNumberHard-v0",
        "rllm_envs.puzzles.guess_number:GuessNumberEnv",
        "find one number of 1000 in the 10 guesses that halving needs",
        {"width": 1000},
    ),
    EnvEntry(
        "rllm/FrozenLake-v0",
        "rllm_envs.puzzles.frozen_lake:FrozenLakeEnv",
        "cross a frozen lake without falling into a hole",
    ),
    EnvEntry(
        "rllm/FrozenLakeLarge-v0",
        "rllm_envs.puzzles.frozen_lake:FrozenLakeEnv",
        "cross a lake of eight rows",
        {"size": 8},
    ),
    EnvEntry(
        "rllm/FrozenLakeSlippery-v0",
        "rllm_envs.puzzles.frozen_lake:FrozenLakeEnv",
        "cross a lake on slippery ice",
        {"slippery": True},
        reward_threshold=0.8,
    ),
    EnvEntry(
        "rllm/Mastermind-v0",
        "rllm_envs.puzzles.mastermind:MastermindEnv",
        "find a hidden code from counted agreements",
    ),
    EnvEntry(
        "rllm/MastermindHard-v0",
        "rllm_envs.puzzles.mastermind:MastermindEnv",
        "find a code of five out of eight letters",
        {"num_pegs": 5, "num_colors": 8, "max_turns": 12},
    ),
    EnvEntry(
        "rllm/Wordle-v0",
        "rllm_envs.puzzles.wordle:WordleEnv",
        "find a hidden word of five letters in six guesses",
    ),
    EnvEntry(
        "rllm/WordleHard-v0",
        "rllm_envs.puzzles.wordle:WordleEnv",
        "Wordle whose hints must be used in later guesses",
        {"hard": True},
        reward_threshold=0.95,
    ),
    EnvEntry(
        "rllm/Hangman-v0",
        "rllm_envs.puzzles.hangman:HangmanEnv",
        "find a hidden word letter by letter",
        reward_threshold=0.98,
    ),
    EnvEntry(
        "rllm/HangmanHard-v0",
        "rllm_envs.puzzles.hangman:HangmanEnv",
        "Hangman with three wrong guesses",
        {"max_misses": 3},
        reward_threshold=0.8,
    ),
    EnvEntry(
        "rllm/TwentyQuestions-v0",
        "rllm_envs.puzzles.twenty_questions:TwentyQuestionsEnv",
        "find a hidden thing by questions with yes or no answers",
    ),
    EnvEntry(
        "rllm/TwentyQuestionsHard-v0",
        "rllm_envs.puzzles.twenty_questions:TwentyQuestionsEnv",
        "find one of 64 things in 10 turns",
        {"num_things": 64, "max_turns": 10},
    ),
    EnvEntry(
        "rllm/Maze-v0",
        "rllm_envs.puzzles.maze:MazeEnv",
        "find the way through a maze",
    ),
    EnvEntry(
        "rllm/MazeLarge-v0",
        "rllm_envs.puzzles.maze:MazeEnv",
        "find the way through a maze of ten by ten rooms",
        {"size": 10},
    ),
    EnvEntry(
        "rllm/TowerOfHanoi-v0",
        "rllm_envs.puzzles.hanoi:TowerOfHanoiEnv",
        "move disks from peg to peg into a given arrangement",
    ),
    EnvEntry(
        "rllm/TowerOfHanoiHard-v0",
        "rllm_envs.puzzles.hanoi:TowerOfHanoiEnv",
        "move six disks",
        {"disks": 6},
    ),
    EnvEntry(
        "rllm/Sokoban-v0",
        "rllm_envs.puzzles.sokoban:SokobanEnv",
        "push two boxes onto the goals",
    ),
    EnvEntry(
        "rllm/SokobanHard-v0",
        "rllm_envs.puzzles.sokoban:SokobanEnv",
        "push three boxes onto the goals",
        {"size": 6, "boxes": 3},
    ),
    EnvEntry(
        "rllm/EightPuzzle-v0",
        "rllm_envs.puzzles.eight_puzzle:EightPuzzleEnv",
        "slide numbered tiles into order",
    ),
    EnvEntry(
        "rllm/EightPuzzleHard-v0",
        "rllm_envs.puzzles.eight_puzzle:EightPuzzleEnv",
        "slide well-mixed tiles into order",
        {"scramble": 100},
    ),
    EnvEntry(
        "rllm/LightsOut-v0",
        "rllm_envs.puzzles.lights_out:LightsOutEnv",
        "switch off all lights by buttons that switch their neighbours",
    ),
    EnvEntry(
        "rllm/LightsOutHard-v0",
        "rllm_envs.puzzles.lights_out:LightsOutEnv",
        "switch off a board of six by six lights",
        {"size": 6},
    ),
    EnvEntry(
        "rllm/Game2048-v0",
        "rllm_envs.puzzles.game_2048:Game2048Env",
        "merge tiles until one reaches 64",
        reward_threshold=0.85,
    ),
    EnvEntry(
        "rllm/Game2048Hard-v0",
        "rllm_envs.puzzles.game_2048:Game2048Env",
        "merge tiles until one reaches 128",
        {"target": 128},
        reward_threshold=0.85,
    ),
    EnvEntry(
        "rllm/Minesweeper-v0",
        "rllm_envs.puzzles.minesweeper:MinesweeperEnv",
        "open all places without a mine",
    ),
    EnvEntry(
        "rllm/MinesweeperHard-v0",
        "rllm_envs.puzzles.minesweeper:MinesweeperEnv",
        "clear a board of eight rows with ten mines",
        {"size": 8, "mines": 10},
    ),
    EnvEntry(
        "rllm/Sudoku-v0",
        "rllm_envs.puzzles.sudoku:SudokuEnv",
        "fill a grid of four by four with digits",
    ),
    EnvEntry(
        "rllm/SudokuHard-v0",
        "rllm_envs.puzzles.sudoku:SudokuEnv",
        "fill a grid of nine by nine with digits",
        {"size": 9},
    ),
    EnvEntry(
        "rllm/Bandit-v0",
        "rllm_envs.puzzles.bandit:BanditEnv",
        "find out which of several machines wins most often",
    ),
    EnvEntry(
        "rllm/BanditHard-v0",
        "rllm_envs.puzzles.bandit:BanditEnv",
        "find the best of ten machines",
        {"num_arms": 10, "max_turns": 50},
    ),
    EnvEntry(
        "rllm/Nonogram-v0",
        "rllm_envs.puzzles.nonogram:NonogramEnv",
        "find the picture that has the given runs",
    ),
    EnvEntry(
        "rllm/NonogramHard-v0",
        "rllm_envs.puzzles.nonogram:NonogramEnv",
        "find a picture of eight rows",
        {"size": 8},
    ),
    EnvEntry(
        "rllm/BlocksWorld-v0",
        "rllm_envs.puzzles.blocks_world:BlocksWorldEnv",
        "rebuild stacks of blocks",
    ),
    EnvEntry(
        "rllm/BlocksWorldHard-v0",
        "rllm_envs.puzzles.blocks_world:BlocksWorldEnv",
        "rebuild stacks of eight blocks",
        {"blocks": 8},
    ),
    EnvEntry(
        "rllm/WaterJugs-v0",
        "rllm_envs.puzzles.water_jugs:WaterJugsEnv",
        "measure an amount of water with three jugs",
    ),
    EnvEntry(
        "rllm/WaterJugsHard-v0",
        "rllm_envs.puzzles.water_jugs:WaterJugsEnv",
        "measure an amount that needs at least eight moves",
        {"max_size": 24, "min_moves": 8},
    ),
    EnvEntry(
        "rllm/NQueens-v0",
        "rllm_envs.puzzles.n_queens:NQueensEnv",
        "complete a board of queens that do not attack each other",
    ),
    EnvEntry(
        "rllm/NQueensHard-v0",
        "rllm_envs.puzzles.n_queens:NQueensEnv",
        "complete a board of twelve queens",
        {"size": 12, "given": 3},
    ),
    EnvEntry(
        "rllm/RiverCrossing-v0",
        "rllm_envs.puzzles.river_crossing:RiverCrossingEnv",
        "row passengers over a river that must not be left alone",
    ),
    EnvEntry(
        "rllm/RiverCrossingHard-v0",
        "rllm_envs.puzzles.river_crossing:RiverCrossingEnv",
        "row six passengers over a river",
        {"items": 6, "capacity": 3},
    ),
    EnvEntry(
        "rllm/PythonCode-v0",
        "rllm_envs.coding.python_code:PythonCodeEnv",
        "write a small Python function, checked by hidden tests, one turn",
    ),
    EnvEntry(
        "rllm/PythonCodeHard-v0",
        "rllm_envs.coding.python_code:PythonCodeEnv",
        "write a Python function of five steps, one turn",
        kwargs={"num_steps": 5, "num_tests": 12},
    ),
    EnvEntry(
        "rllm/CodeRepair-v0",
        "rllm_envs.coding.code_repair:CodeRepairEnv",
        "mend a function with one wrong step, with feedback, a few turns",
    ),
    EnvEntry(
        "rllm/Code-v0",
        "rllm_envs.coding.code_problem:CodeEnv",
        "programming problems of a data set, graded by their tests, one turn",
    ),
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
"""All environments of this package."""


def register_catalog() -> None:
    """Register each environment of the catalog that is not registered yet."""
    for entry in CATALOG:
        # Registering twice warns, and a user may have replaced an entry on purpose.
        if entry.id not in gymnasium.registry:
            gymnasium.register(
                entry.id,
                entry_point=entry.entry_point,
                kwargs=dict(entry.kwargs),
                reward_threshold=entry.reward_threshold,
                nondeterministic=entry.nondeterministic,
                vector_entry_point=f"rllm_envs.vector:{entry.id}",
            )
