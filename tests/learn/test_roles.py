from __future__ import annotations

import pytest

from rllm_agents.match_seats import FrozenPolicy
from rllm_learn.algorithms import GRPO, ReMax
from rllm_learn.config import TrainerConfig, load_config, to_settings
from rllm_learn.core.learner_set import LearnerPlan
from rllm_learn.errors import ConfigError
from rllm_learn.roles import plan_roles, run_algorithm

SEATS = ("player_0", "player_1")


def settings(players, **more):
    given = {"players": players, **more}
    return to_settings(given, TrainerConfig, config_name="grpo_trainer")


def test_in_self_play_both_seats_learn_with_the_one_policy():
    plan = plan_roles(settings({"player_0": {}}), SEATS)
    assert plan.learners == LearnerPlan(("policy",), (), 10)
    assert plan.sets == {}
    assert plan.adapters == {"player_0": "", "player_1": ""}
    assert plan.frozen == frozenset()


def test_opponents_that_are_models_are_sets_of_weights_beside_the_policys():
    players = {"player_1": {"opponent": ["self", "snapshot", "base", "random"]}}
    plan = plan_roles(settings(players, snapshot_every=3), SEATS)
    assert plan.learners == LearnerPlan(("policy",), ("policy",), 3)
    assert plan.sets == {"policy@snapshot": None, "base": None}
    assert plan.opponents["player_1"] == (
        FrozenPolicy(""),
        FrozenPolicy("policy@snapshot"),
        FrozenPolicy("base"),
        "random",
    )
    assert plan.frozen == {"player_1"}


def test_one_policy_is_the_policy_whatever_it_is_called():
    players = {"player_0": {"adapter": "mine"}, "player_1": {"opponent": "snapshot"}}
    plan = plan_roles(settings(players), SEATS)
    assert plan.learners.names == ("policy",)
    assert plan.sets == {"policy@snapshot": None}
    assert plan.learns == {}


def test_players_with_adapters_of_their_own_are_policies_that_learn_apart():
    players = {"player_0": {"adapter": "red"}, "player_1": {"adapter": "blue"}}
    plan = plan_roles(settings(players), SEATS)
    assert plan.learners.names == ("red", "blue")
    assert plan.sets == {"red": None, "blue": None}
    assert plan.adapters == {"player_0": "red", "player_1": "blue"}
    assert plan.learns == {"player_0": "red", "player_1": "blue"}


def test_roles_of_a_workflow_share_the_policy_unless_they_are_named():
    plan = plan_roles(settings({"judge": {"opponent": "base"}, "critic": {"adapter": "c"}}), None)
    assert plan.learners.names == ("policy", "c")
    assert plan.sets == {"c": None, "base": None}
    assert plan.adapters == {"judge": "base", "critic": "c"}
    assert plan.frozen == {"judge"}


@pytest.mark.parametrize(
    ("players", "seats", "words"),
    [
        ({"player_7": {}}, SEATS, "player_0, player_1"),
        ({s: {"opponent": "random"} for s in SEATS}, SEATS, "every seat"),
        ({"player_1": {"opponent": "rndom"}}, SEATS, "rndom"),
        ({"judge": {"opponent": "expert"}}, None, "script"),
        ({"judge": {"opponent": ["base", "self"]}}, None, "one opponent"),
        (
            {"player_1": {"opponent": "self", "adapter": "x"}, "player_0": {"adapter": "y"}},
            None,
            "x",
        ),
    ],
)
def test_what_cannot_be_is_one_error_with_the_remedy(players, seats, words):
    with pytest.raises(ConfigError, match=words):
        plan_roles(settings(players), seats)


def test_held_out_opponents_stay_the_same_all_through_a_run():
    with pytest.raises(ConfigError, match="snapshot"):
        plan_roles(settings({"player_0": {}}, eval={"opponents": ["snapshot"]}), SEATS)


def test_each_role_has_its_own_algorithm_or_the_runs():
    players = {
        "judge": {"algorithm": {"name": "remax", "group_size": 3}},
        "critic": {"algorithm": {"clip_high": 0.5}},
    }
    config = settings(players, algorithm={"name": "grpo", "group_size": 4})
    algorithm = run_algorithm(config, plan_roles(config, None))
    assert isinstance(algorithm.of("judge"), ReMax)
    critic = algorithm.of("critic")
    assert isinstance(critic, GRPO)
    assert (critic.config.clip_high, critic.config.group_size) == (0.5, 4)
    solver = algorithm.of("solver")
    assert (solver.config.clip_high, solver.config.group_size) == (0.2, 4)


@pytest.mark.parametrize(
    ("players", "words"),
    [
        ({"a": {"algorithm": {"name": "nope"}}}, "nope"),
        ({"a": {"algorithm": {"group_sise": 3}}}, "group_sise"),
        ({"a": {"algorithm": {"group_size": 1}}}, "at least 2"),
        ({"a": {"opponent": "base", "algorithm": {"group_size": 3}}}, "does not learn"),
        ({"a": {"adapter": "snapshot"}}, "snapshot"),
        ({"a": {"opponent": 3}}, "opponent"),
        ({"a": {"oponent": "base"}}, "players.a"),
    ],
)
def test_settings_of_a_player_are_checked(players, words):
    with pytest.raises(ConfigError, match=words):
        settings(players)


def test_a_players_algorithm_that_needs_fresh_samples_bounds_the_learner():
    with pytest.raises(ConfigError, match="remax"):
        settings({"a": {"algorithm": {"name": "remax"}}}, learner={"num_epochs": 2})


def test_players_are_set_from_the_command_line():
    config = load_config("grpo_trainer", ["players.player_1.opponent=[random,snapshot]"])
    checked = to_settings(config, TrainerConfig, config_name="grpo_trainer")
    assert checked.players["player_1"].opponents == ("random", "snapshot")
    config = load_config("grpo_trainer", ["players={player_0: {}, player_1: {}}"])
    assert list(to_settings(config, TrainerConfig, config_name="x").players) == list(SEATS)
