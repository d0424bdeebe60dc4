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
    extra: str = ""
    """The extra of rllm-envs that it needs, such as "data"; empty where it needs none."""

    @property
    def offline(self) -> bool:
        """Whether it runs without a network."""
        return not self.nondeterministic

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
    EnvEntry(
        "rllm/SQL-v0",
        "rllm_envs.tool_use.sql:SqlEnv",
        "answer questions about a small database by read-only SQL",
    ),
    EnvEntry(
        "rllm/SQLHard-v0",
        "rllm_envs.tool_use.sql:SqlEnv",
        "SQL-v0 with joins, groups and nested queries over more rows",
        kwargs={"level": "hard", "num_rows": 120},
    ),
    EnvEntry(
        "rllm/Search-v0",
        "rllm_envs.tool_use.search:SearchEnv",
        "answer a question by chained searches in generated documents",
    ),
    EnvEntry(
        "rllm/SearchHard-v0",
        "rllm_envs.tool_use.search:SearchEnv",
        "Search-v0 with longer chains and more documents",
        kwargs={"hops": 5, "num_documents": 300, "max_turns": 16},
    ),
    EnvEntry(
        "rllm/FileSystem-v0",
        "rllm_envs.tool_use.file_system:FileSystemEnv",
        "find and compute things in files by the commands of a virtual shell",
    ),
    EnvEntry(
        "rllm/Terminal-v0",
        "rllm_envs.tool_use.terminal:TerminalEnv",
        "change files as instructed by the commands of a virtual shell",
    ),
    EnvEntry(
        "rllm/TerminalHard-v0",
        "rllm_envs.tool_use.terminal:TerminalEnv",
        "Terminal-v0 with twice as many changes",
        kwargs={"num_steps": 6, "max_turns": 25},
    ),
    EnvEntry(
        "rllm/FunctionCalling-v0",
        "rllm_envs.tool_use.function_calling:FunctionCallingEnv",
        "turn a request into JSON calls of the right functions, one turn",
    ),
    EnvEntry(
        "rllm/FunctionCallingHard-v0",
        "rllm_envs.tool_use.function_calling:FunctionCallingEnv",
        "FunctionCalling-v0 with more functions and calls",
        kwargs={"num_functions": 24, "max_calls": 5},
    ),
    EnvEntry(
        "rllm/Household-v0",
        "rllm_envs.tool_use.household:HouseholdEnv",
        "find, clean, heat, cool and place things in a house of text",
    ),
    EnvEntry(
        "rllm/HouseholdHard-v0",
        "rllm_envs.tool_use.household:HouseholdEnv",
        "Household-v0 with two things to find among many",
        kwargs={"num_things": 40, "num_wanted": 2, "max_turns": 80},
    ),
    EnvEntry(
        "rllm/TextAdventure-v0",
        "rllm_envs.tool_use.text_adventure:TextAdventureEnv",
        "explore rooms, unlock doors and deliver a treasure",
    ),
    EnvEntry(
        "rllm/TextAdventureHard-v0",
        "rllm_envs.tool_use.text_adventure:TextAdventureEnv",
        "TextAdventure-v0 with more rooms and locked doors",
        kwargs={"num_rooms": 20, "num_locks": 5, "max_turns": 150},
    ),
    EnvEntry(
        "rllm/WebShop-v0",
        "rllm_envs.tool_use.web_shop:WebShopEnv",
        "search a shop of text pages and buy what fits a request",
    ),
    EnvEntry(
        "rllm/WebShopHard-v0",
        "rllm_envs.tool_use.web_shop:WebShopEnv",
        "WebShop-v0 with many more products",
        kwargs={"num_products": 250, "max_turns": 40},
    ),
    EnvEntry(
        "rllm/WebWiki-v0",
        "rllm_envs.tool_use.web_wiki:WebWikiEnv",
        "follow links through a generated wiki to a page or an answer",
    ),
    EnvEntry(
        "rllm/WebWikiHard-v0",
        "rllm_envs.tool_use.web_wiki:WebWikiEnv",
        "WebWiki-v0 with longer ways through more pages",
        kwargs={"hops": 5, "num_pages": 200, "max_turns": 40},
    ),
    EnvEntry(
        "rllm/CustomerService-v0",
        "rllm_envs.tool_use.customer_service:CustomerServiceEnv",
        "serve a customer by functions within a policy: refund, exchange, cancel or refuse",
    ),
    EnvEntry(
        "rllm/Calendar-v0",
        "rllm_envs.tool_use.calendar_env:CalendarEnv",
        "schedule, move and cancel meetings in generated calendars by functions",
    ),
    EnvEntry(
        "rllm/Spreadsheet-v0",
        "rllm_envs.tool_use.spreadsheet:SpreadsheetEnv",
        "fill cells of a spreadsheet with formulas that stay right",
    ),
    EnvEntry(
        "rllm/LinearEquation-v0",
        "rllm_envs.reasoning.linear_equation:LinearEquationEnv",
        "solve a linear equation whose solution is a fraction, one turn",
    ),
    EnvEntry(
        "rllm/LinearSystem-v0",
        "rllm_envs.reasoning.linear_equation:LinearEquationEnv",
        "solve three linear equations in three unknowns, one turn",
        kwargs={"unknowns": 3, "max_denominator": 2},
    ),
    EnvEntry(
        "rllm/NumberTheory-v0",
        "rllm_envs.reasoning.number_theory:NumberTheoryEnv",
        "divisors, multiples, remainders of powers and prime factors, one turn",
    ),
    EnvEntry(
        "rllm/Countdown-v0",
        "rllm_envs.reasoning.countdown:CountdownEnv",
        "reach a target with four given numbers, one turn",
    ),
    EnvEntry(
        "rllm/CountdownHard-v0",
        "rllm_envs.reasoning.countdown:CountdownEnv",
        "reach a target up to 1,000 with all of six given numbers, one turn",
        kwargs={"num_numbers": 6, "max_number": 100, "max_target": 1000, "use_all": True},
    ),
    EnvEntry(
        "rllm/Game24-v0",
        "rllm_envs.reasoning.countdown:CountdownEnv",
        "make 24 of four numbers from 1 to 13, one turn",
        kwargs={"max_number": 13, "target": 24, "use_all": True},
    ),
    EnvEntry(
        "rllm/KnightsKnaves-v0",
        "rllm_envs.reasoning.knights_knaves:KnightsKnavesEnv",
        "who of three tells the truth and who lies, one turn",
    ),
    EnvEntry(
        "rllm/KnightsKnavesHard-v0",
        "rllm_envs.reasoning.knights_knaves:KnightsKnavesEnv",
        "who of six tells the truth and who lies, one turn",
        kwargs={"num_people": 6},
    ),
    EnvEntry(
        "rllm/LetterCount-v0",
        "rllm_envs.reasoning.letter_count:LetterCountEnv",
        "count a letter in a few words, one turn",
    ),
    EnvEntry(
        "rllm/LetterCountHard-v0",
        "rllm_envs.reasoning.letter_count:LetterCountEnv",
        "count two letters in fifteen words, one turn",
        kwargs={"num_words": 15, "num_letters": 2},
    ),
    EnvEntry(
        "rllm/StringTransform-v0",
        "rllm_envs.reasoning.string_transform:StringTransformEnv",
        "carry out three operations on a word, one turn",
    ),
    EnvEntry(
        "rllm/StringTransformHard-v0",
        "rllm_envs.reasoning.string_transform:StringTransformEnv",
        "carry out eight operations on a word, one turn",
        kwargs={"num_steps": 8},
    ),
    EnvEntry(
        "rllm/ShortestPath-v0",
        "rllm_envs.reasoning.shortest_path:ShortestPathEnv",
        "find a shortest way between seven places, one turn",
    ),
    EnvEntry(
        "rllm/ShortestPathHard-v0",
        "rllm_envs.reasoning.shortest_path:ShortestPathEnv",
        "find a shortest way between fourteen places, one turn",
        kwargs={"num_places": 14, "num_roads": 30},
    ),
    EnvEntry(
        "rllm/BaseConversion-v0",
        "rllm_envs.reasoning.base_conversion:BaseConversionEnv",
        "write a number in another base, one turn",
    ),
    EnvEntry(
        "rllm/ZebraPuzzle-v0",
        "rllm_envs.reasoning.zebra_puzzle:ZebraPuzzleEnv",
        "who lives in which of three houses, and with what, one turn",
    ),
    EnvEntry(
        "rllm/ZebraPuzzleHard-v0",
        "rllm_envs.reasoning.zebra_puzzle:ZebraPuzzleEnv",
        "who lives in which of five houses, and with what, one turn",
        kwargs={"num_houses": 5, "num_attributes": 4},
    ),
    EnvEntry(
        "rllm/BooleanLogic-v0",
        "rllm_envs.reasoning.boolean_logic:BooleanLogicEnv",
        "evaluate formulas or find values that make clauses true, one turn",
    ),
    EnvEntry(
        "rllm/BooleanLogicHard-v0",
        "rllm_envs.reasoning.boolean_logic:BooleanLogicEnv",
        "formulas of depth five and clauses of ten variables, one turn",
        kwargs={"num_variables": 10, "depth": 5},
    ),
    EnvEntry(
        "rllm/Syllogism-v0",
        "rllm_envs.reasoning.syllogism:SyllogismEnv",
        "which conclusions follow from premises about groups, one turn",
    ),
    EnvEntry(
        "rllm/NumberSequence-v0",
        "rllm_envs.reasoning.number_sequence:NumberSequenceEnv",
        "find the number that continues a sequence, one turn",
    ),
    EnvEntry(
        "rllm/CalendarDate-v0",
        "rllm_envs.reasoning.calendar_date:CalendarDateEnv",
        "weekdays, dates and the days between them, one turn",
    ),
    EnvEntry(
        "rllm/ClockTime-v0",
        "rllm_envs.reasoning.clock_time:ClockTimeEnv",
        "times of day, durations and the hands of a clock, one turn",
    ),
    EnvEntry(
        "rllm/MatrixOps-v0",
        "rllm_envs.reasoning.matrix_ops:MatrixOpsEnv",
        "sums, products, powers and determinants of matrices, one turn",
    ),
    EnvEntry(
        "rllm/Sorting-v0",
        "rllm_envs.reasoning.sorting:SortingEnv",
        "put numbers or words into order, one turn",
    ),
    EnvEntry(
        "rllm/SetOperations-v0",
        "rllm_envs.reasoning.set_operations:SetOperationsEnv",
        "evaluate an expression of sets, one turn",
    ),
    EnvEntry(
        "rllm/Cryptarithm-v0",
        "rllm_envs.reasoning.cryptarithm:CryptarithmEnv",
        "find the digits that letters stand for in an addition, one turn",
    ),
    EnvEntry(
        "rllm/GraphColoring-v0",
        "rllm_envs.reasoning.graph_coloring:GraphColoringEnv",
        "colour seven regions so that neighbours differ, one turn",
    ),
    EnvEntry(
        "rllm/GraphColoringHard-v0",
        "rllm_envs.reasoning.graph_coloring:GraphColoringEnv",
        "colour fourteen regions so that neighbours differ, one turn",
        kwargs={"num_regions": 14, "num_borders": 32},
    ),
    EnvEntry(
        "rllm/Knapsack-v0",
        "rllm_envs.reasoning.knapsack:KnapsackEnv",
        "the most valuable of six things within a weight limit, one turn",
    ),
    EnvEntry(
        "rllm/KnapsackHard-v0",
        "rllm_envs.reasoning.knapsack:KnapsackEnv",
        "the most valuable of fourteen things within a weight limit, one turn",
        kwargs={"num_items": 14},
    ),
    EnvEntry(
        "rllm/FamilyRelations-v0",
        "rllm_envs.reasoning.family_relations:FamilyRelationsEnv",
        "how two of a family of three generations are related, one turn",
    ),
    EnvEntry(
        "rllm/FamilyRelationsHard-v0",
        "rllm_envs.reasoning.family_relations:FamilyRelationsEnv",
        "how two of a family of four generations are related, one turn",
        kwargs={"num_generations": 4},
    ),
    EnvEntry(
        "rllm/ObjectTracking-v0",
        "rllm_envs.reasoning.object_tracking:ObjectTrackingEnv",
        "who of four holds what after five swaps, one turn",
    ),
    EnvEntry(
        "rllm/ObjectTrackingHard-v0",
        "rllm_envs.reasoning.object_tracking:ObjectTrackingEnv",
        "who of eight holds what after twenty swaps, one turn",
        kwargs={"num_people": 8, "num_swaps": 20},
    ),
    EnvEntry(
        "rllm/SpatialReasoning-v0",
        "rllm_envs.reasoning.spatial_reasoning:SpatialReasoningEnv",
        "where a walk of six steps on a grid ends, one turn",
    ),
    EnvEntry(
        "rllm/SpatialReasoningHard-v0",
        "rllm_envs.reasoning.spatial_reasoning:SpatialReasoningEnv",
        "where a walk of twenty steps on a grid ends, one turn",
        kwargs={"num_steps": 20},
    ),
    EnvEntry(
        "rllm/CodeOutput-v0",
        "rllm_envs.reasoning.code_output:CodeOutputEnv",
        "what a small Python program prints, one turn",
    ),
    EnvEntry(
        "rllm/CodeOutputHard-v0",
        "rllm_envs.reasoning.code_output:CodeOutputEnv",
        "what a longer Python program prints, one turn",
        kwargs={"num_blocks": 8},
    ),
    EnvEntry(
        "rllm/ReasoningGym-v0",
        "rllm_envs.reasoning.reasoning_gym_env:ReasoningGymEnv",
        "one of the data sets of reasoning-gym, one turn",
        extra="reasoning-gym",
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
