import itertools
from collections import Counter

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent.betting_solver import (
    best_response_value,
    deals,
    exploitability,
    solve,
    value,
)
from rllm_envs.multi_agent.kuhn_poker import KUHN, KuhnPoker, KuhnPokerEnv
from rllm_envs.multi_agent.leduc_poker import LEDUC, LeducPoker, leduc_strategy

UNIFORM_KUHN = {
    f"{card}:{history}": dict.fromkeys("cf" if history.endswith("b") else "kb", 0.5)
    for card in "JQK"
    for history in ("", "k", "b", "kb")
}


def kuhn_strategy():
    game = KuhnPoker()
    return {key: game.strategy(key[0], "", (key.partition(":")[2],)) for key in UNIFORM_KUHN}


def played(game, task, words):
    game.start(game.with_seed(task))
    for word in words.split():
        game.play(game.current, f"\\boxed{{{word}}}")
    return game


@pytest.mark.parametrize(
    ("deal", "words", "gain"),
    [
        ("KQ", "check check", 1),
        ("QK", "check check", -1),
        ("JK", "bet fold", 1),
        ("KJ", "bet call", 2),
        ("QK", "bet call", -2),
        ("KJ", "check bet fold", -1),
        ("JQ", "check bet call", -2),
        ("KQ", "check bet call", 2),
    ],
)
def test_kuhn_payoffs_by_hand(deal, words, gain):
    game = played(KuhnPoker(), {"deals": [deal]}, words)
    assert game.scores == {"player_0": gain, "player_1": -gain}


@pytest.mark.parametrize(
    ("deal", "words", "gain"),
    [
        ("KQJ", "check check check check", 1),
        ("KKJ", "check check bet call", 0),
        ("KQQ", "check check check check", -1),  # a pair beats a king
        ("JKJ", "bet raise fold", -3),  # 1 + 2 put in, then 4 more to call
        ("JKJ", "bet raise call bet raise call", 13),  # 1 + 4 + 8
        ("QJK", "bet call check bet fold", -3),
        ("QJK", "check bet raise call bet call", 9),  # 1 + 4 + 4
        ("QKJ", "check bet call check check", -3),
    ],
)
def test_leduc_payoffs_by_hand(deal, words, gain):
    game = played(LeducPoker(), {"deals": [deal]}, words)
    assert game.scores == {"player_0": gain, "player_1": -gain}


def test_the_first_to_act_changes_from_hand_to_hand_and_chips_add_up():
    game = KuhnPoker()
    played(game, {"deals": ["KQ", "KQ", "JQ"]}, "bet call")
    assert game.current == "player_1"
    assert game.legal_moves("player_1") == ("check", "bet")
    for word in ("bet", "fold", "check", "check"):
        game.play(game.current, f"\\boxed{{{word}}}")
    # +2, then player_0 folds its king to player_1's bet: -1, then the queen wins: -1.
    assert game.net == {"player_0": 0, "player_1": 0}
    assert game.view("player_0") == (
        "Hand 1: player_0 won 2 (player_0 had K, player_1 had Q).\n"
        "Hand 2: player_1 won 1 (player_0 folded).\n"
        "Hand 3: player_1 won 1 (player_0 had J, player_1 had Q)."
    )


def test_two_bets_a_round_and_no_more():
    game = played(LeducPoker(), {"deals": ["KQJ"]}, "bet raise")
    assert game.legal_moves("player_0") == ("call", "fold")
    game.play("player_0", r"\boxed{call}")
    assert game.legal_moves("player_0") == ("check", "bet")
    assert game.betting.max_stake == 13


def test_the_kuhn_expert_is_an_equilibrium_worth_minus_one_eighteenth():
    strategy = kuhn_strategy()
    assert value(KUHN, strategy, strategy) == pytest.approx(-1 / 18)
    assert best_response_value(KUHN, strategy, 0) == pytest.approx(-1 / 18)
    assert best_response_value(KUHN, strategy, 1) == pytest.approx(1 / 18)


def test_the_kuhn_expert_wins_a_sixth_per_hand_from_random_play_in_either_position():
    strategy = kuhn_strategy()
    assert value(KUHN, strategy, UNIFORM_KUHN) == pytest.approx(1 / 6)
    assert -value(KUHN, UNIFORM_KUHN, strategy) == pytest.approx(1 / 6)


def test_best_replies_to_random_kuhn_by_brute_force():
    """All 64 pure strategies of a position, tried one by one."""
    for position, histories in ((0, ("", "kb")), (1, ("k", "b"))):
        keys = [f"{card}:{history}" for card in "JQK" for history in histories]
        best = -9.0
        for choices in itertools.product((0, 1), repeat=6):
            pure = {
                key: {letter: float(index == choice) for index, letter in
                      enumerate(UNIFORM_KUHN[key])}
                for key, choice in zip(keys, choices, strict=True)
            }  # fmt: skip
            pair = (pure, UNIFORM_KUHN) if position == 0 else (UNIFORM_KUHN, pure)
            result = value(KUHN, *pair)
            best = max(best, result if position == 0 else -result)
        assert best_response_value(KUHN, UNIFORM_KUHN, position) == pytest.approx(best)


def test_the_solver_finds_the_value_of_kuhn_poker():
    strategy = solve(KUHN, 200)
    assert value(KUHN, strategy, strategy) == pytest.approx(-1 / 18, abs=1e-3)
    assert exploitability(KUHN, strategy) < 2e-3


def test_the_leduc_table_is_nearly_an_equilibrium():
    strategy = leduc_strategy()
    assert len(strategy) == 288
    for key, chances in strategy.items():
        assert "".join(chances) == LEDUC.legal(tuple(key.partition(":")[2].split("/")))
        assert sum(chances.values()) == pytest.approx(1)
    assert 0 <= exploitability(LEDUC, strategy) < 0.001
    # The published value of the game to the player in the first position.
    assert value(LEDUC, strategy, strategy) == pytest.approx(-0.0856, abs=5e-4)
    uniform = {key: dict.fromkeys(chances, 1 / len(chances)) for key, chances in strategy.items()}
    assert value(LEDUC, strategy, uniform) == pytest.approx(0.592, abs=1e-3)
    assert -value(LEDUC, uniform, strategy) == pytest.approx(0.823, abs=1e-3)
    assert exploitability(LEDUC, uniform) == pytest.approx(2.3736, abs=1e-4)


def test_deals_are_weighed_by_the_deck():
    chances = deals(LEDUC)
    assert sum(chances.values()) == pytest.approx(1)
    assert ("J", "J", "J") not in chances
    assert chances["J", "J", "Q"] == pytest.approx(2 / 6 * 1 / 5 * 2 / 4)
    assert chances["J", "Q", "K"] == pytest.approx(2 / 6 * 2 / 5 * 2 / 4)


def test_the_experts_bluff_as_often_as_their_strategy_says():
    counts = Counter()
    game = KuhnPoker()
    for seed in range(600):
        game.start(game.with_seed({"deals": ["JK"], "seed": seed}))
        counts[game.expert_move("player_0")] += 1
        assert game.expert_move("player_0") == game.expert_move("player_0")
    assert counts["bet"] == pytest.approx(200, abs=40)


@pytest.mark.parametrize("game_class", [KuhnPoker, LeducPoker])
def test_no_observation_depends_on_the_others_card(game_class):
    deck = "JQK"
    for own in deck:
        seen = {}
        for hidden in set(deck) - {own}:
            public = next(card for card in deck if card not in (own, hidden))
            # The public card is the same in all: one that both deals may hold.
            deal = own + hidden + ("J" if game_class is LeducPoker else "")
            if deal.count("J") > 2:
                deal = own + hidden + public
            game = game_class()
            game.start(game.with_seed({"deals": [deal, deal]}))
            views = [game.observation("player_0")]
            for word in ("bet", "call")[: 1 if game_class is KuhnPoker else 2]:
                game.play(game.current, f"\\boxed{{{word}}}")
                views.append(game.observation("player_0"))
            seen[hidden] = views
        assert len({tuple(views) for views in seen.values()}) == 1


def test_a_fold_shows_no_card():
    game = played(KuhnPoker(), {"deals": ["KQ", "JQ"]}, "bet fold")
    assert "had" not in game.view("player_0")


def test_who_makes_no_legal_move_loses_the_greatest_stake_of_each_hand_left():
    env = KuhnPokerEnv(max_retries=0, num_hands=3)
    env.reset(options={"task": {"deals": ["KQ", "KQ", "KQ"]}})
    observation, reward, terminated, _, info = env.step("hm")
    assert (reward, terminated, info["success"]) == (-2.0, True, False)
    assert observation.endswith("You lost 6 chips.")


@pytest.mark.parametrize("deals", [[], ["KK"], ["KQJ"], ["KX"], "KQ", [1], None, ["KQ"] * 51])
def test_given_deals_are_checked(deals):
    with pytest.raises(TaskError, match="deal"):
        KuhnPoker().with_seed({"deals": deals})


def test_the_number_of_hands_is_checked():
    with pytest.raises(EnvArgumentError, match="num_hands"):
        LeducPoker(num_hands=51)
