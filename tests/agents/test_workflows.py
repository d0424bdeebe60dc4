from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from workflow_fakes import TaggedEngine, run_one

from rllm_agents import ChatAgent, ScriptedEngine, TerminationReason, UserError
from rllm_agents.workflows import (
    BestOfNWorkflow,
    DebateWorkflow,
    MatchWorkflow,
    PlanExecuteWorkflow,
    SelfRefineWorkflow,
    SingleTurnWorkflow,
    SolverJudgeWorkflow,
)
from rllm_agents.workflows.chat import chosen_number, question_of
from rllm_envs import GymEnv, math_reward_fn

TASK = {"question": "What is 6 * 7?", "answer": "42"}


def play(workflow: Any, say: Callable[[Sequence[Any]], str], task: Any = TASK, **arguments: Any):
    arguments.setdefault("reward_function", math_reward_fn)
    return run_one(
        workflow,
        task,
        workflow_args=arguments,
        rollout_engine=ScriptedEngine(say),
        tokenizer=None,
    )


def in_turn(*responses: str) -> Callable[[Sequence[Any]], str]:
    """Say these one after another, whoever asks."""
    left = iter(responses)
    return lambda messages: next(left)


def rewards(episode: Any) -> list[tuple[str, float]]:
    return [(t.name, t.reward) for t in episode.trajectories]


def test_a_single_turn_takes_one_step_of_a_registered_environment() -> None:
    episode = run_one(
        SingleTurnWorkflow,
        {"seed": 0},
        workflow_args={
            "agent_cls": ChatAgent,
            "env_cls": GymEnv,
            "env_args": {"env_id": "rllm/Arithmetic-v0"},
        },
        rollout_engine=ScriptedEngine(["\\boxed{nonsense}"]),
        tokenizer=None,
    )
    assert (episode.termination_reason, episode.reward) == (TerminationReason.ENV_DONE, 0.0)
    assert len(episode.steps) == 1


@pytest.mark.parametrize(
    ("verdict", "judged"),
    [("\\boxed{2}", 1.0), ("\\boxed{1}", 0.0), ("\\boxed{3}", 0.0), ("?", 0.0)],
)
def test_solvers_earn_by_their_own_answers_and_the_judge_by_its_choice(
    verdict: str, judged: float
) -> None:
    say = in_turn("<think>\\boxed{42}</think> \\boxed{41}", "\\boxed{42}", verdict)
    episode = play(SolverJudgeWorkflow, say, n_solutions=2)
    assert rewards(episode) == [("solver", 0.0), ("solver", 1.0), ("judge", judged)]
    assert episode.is_correct == (judged == 1.0)
    assert episode.metrics["solver_acc"] == 0.5
    # The judge is not shown what solvers thought.
    shown = episode.trajectories[2].steps[0].chat_completions[0]["content"]
    assert "think" not in shown
    assert shown.index("Answer 1") < shown.index("41") < shown.index("Answer 2")


def test_the_verifier_chooses_and_the_reward_function_judges() -> None:
    say = in_turn("\\boxed{40}", "\\boxed{42}", "\\boxed{41}")
    picks_the_first = play(BestOfNWorkflow, say, n=3, verifier=lambda task, text: "40" in text)
    assert rewards(picks_the_first) == [("solver", 0.0), ("solver", 1.0), ("solver", 0.0)]
    assert (picks_the_first.is_correct, picks_the_first.metrics["any_correct"]) == (False, 1.0)
    say = in_turn("\\boxed{40}", "\\boxed{42}", "\\boxed{41}")
    assert play(BestOfNWorkflow, say, n=3).is_correct


def test_debaters_read_each_other_and_the_majority_decides() -> None:
    prompts: list[str] = []
    answers = in_turn(*(f"\\boxed{{{x}}}" for x in (42, 41, 40, 42, 42, 40)))

    def say(messages: Sequence[Any]) -> str:
        prompts.append(messages[-1]["content"])
        return answers(messages)

    episode = play(DebateWorkflow, say, n_debaters=3, n_rounds=2)
    assert rewards(episode) == [("debater", 1.0), ("debater", 1.0), ("debater", 0.0)]
    assert (episode.is_correct, episode.metrics["agreement"]) == (True, 2 / 3)
    assert [p.count("Another answered") for p in prompts] == [0, 0, 0, 2, 2, 2]
    assert "{42}" not in prompts[3]
    assert "{41}" not in prompts[4]


def test_nobody_debates_alone() -> None:
    with pytest.raises(UserError, match="nobody debates alone"):
        play(DebateWorkflow, in_turn(), n_debaters=1)


def test_the_solver_answers_again_until_a_critic_accepts() -> None:
    say = in_turn("\\boxed{40}", "Too low.", "\\boxed{42}", "\\boxed{accept}")
    episode = play(SelfRefineWorkflow, say, n_rounds=5)
    assert rewards(episode) == [("solver", 1.0), ("critic", 1.0), ("critic", 1.0)]
    assert (episode.is_correct, episode.metrics["first_reward"]) == (True, 0.0)
    assert len(episode.trajectories[0].steps) == 2
    assert "Too low." in episode.trajectories[0].steps[1].chat_completions[2]["content"]


def test_a_refinement_may_spoil_a_right_answer() -> None:
    say = in_turn("\\boxed{42}", "Hm.", "\\boxed{40}")
    episode = play(SelfRefineWorkflow, say, n_rounds=1)
    assert rewards(episode) == [("solver", 0.0), ("critic", 0.0)]
    assert (episode.is_correct, episode.metrics["first_reward"]) == (False, 1.0)


def test_the_executor_takes_the_steps_of_the_plan() -> None:
    say = in_turn("Plan:\n1. add\n2) multiply\n3. third", "a", "b", "\\boxed{42}")
    episode = play(PlanExecuteWorkflow, say, max_plan_steps=2)
    assert rewards(episode) == [("planner", 1.0), ("executor", 1.0)]
    assert episode.metrics["plan_steps"] == 2.0
    executor = episode.trajectories[1]
    asked = [m["content"] for m in executor.steps[-1].chat_completions if m["role"] == "user"]
    assert asked[:2] == ["Step 1: add", "Step 2: multiply"]


def test_without_a_plan_the_executor_answers_at_once() -> None:
    episode = play(PlanExecuteWorkflow, in_turn("I cannot.", "\\boxed{42}"))
    assert (episode.reward, episode.metrics["plan_steps"]) == (2.0, 0.0)


@pytest.mark.parametrize(
    "workflow",
    [
        SolverJudgeWorkflow,
        BestOfNWorkflow,
        DebateWorkflow,
        SelfRefineWorkflow,
        PlanExecuteWorkflow,
    ],
)
def test_every_workflow_records_each_of_its_calls_once_and_answers_nonsense(workflow: Any) -> None:
    engine = TaggedEngine()
    arguments = {"reward_function": math_reward_fn}
    episode = run_one(workflow, TASK, rollout_engine=engine, workflow_args=arguments)
    assert (episode.error, episode.is_correct) == (None, False)
    turns = [t for r in episode.trajectories for record in r.token_records for t in record.turns]
    assert len(turns) == len(engine.sampled) == episode.metrics["num_calls"]
    assert all(t.reward == 0.0 for t in episode.trajectories)


def test_a_task_without_a_question_says_what_it_has() -> None:
    episode = play(BestOfNWorkflow, in_turn(), task={"text": "x"})
    assert "it has text" in (episode.error or "")
    assert question_of({"problem": "p"}) == "p"


@pytest.mark.parametrize(
    ("said", "number"),
    [("1", 1), (" 12 ", 12), ("13", None), ("0", None), ("-1", None), ("²", None), ("", None)],
)
def test_numbers_are_chosen_in_range_only(said: str, number: int | None) -> None:
    assert chosen_number(f"\\boxed{{{said}}}", 12) == number


def test_a_match_is_a_workflow_whose_seats_are_roles() -> None:
    arguments = {"env": "rllm/TicTacToe-v0", "opponents": {"player_1": "random"}}
    engine = TaggedEngine()
    episode = run_one(MatchWorkflow, {"seed": 3}, rollout_engine=engine, workflow_args=arguments)
    # What TaggedEngine says is no move: the model forfeits after three texts.
    assert (episode.id, episode.error, episode.is_correct) == ("0", None, False)
    model, script = episode.trajectories
    assert (model.name, model.reward, len(model.token_records)) == ("player_0", -1.0, 1)
    assert (script.name, script.reward, script.token_records) == ("player_1", 1.0, ())
    assert len(model.token_records[0].turns) == len(engine.sampled) == 3


def test_a_match_leaves_a_seat_to_the_model() -> None:
    arguments = {
        "env": "rllm/TicTacToe-v0",
        "opponents": {"player_0": "random", "player_1": "random"},
    }
    with pytest.raises(UserError, match="leave a seat"):
        run_one(MatchWorkflow, {"seed": 3}, workflow_args=arguments)
