import random

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent import IllegalMoveError
from rllm_envs.multi_agent.connect_four import COLUMNS, ROWS, ConnectFour, Position, has_four


def after(columns):
    position = Position()
    for column in columns:
        position.drop(column - 1)
    return position


def four_on_grid(grid: list[list[int]]) -> bool:
    """Four in a row found cell by cell."""
    for column in range(COLUMNS):
        for row in range(ROWS):
            for dc, dr in ((0, 1), (1, 0), (1, 1), (1, -1)):
                cells = [(column + k * dc, row + k * dr) for k in range(4)]
                if all(0 <= c < COLUMNS and 0 <= r < ROWS and grid[c][r] for c, r in cells):
                    return True
    return False


def test_four_in_a_row_is_found_like_cell_by_cell():
    rng = random.Random(0)
    found = 0
    for _ in range(500):
        grid = [[int(rng.random() < 0.4) for _ in range(ROWS)] for _ in range(COLUMNS)]
        stones = sum(1 << (c * 7 + r) for c in range(COLUMNS) for r in range(ROWS) if grid[c][r])
        assert has_four(stones) == four_on_grid(grid)
        found += has_four(stones)
    assert 50 < found < 450


def test_taking_a_stone_back_restores_the_position():
    position = after([4, 4, 3])
    before = (list(position.stones), list(position.heights), position.num_stones)
    position.drop(0)
    position.take_back(0)
    assert (position.stones, position.heights, position.num_stones) == before


@pytest.mark.parametrize(
    ("columns", "best"),
    [
        ([1, 7, 1, 7, 1, 6], 1),  # X wins on top of three of its own
        ([1, 7, 1, 7, 1], 1),  # O must block there
        ([2, 2, 3, 3], 4),  # two in the open middle: a third makes two threats
    ],
)
def test_the_expert_wins_blocks_and_makes_double_threats(columns, best):
    assert after(columns).best_column(3) + 1 == best


def test_search_agrees_with_plain_minimax():
    def minimax(position, depth):
        if depth == 0:
            return position.search(0, -(10**9), 10**9)
        values = []
        for column in position.columns():
            won = position.drop(column)
            values.append(1_000_000 + depth if won else -minimax(position, depth - 1))
            position.take_back(column)
        return max(values) if values else 0

    for columns in ([], [4], [4, 4, 4, 3], [1, 2, 3, 4, 4, 3, 2, 1], [3, 4, 3, 4, 3]):
        position = after(columns)
        assert position.search(3, -(10**9), 10**9) == minimax(position, 3)


def test_the_view_shows_columns_and_stones_from_the_top():
    game = ConnectFour()
    game.start(game.with_seed({"opening": [4, 4]}))
    empty = "\n".join([". . . . . . ."] * 4)
    assert game.view("player_0") == (f"1 2 3 4 5 6 7\n{empty}\n. . . O . . .\n. . . X . . .")


def test_a_full_column_is_no_legal_move():
    game = ConnectFour()
    game.start(game.with_seed({}))
    for _ in range(6):
        assert "1" in game.legal_moves(game.current)
        game.play(game.current, r"\boxed{1}")
    assert game.legal_moves(game.current) == ("2", "3", "4", "5", "6", "7")
    with pytest.raises(IllegalMoveError, match="'1' is not a legal move"):
        game.play(game.current, r"\boxed{1}")


def test_the_board_can_fill_up_without_a_winner():
    game = ConnectFour()
    game.start(game.with_seed({}))
    # Pairs of columns whose rows are XO XO OX OX XO XO, then the last column alone.
    columns = "1212212112123434434334345656656556567" + "7" * 5
    for column in columns:
        assert game.agent_to_move is not None
        game.play(game.current, f"\\boxed{{{column}}}")
    assert game.scores == {"player_0": 0.0, "player_1": 0.0}
    assert game.observation("player_0").endswith("It is a draw.")


def test_arguments_and_tasks_are_checked():
    with pytest.raises(EnvArgumentError, match="depth"):
        ConnectFour(depth=9)
    with pytest.raises(TaskError, match="opening"):
        ConnectFour().with_seed({"opening": [8]})
