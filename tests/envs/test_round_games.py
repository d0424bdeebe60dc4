"""Games in which all agents move at once."""

import itertools

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, EpisodeError, TaskError
from rllm_envs.multi_agent import make_parallel
from rllm_envs.multi_agent.prisoners_dilemma import PrisonersDilemma
from rllm_envs.multi_agent.public_goods import PublicGoods
from rllm_envs.multi_agent.rock_paper_scissors import SIGNS, RockPaperScissors
from rllm_envs.multi_agent.sealed_bid_auction import SealedBidAuction
from rllm_envs.multi_agent.split_coins import SplitCoins


def start(game, task):
    game.start(game.with_seed(task))
    return game


def play(game, *moves):
    """Play a round of bare moves and return the rewards in the order of the agents."""
    texts = {agent: f"\\boxed{{{move}}}" for agent, move in zip(game.agents, moves, strict=True)}
    rewards, hints = game.play_round(texts)
    assert not hints
    return tuple(rewards[agent] for agent in game.agents)


# Rock, paper, scissors


def test_each_sign_beats_one_and_loses_to_one():
    game = start(RockPaperScissors(num_rounds=9), {})
    results = {pair: play(game, *pair) for pair in itertools.product(SIGNS, repeat=2)}
    assert results["paper", "rock"] == results["scissors", "paper"] == (1, -1)
    assert results["rock", "scissors"] == (1, -1)
    assert results["rock", "paper"] == (-1, 1)
    assert all(results[sign, sign] == (0, 0) for sign in SIGNS)
    assert game.is_over


def test_no_sign_loses_to_every_sign():
    game = start(RockPaperScissors(), {})
    rewards, hints = game.play_round({"player_0": "hm", "player_1": r"\boxed{rock}"})
    assert rewards == {"player_0": -1.0, "player_1": 1.0}
    assert set(hints) == {"player_0"}
    assert game.play_round({})[0] == {"player_0": 0.0, "player_1": 0.0}


def test_the_expert_learns_a_habit():
    game = start(RockPaperScissors(num_rounds=30), {})
    cycle = itertools.cycle(SIGNS)
    totals = [play(game, game.expert_move("player_0"), next(cycle))[0] for _ in range(30)]
    assert sum(totals[-15:]) > 8


# Prisoner's dilemma


def test_payoffs_of_the_dilemma_by_hand_and_tit_for_tat():
    game = start(PrisonersDilemma(num_rounds=5), {"payoffs": [5, 3, 1, 0]})
    assert game.expert_move("player_0") == "cooperate"
    assert play(game, "cooperate", "cooperate") == (3, 3)
    assert play(game, "cooperate", "defect") == (0, 5)
    assert game.expert_move("player_0") == "defect"
    assert game.expert_move("player_1") == "cooperate"
    assert play(game, "Defect", "cooperate") == (5, 0)
    assert play(game, "defect", "defect") == (1, 1)
    assert game.play_round({"player_0": "", "player_1": r"\boxed{defect}"})[0] == {
        "player_0": 0.0,
        "player_1": 5.0,
    }
    assert game.totals == {"player_0": 9.0, "player_1": 14.0}
    assert game.observation("player_1").endswith("The game is over. You earned 14.")


def test_drawn_payoffs_make_a_dilemma():
    rng = np.random.default_rng(0)
    drawn = {tuple(PrisonersDilemma().generate_task(rng)["payoffs"]) for _ in range(100)}
    assert len(drawn) > 50
    for t, r, p, s in drawn:
        assert t > r > p > s >= 0
        assert 2 * r > t + s


@pytest.mark.parametrize("payoffs", [[5, 3, 1], [3, 5, 1, 0], [9, 3, 1, 0], [5, 3, 1, -1], None])
def test_other_payoffs_are_refused(payoffs):
    with pytest.raises(TaskError, match="payoffs"):
        PrisonersDilemma().with_seed({"payoffs": payoffs})


# Public goods


def test_the_pot_grows_and_is_shared():
    game = start(PublicGoods(), {"factor_percent": 150})
    # (10 + 5 + 0) * 1.5 / 3 = 7.5 for each.
    assert play(game, 10, 5, 0) == (7.5, 12.5, 17.5)
    assert [game.expert_move(agent) for agent in game.agents] == ["2", "5", "8"]
    assert "gifts you 10, player_1 5, player_2 0; you earn 7.5" in game.view("player_0")


def test_giving_is_good_for_all_and_bad_for_oneself_whatever_is_drawn():
    rng = np.random.default_rng(0)
    for players in (2, 5):
        game = PublicGoods(num_players=players)
        for _ in range(30):
            start(game, game.generate_task(rng))
            nothing = dict.fromkeys(game.agents, "0")
            alone = game.payoffs(nothing | {"player_0": "1"})
            assert alone["player_0"] < 10
            assert sum(alone.values()) > 10 * players


# Split coins


def test_demands_that_fit_are_paid_and_others_are_not():
    game = start(SplitCoins(num_rounds=3), {"piles": [7, 7, 4]})
    assert play(game, 3, 4) == (3, 4)
    assert play(game, 4, 4) == (0, 0)
    assert game.legal_moves("player_0") == ("0", "1", "2", "3", "4")
    assert game.play_round({"player_0": r"\boxed{5}", "player_1": r"\boxed{4}"})[0] == {
        "player_0": 0.0,
        "player_1": 4.0,
    }


def test_two_experts_never_waste_a_coin():
    rng = np.random.default_rng(0)
    game = SplitCoins(num_rounds=20)
    for _ in range(10):
        task = game.generate_task(rng)
        start(game, task)
        while not game.is_over:
            play(game, *(game.expert_move(agent) for agent in game.agents))
        assert sum(game.totals.values()) == sum(task["piles"])


def test_there_must_be_a_pile_for_each_round():
    with pytest.raises(TaskError, match="piles"):
        SplitCoins(num_rounds=3).with_seed({"piles": [5, 5]})


# Auction

VALUES = {"player_0": [50, 10], "player_1": [80, 10], "player_2": [20, 10]}


def test_the_highest_bid_wins_and_pays_the_second_or_itself():
    game = start(SealedBidAuction(num_rounds=2), {"values": VALUES})
    assert play(game, 50, 70, 20) == (0, 30, 0)
    # Of equal bids player_1 is first in the second round; its value is 10.
    assert play(game, 30, 30, 5) == (0, -20, 0)
    game = start(SealedBidAuction(num_rounds=2, price="first"), {"values": VALUES})
    assert play(game, 50, 70, 20) == (0, 10, 0)


def test_no_other_bid_is_better_than_ones_value_at_the_second_price():
    game = start(SealedBidAuction(num_rounds=2), {"values": VALUES})
    rng = np.random.default_rng(0)
    for _ in range(50):
        others = {"player_1": str(rng.integers(101)), "player_2": str(rng.integers(101))}
        gains = {
            bid: game.payoffs({"player_0": str(bid), **others})["player_0"] for bid in range(101)
        }
        assert gains[int(game.expert_move("player_0"))] == max(gains.values())


def test_the_bid_at_the_first_price_is_shaded_by_the_number_of_bidders():
    game = start(SealedBidAuction(num_rounds=2, price="first"), {"values": VALUES})
    assert [game.expert_move(agent) for agent in game.agents] == ["33", "53", "13"]


def test_values_of_others_are_never_shown():
    views = set()
    for value in (80, 90):
        env = make_parallel("rllm/SealedBidAuction-v0", num_rounds=2)
        values = VALUES | {"player_1": [value, 33]}
        observations, _ = env.reset(options={"task": {"values": values}})
        actions = dict.fromkeys(env.agents, r"\boxed{7}")
        later, *_ = env.step(actions)
        final, *_ = env.step(actions)
        views.add((observations["player_0"], later["player_0"], final["player_0"]))
    assert len(views) == 1


# The shell


def test_a_text_without_a_move_is_answered_and_marked():
    env = make_parallel("rllm/RockPaperScissors-v0", num_rounds=2)
    _, infos = env.reset(seed=0)
    assert infos["player_0"] == {
        "invalid": False,
        "turn": 0,
        "action_mask": (r"\boxed{rock}", r"\boxed{paper}", r"\boxed{scissors}"),
    }
    observations, rewards, terminations, _, infos = env.step({"player_1": r"\boxed{paper}"})
    assert "It counted as nothing." in observations["player_0"]
    assert "It counted" not in observations["player_1"]
    assert (infos["player_0"]["invalid"], infos["player_1"]["invalid"]) == (True, False)
    assert rewards == {"player_0": -1.0, "player_1": 1.0}
    _, _, terminations, _, infos = env.step({})
    assert terminations == {"player_0": True, "player_1": True}
    assert infos["player_0"]["action_mask"] == ()
    assert env.agents == []
    with pytest.raises(EpisodeError, match="reset"):
        env.step({})


def test_arguments_are_checked():
    for game_class, arguments in [
        (RockPaperScissors, {"num_rounds": 0}),
        (PrisonersDilemma, {"num_rounds": 101}),
        (PublicGoods, {"num_players": 1}),
        (SplitCoins, {"max_coins": 3}),
        (SealedBidAuction, {"price": "third"}),
    ]:
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            game_class(**arguments)
