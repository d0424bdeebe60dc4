"""Several agents over RLlib: refused and accepted options, and the same run as in one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
import torch
from safetensors.torch import load_file

from rllm_agents import ChatAgent, Workflow
from rllm_agents.match_seats import MatchSeats
from rllm_agents.workflow_player import WorkflowPlayer
from rllm_learn import AgentTrainer
from rllm_learn.errors import ConfigError
from rllm_learn.rllib import GRPOConfig
from rllm_learn.tracking import read_metrics

PLAYERS: dict[str, Any] = {
    "player_0": {"adapter": "red"},
    "player_1": {"adapter": "blue", "algorithm": {"name": "reinforce", "baseline": "none"}},
}


class OneAnswer(Workflow):
    async def run(self, task: Any, uid: str, **kwargs: Any) -> None:
        self.new_trajectory("solver")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def test_rllibs_own_multi_agent_is_refused_with_what_to_use() -> None:
    with pytest.raises(ConfigError, match=r"\.players\("):
        GRPOConfig().multi_agent(policies={"a", "b"})


def test_players_are_the_seats_of_the_game() -> None:
    class OwnAgent(ChatAgent):
        pass

    config = (
        GRPOConfig()
        .environment("rllm/Nim-v0", env_config={"num_piles": 2})
        .players(
            {"player_0": {"agent_class": OwnAgent}, "player_1": {"opponent": "snapshot"}},
            snapshot_every=5,
            eval_opponents=["expert"],
        )
    )
    config.validate()
    chosen = config.chosen_players()
    assert isinstance(chosen.agent_class, MatchSeats)
    assert chosen.agent_class.learning_seats == ("player_0",)
    assert chosen.roles is not None
    assert chosen.roles.learners.snapshots == ("policy",)
    assert chosen.roles.learners.snapshot_every == 5
    assert list(chosen.roles.named_opponents) == ["expert"]


def test_a_workflow_needs_no_environment() -> None:
    config = GRPOConfig().workflow(OneAnswer).players({"judge": {"opponent": "base"}})
    config.validate()
    chosen = config.chosen_players()
    assert isinstance(chosen.agent_class, WorkflowPlayer)
    assert chosen.roles is not None
    assert chosen.roles.frozen == {"judge"}


@pytest.mark.slow
def test_over_actors_players_learn_as_in_one_process(cluster: None, tmp_path: Path) -> None:
    game = {"id": "rllm/PrisonersDilemma-v0", "kwargs": {"num_rounds": 1}}
    # Nobody has taught the tiny model this game: whatever it earns, each reward moves the weights.
    alone = {"name": "reinforce", "baseline": "none"}
    players = {
        "player_0": {"adapter": "red", "algorithm": alone},
        "player_1": {"adapter": "blue", "algorithm": alone},
    }
    run = tmp_path / "run"
    AgentTrainer(
        config={
            "env": game,
            "num_steps": 3,
            "tasks_per_step": 4,
            "algorithm": {"group_size": 4},
            "eval": {"num_tasks": 2, "every_steps": 9, "greedy": False},
            "tracking": {"to": []},
            "rollout": {"max_response_length": 24},
            "run_dir": str(run),
        },
        players=players,
    ).train()
    config = (
        GRPOConfig()
        .environment(game["id"], env_config=game["kwargs"])
        .players(players)
        .model("tiny")
        .rollout(max_response_length=24)
        .engine(num_engines=1)
        .env_runners(num_env_runners=1)
        .learners(num_learners=1)
        .training(tasks_per_step=4, group_size=4)
        .evaluation(evaluation_duration=2, greedy=False)
    )
    algo = config.build_algo()
    try:
        found = [algo.train()["env_runners"]["player_0"]["reward"] for _ in range(3)]
        assert "score/random" in algo.evaluate()["env_runners"]
        over_actors = algo.save_policy(tmp_path / "rllib")
    finally:
        algo.stop()
    rows = read_metrics(run / "metrics.jsonl")
    assert found == [row["train/player_0/reward"] for row in rows if "train/reward" in row]
    assert any(reward != 0.0 for reward in found)
    mine, theirs = adapters(run / "adapter"), adapters(over_actors)
    assert set(mine) == set(theirs) and len(mine) >= 2
    for name, tensors in mine.items():
        assert any(tensor.abs().max() > 0 for key, tensor in tensors.items() if "lora_B" in key)
        for key, tensor in tensors.items():
            torch.testing.assert_close(theirs[name][key], tensor, rtol=1e-3, atol=1e-6)


def adapters(directory: Path) -> dict[str, dict[str, torch.Tensor]]:
    """Tensors of all adapters in a directory, by where they lie."""
    files = sorted(directory.rglob("*.safetensors"))
    return {str(file.relative_to(directory)): load_file(file) for file in files}
