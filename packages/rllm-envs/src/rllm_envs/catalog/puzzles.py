"""Puzzles and planning, in several turns."""

from rllm_envs.catalog.entry import EnvEntry

PUZZLES = (
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
        {"slippery": True, "min_chance": 0.5},
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
)
