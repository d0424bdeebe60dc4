"""Playing a suite: nothing twice, nothing lost, and the same again from the same seed."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from rllm_agents.agents.chat import ChatAgent
from rllm_agents.errors import EngineError, UserError
from rllm_agents.execution_engine import AgentExecutionEngine
from rllm_agents.leaderboard import (
    EntryPlayed,
    ScriptedEntrant,
    Suite,
    SuiteEntry,
    SuiteRun,
    make_row,
    play_suite,
    read_row,
    row_path,
)
from rllm_agents.leaderboard.play import entry_requests
from rllm_agents.leaderboard.rows import actions_path
from rllm_agents.types import Completion, GenerationRequest, SamplingParams
from rllm_envs import GymEnv

GUESS = SuiteEntry("guess", env="rllm/GuessNumber-v0", num_tasks=8, max_turns=20)
SUMS = SuiteEntry("sums", env="rllm/Arithmetic-v0", num_tasks=6, attempts=2)
NIM = SuiteEntry("nim", match="rllm/Nim-v0", opponents=("random", "expert"), num_tasks=3)
SUITE = Suite("small", 1, "Three entries.", (GUESS, SUMS, NIM))


def suite_run(
    cache: Path, policy: str = "heuristic", *, seed: int = 0, workers: int = 1, **changes: Any
) -> SuiteRun:
    fields: dict[str, Any] = {
        "suite": SUITE,
        "name": policy,
        "policy": {"script": policy},
        "make_entrant": functools.partial(ScriptedEntrant, policy),
        "sampling": SamplingParams(),
        "seed": seed,
        "workers": workers,
        "cache": cache,
    }
    return SuiteRun(**{**fields, **changes})


def outcomes(played: dict[str, EntryPlayed]) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [(r.actions, r.reward, r.success, r.end, r.turns) for r in entry.records]
        for name, entry in played.items()
    }


class Counting(ScriptedEntrant):
    """Counts the entries that it is asked to play."""

    asked: list[str]

    def engine(self, entry: SuiteEntry, env_args: Any) -> AgentExecutionEngine:
        self.asked.append(entry.name)
        return super().engine(entry, env_args)


def test_each_entry_is_played_in_full_and_heuristics_do_as_they_should(tmp_path: Path) -> None:
    played = play_suite(suite_run(tmp_path))
    assert [len(entry.records) for entry in played.values()] == [8, 12, 2 * 3 * 2]
    assert all(r.reward == 1.0 and r.end == "env_done" for r in played["sums"].records)
    # Halving finds one number of 100 in 7 guesses.
    assert all(r.turns <= 7 and r.success for r in played["guess"].records)
    assert {r.reward for r in played["nim"].records} <= {0.0, 0.5, 1.0}


def test_the_oracle_wins_and_its_own_actions_are_recorded(tmp_path: Path) -> None:
    played = play_suite(suite_run(tmp_path, "oracle"))
    assert all(r.reward == 1.0 for name in ("guess", "sums") for r in played[name].records)
    assert all(r.actions[0].startswith("\\boxed{") for r in played["sums"].records)
    against_random = played["nim"].records[:6]
    assert sum(r.reward for r in against_random) == 6


def test_equal_seeds_play_alike_in_one_process_and_in_two(tmp_path: Path) -> None:
    one = outcomes(play_suite(suite_run(tmp_path / "a", "random")))
    two = outcomes(play_suite(suite_run(tmp_path / "b", "random", workers=2)))
    other = outcomes(play_suite(suite_run(tmp_path / "c", "random", seed=1)))
    assert one == two
    assert list(one) == ["guess", "sums", "nim"]
    assert one["guess"] != other["guess"]
    assert one["nim"] != other["nim"]


def test_attempts_of_one_task_differ(tmp_path: Path) -> None:
    records = play_suite(suite_run(tmp_path, "random"))["sums"].records
    pairs = zip(records[::2], records[1::2], strict=True)
    assert any(first.actions != second.actions for first, second in pairs)


def test_what_is_recorded_is_not_played_again(tmp_path: Path) -> None:
    first = suite_run(tmp_path)
    before = play_suite(first)
    path = first.record_path(GUESS)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:3]) + lines[3][:20])  # as a kill leaves it
    first.record_path(NIM).unlink()
    entrant = Counting("heuristic")
    object.__setattr__(entrant, "asked", [])
    after = play_suite(suite_run(tmp_path, make_entrant=lambda: entrant))
    assert entrant.asked == ["guess"]
    assert outcomes(after) == outcomes(before)
    assert path.read_text().startswith("".join(lines[:3]))


def test_other_settings_are_other_records(tmp_path: Path) -> None:
    base = suite_run(tmp_path)
    paths = {
        base.record_path(GUESS),
        base.record_path(SUMS),
        suite_run(tmp_path, seed=1).record_path(GUESS),
        suite_run(tmp_path, sampling=SamplingParams(top_k=5)).record_path(GUESS),
        suite_run(tmp_path, policy="random").record_path(GUESS),
        suite_run(tmp_path, policy="oracle", name="heuristic").record_path(GUESS),
    }
    assert len(paths) == 6
    assert base.record_path(GUESS) == suite_run(tmp_path, workers=2).record_path(GUESS)


class Failing:
    """An engine that fails in every second episode, until it is mended."""

    weights_version = 0

    def __init__(self) -> None:
        self.is_mended = False
        self.num_asked = 0

    async def generate(self, request: GenerationRequest) -> Completion:
        self.num_asked += 1
        if not self.is_mended and self.num_asked % 2 == 0:
            raise EngineError("out of order")
        return Completion(text="\\boxed{0}", finish_reason="stop")

    async def load_weights(self, tensors: Any, *, version: int) -> None:
        raise EngineError("no weights")

    def close(self) -> None:
        """Nothing is held."""


class FailingEntrant(ScriptedEntrant):
    """Plays with an engine of the test."""

    used: Failing

    def engine(self, entry: SuiteEntry, env_args: Any) -> AgentExecutionEngine:
        return AgentExecutionEngine(
            agent_class=ChatAgent, env_class=GymEnv, env_args=env_args, rollout_engine=self.used
        )


def test_failures_make_no_row_and_are_played_again_alone(tmp_path: Path) -> None:
    entrant = FailingEntrant("heuristic")
    object.__setattr__(entrant, "used", Failing())
    suite = Suite("small", 1, "", (SUMS,))
    run = suite_run(tmp_path, suite=suite, make_entrant=lambda: entrant)
    with pytest.raises(EngineError, match=r"6 episodes failed .*sums .*out of order.*no others"):
        play_suite(run)
    entrant.used.is_mended = True
    entrant.used.num_asked = 0
    played = play_suite(run)
    assert entrant.used.num_asked == 6
    assert len(played["sums"].records) == 12


def test_tasks_are_a_function_of_the_seed_and_never_of_training(tmp_path: Path) -> None:
    requests, env_args = entry_requests(GUESS, 3)
    assert env_args == {"env_id": "rllm/GuessNumber-v0", "env_kwargs": {"split": "test"}}
    assert all(int(request.task["seed"]) >= 3_000_000 for request in requests)
    assert [r.task for r in requests] == [r.task for r in entry_requests(GUESS, 3)[0]]
    matches, _ = entry_requests(NIM, 2)
    assert matches[0].task == {"seed": 2_000_000, "seat": "player_0", "opponent": "random"}
    assert len({request.id for request in matches}) == len(matches) == 12


def test_the_seed_chooses_rows_of_a_data_set(data_dir: Path) -> None:
    entry = SuiteEntry("aime", env="rllm/Math-v0", dataset="aime2024", num_tasks=10)
    one, other = (entry_requests(entry, seed)[0] for seed in (0, 1))
    assert len({str(request.task) for request in one}) == 10
    assert [r.task for r in one] != [r.task for r in other]
    too_many = SuiteEntry("aime", env="rllm/Math-v0", dataset="aime2024", num_tasks=31)
    with pytest.raises(UserError, match="aime takes 31 tasks, but aime2024 has 30"):
        entry_requests(too_many, 0)


def test_rows_say_what_was_played_by_whom_where(tmp_path: Path) -> None:
    results = tmp_path / "results"
    for policy in ("random", "oracle", "heuristic"):
        run = suite_run(tmp_path, policy)
        make_row(run, play_suite(run), results)
    row = read_row(row_path(results, "small", "heuristic"))
    assert (row["suite"], row["name"], row["seed"]) == ("small", "heuristic", 0)
    assert row["policy"]["script"] == "heuristic"
    assert row["total"]["episodes"] == 8 + 12 + 12
    assert row["hardware"]["cores"] >= 1
    assert row["versions"]["rllm-envs"]
    assert len(row["environment_digest"]) == 64
    assert [entry["name"] for entry in row["entries"]] == ["guess", "sums", "nim"]
    guess = row["entries"][0]
    assert guess["references"][1] == 1.0
    assert guess["normalised"][0] == pytest.approx(1.0)
    actions = actions_path(row_path(results, "small", "heuristic"))
    assert actions.stat().st_size < 5_000
    assert row_path(results, "small", "heuristic").stat().st_size < 5_000


def test_two_seeds_score_inside_each_others_intervals(tmp_path: Path) -> None:
    entries = tuple(
        SuiteEntry(name, env=f"rllm/{name}-v0", num_tasks=60)
        for name in ("NumberSequence", "MCQ", "Sorting", "Bandit", "TicTacToe")
    )
    suite = Suite("seeds", 1, "", entries)
    totals = []
    for seed in (0, 1):
        run = suite_run(tmp_path, seed=seed, suite=suite)
        row = make_row(run, play_suite(run), tmp_path / f"results-{seed}")
        totals.append(row["total"]["score"])
    (one, one_low, one_high), (other, other_low, other_high) = totals
    assert one != other
    assert other_low < one < other_high
    assert one_low < other < one_high
