import itertools

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent.liars_dice import LiarsDice, chance_of_at_least


def start(first, second, **arguments):
    game = LiarsDice(**arguments)
    game.start(game.with_seed({"dice": {"player_0": first, "player_1": second}}))
    return game


def play(game, *moves):
    for move in moves:
        game.play(game.current, f"\\boxed{{{move}}}")
    return game.scores


def test_chances_are_those_of_all_rolls():
    rolls = list(itertools.product(range(6), repeat=3))
    for needed in range(-1, 5):
        hits = sum(roll.count(0) >= needed for roll in rolls)
        assert chance_of_at_least(needed, 3) == pytest.approx(hits / len(rolls))


@pytest.mark.parametrize(
    ("moves", "winner"),
    [
        (("2 5", "liar"), "player_0"),  # there are two fives
        (("3 5", "liar"), "player_1"),
        (("1 1", "2 2", "liar"), "player_0"),  # there is one two
        (("1 1", "1 2", "liar"), "player_1"),
    ],
)
def test_calls_by_hand(moves, winner):
    scores = play(start([1, 5], [2, 5]), *moves)
    assert scores[winner] == 1.0
    assert sum(scores.values()) == 0


def test_bids_rise_in_number_or_in_face():
    game = start([1, 5], [2, 5])
    assert "liar" not in game.legal_moves("player_0")
    assert len(game.legal_moves("player_0")) == 4 * 6
    play(game, "2 3")
    moves = game.legal_moves("player_1")
    assert moves[:4] == ("2 4", "2 5", "2 6", "3 1")
    assert moves[-2:] == ("4 6", "liar")


def test_the_highest_bid_can_only_be_called():
    game = start([6, 6], [6, 6])
    play(game, "4 6")
    assert game.legal_moves("player_1") == ("liar",)
    assert game.expert_move("player_1") == "liar"


def test_the_expert_bids_what_it_has_and_calls_what_cannot_be():
    game = start([5, 5, 5], [1, 2, 3])
    assert game.expert_move("player_0") == "3 5"
    play(game, "6 4")
    # Player_1 has no four, so six of six are impossible.
    assert game.expert_move("player_1") == "liar"


def test_the_others_dice_are_not_seen_before_the_end():
    views = set()
    for others in ([1, 2, 3], [6, 6, 6]):
        game = start([2, 2, 4], others)
        play(game, "1 4", "2 4")
        views.add((game.observation("player_0"), game.expert_move("player_0")))
    assert len(views) == 1
    play(game, "liar")
    assert "The other dice: 6 6 6." in game.view("player_0")


def test_tasks_and_arguments_are_checked():
    pairs = [([1], [1, 2]), ([7], [1]), ([], []), ([1], None)]
    for first, second in pairs:
        dice = {"player_0": first, "player_1": second}
        with pytest.raises(TaskError):
            LiarsDice().with_seed({"dice": dice})
    for dice in ({"player_0": [1]}, [1], None):
        with pytest.raises(TaskError):
            LiarsDice().with_seed({"dice": dice})
    with pytest.raises(EnvArgumentError, match="num_dice"):
        LiarsDice(num_dice=6)
