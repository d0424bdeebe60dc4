import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent.negotiation import Negotiation

TASK = {"pool": [2, 1, 3], "values": {"player_0": [2, 3, 1], "player_1": [0, 1, 3]}}


def start(task=TASK, **arguments):
    game = Negotiation(**arguments)
    game.start(game.with_seed(task))
    return game


def test_an_agreement_pays_each_player_its_own_worth():
    game = start()
    game.play("player_0", r"Books please. \boxed{2 1 0}")
    game.play("player_1", r"\boxed{accept}")
    # Two books and a hat: 2 * 2 + 3 = 7 of 10; three balls: 3 * 3 = 9 of 10.
    assert game.scores == {"player_0": 0.7, "player_1": 0.9}
    assert "you get 0 books, 0 hats, 3 balls" in game.view("player_1")
    assert game.observation("player_0").endswith("You earn 0.7 of 1.")


def test_without_an_agreement_nobody_earns_anything():
    game = start(max_proposals=2)
    assert "accept" not in game.legal_moves("player_0")
    game.play("player_0", r"\boxed{2 1 3}")
    assert game.view("player_1").endswith("Moves left, the next one included: 1.")
    game.play("player_1", r"\boxed{2 1 3}")
    assert game.scores == {"player_0": 0.0, "player_1": 0.0}
    game = start()
    game.forfeit("player_0")
    assert game.scores == {"player_0": 0.0, "player_1": 0.0}


def test_words_around_the_box_are_heard_and_thoughts_are_not():
    game = start()
    game.play("player_0", "<think>a ball is worth 1</think>I love\nhats. \\boxed{0 1 0} Deal?")
    assert (
        'player_0 wants 0 books, 1 hat, 0 balls. player_0 said: "I love hats. Deal?"'
        in game.view("player_1")
    )
    assert "think" not in game.view("player_1")
    game.play("player_1", "x" * 400 + r"\boxed{0 0 1}")
    assert f'"{"x" * 300}"' in game.view("player_0")


def test_legal_moves_are_all_divisions_of_the_pool():
    game = start()
    assert len(game.legal_moves("player_0")) == 3 * 2 * 4
    game.play("player_0", r"\boxed{2, 1, 0}")
    assert game.legal_moves("player_1")[:2] == ("accept", "0 0 0")
    assert game.legal_moves("player_0") == ()


def test_what_a_player_reads_does_not_depend_on_the_values_of_the_other():
    seen = set()
    for values in ([0, 1, 3], [5, 0, 0], [2, 6, 0]):
        game = start({"pool": [2, 1, 3], "values": {"player_0": [2, 3, 1], "player_1": values}})
        texts = [game.rules("player_0"), game.observation("player_0")]
        game.play("player_0", game.expert_action("player_0"))
        game.play("player_1", r"\boxed{0 0 3}")
        texts += [game.observation("player_0"), game.expert_move("player_0")]
        seen.add(tuple(texts))
    assert len(seen) == 1


def test_two_experts_always_agree_and_share_well():
    game = Negotiation()
    rng = np.random.default_rng(0)
    totals = []
    for _ in range(50):
        task = game.generate_task(rng)
        for own in task["values"].values():
            assert sum(n * v for n, v in zip(task["pool"], own, strict=True)) == 10
        game.start(game.with_seed(task))
        while game.agent_to_move is not None:
            game.play(game.current, game.expert_action(game.current))
        totals.append(sum(game.scores.values()))
    assert min(totals) > 0
    # Half of everything for both would be 1.
    assert sum(totals) / 50 > 1.3


@pytest.mark.parametrize(
    "change",
    [
        {"pool": [2, 1]},
        {"pool": [2, 1, 5]},
        {"values": {"player_0": [2, 3, 1]}},
        {"values": {"player_0": [2, 3, 2], "player_1": [0, 1, 3]}},
        {"values": 3},
    ],
)
def test_given_tasks_are_checked(change):
    with pytest.raises(TaskError):
        Negotiation().with_seed(TASK | change)


def test_the_number_of_proposals_is_checked():
    with pytest.raises(EnvArgumentError, match="max_proposals"):
        Negotiation(max_proposals=1)
