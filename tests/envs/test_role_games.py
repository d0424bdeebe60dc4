"""Solver and judge, proposer and solver, twenty questions for two."""

import gymnasium
import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent import IllegalMoveError, make_aec
from rllm_envs.multi_agent.proposer_solver import ProposerSolver
from rllm_envs.multi_agent.solver_judge import SolverJudge
from rllm_envs.multi_agent.things_table import QUESTIONS, THINGS
from rllm_envs.multi_agent.twenty_questions_duo import TwentyQuestionsDuo, known_question
from rllm_envs.tasks import task_split

PROBLEM = {"question": "What is 1/2 + 1/4?", "answer": "3/4"}


def start(game, task):
    game.start(game.with_seed(task))
    return game


# Solver and judge


def test_solvers_and_judge_are_paid_for_right_answers():
    game = start(SolverJudge(), PROBLEM)
    game.play("solver_0", r"<think>hm</think>It is \boxed{1/2}.")
    game.play("solver_1", r"\boxed{0.75}")
    assert game.view("judge_0") == ("Solution 1: It is \\boxed{1/2}.\nSolution 2: \\boxed{0.75}")
    assert game.expert_move("judge_0") == "2"
    game.play("judge_0", r"\boxed{1}")
    assert game.scores == {"solver_0": 0.0, "solver_1": 1.0, "judge_0": 0.0}


def test_a_solver_does_not_see_the_other_solution():
    game = start(SolverJudge(), PROBLEM)
    game.play("solver_0", r"secret \boxed{3/4}")
    assert "secret" not in game.rules("solver_1") + game.observation("solver_1")
    assert "secret" in game.observation("solver_0")


def test_a_solver_that_writes_no_box_hands_in_nothing_and_the_game_goes_on():
    env = make_aec("rllm/SolverJudge-v0", num_solvers=3, max_retries=0)
    env.reset(options={"task": PROBLEM})
    for text in ("no idea", r"\boxed{3/4}", r"\boxed{1}"):
        env.step(text)
    assert env.agent_selection == "judge_0"
    assert "Solution 1: (nothing)" in env.last()[0]
    env.step("neither")
    assert env.rewards == {"solver_0": 0.0, "solver_1": 1.0, "solver_2": 0.0, "judge_0": 0.0}
    assert all(env.terminations.values())


def test_long_solutions_keep_their_end():
    game = start(SolverJudge(), PROBLEM)
    game.play("solver_0", "x" * 5000 + r"\boxed{3/4}")
    assert len(game.solutions[0]) == 2000
    assert game.solutions[0].endswith(r"\boxed{3/4}")


def test_problems_are_split_as_those_of_math():
    for split in ("train", "test"):
        env = make_aec("rllm/SolverJudge-v0", split=split)
        math = gymnasium.make("rllm/Math-v0", split=split).unwrapped
        for seed in range(20):
            env.reset(seed=seed)
            task = env.task
            problem = {name: task[name] for name in ("question", "answer", "family")}
            assert task_split(problem) == split
            math.reset(seed=seed)
            assert set(math.task) == set(problem)


@pytest.mark.parametrize(
    "task", [{}, {"question": "?"}, PROBLEM | {"answer": "x"}, {"answer": "1"}]
)
def test_given_problems_are_checked(task):
    with pytest.raises(TaskError):
        SolverJudge().with_seed(task)


# Proposer and solver

SIZE = {"num_terms": 3, "digits": 2}


@pytest.mark.parametrize(
    ("answers", "scores"),
    [("9 9 9 9", (0.0, 1.0)), ("9 1 x 9", (1.0, 0.5)), ("1 1 9 1", (0.75, 0.25))],
)
def test_the_proposer_is_paid_for_problems_of_the_right_difficulty(answers, scores):
    game = start(ProposerSolver(), SIZE)
    game.play("proposer_0", r"\boxed{(1 + 2) * 3}")
    for number, answer in enumerate(answers.split(), start=1):
        assert game.observation("solver_0") == f"Attempt {number} of 4.\nIt is your turn."
        game.play("solver_0", f"\\boxed{{{answer}}}")
    assert game.scores == {"proposer_0": scores[0], "solver_0": scores[1]}


@pytest.mark.parametrize(
    "text",
    ["1 + 2", "", "1 + 2 + 100", "1 + 2 + 3 + 4", "1 / 2 * 3", "1 + (2 * 3", "abc", "1 ** 2 ** 3 4",
     "__import__('os')", "1 2 3", "9" * 9999],
)  # fmt: skip
def test_other_expressions_are_refused(text):
    game = start(ProposerSolver(), SIZE)
    with pytest.raises(IllegalMoveError):
        game.play("proposer_0", f"\\boxed{{{text}}}")
    assert game.current == "proposer_0"


def test_experts_of_all_sizes_are_right():
    for terms in range(2, 9):
        for digits in range(1, 7):
            game = start(ProposerSolver(num_attempts=1), {"num_terms": terms, "digits": digits})
            game.play("proposer_0", game.expert_action("proposer_0"))
            game.play("solver_0", game.expert_action("solver_0"))
            assert game.scores == {"proposer_0": 0.0, "solver_0": 1.0}


def test_no_problem_costs_the_proposer_and_an_attempt_without_a_box_is_wrong():
    env = make_aec("rllm/ProposerSolver-v0", max_retries=0, num_attempts=2)
    env.reset(options={"task": SIZE})
    env.step("no")
    assert env.rewards == {"proposer_0": -1.0, "solver_0": 0.0}
    env.reset(options={"task": SIZE})
    for text in (r"\boxed{1+2+3}", "no", r"\boxed{6}"):
        env.step(text)
    assert env.rewards == {"proposer_0": 1.0, "solver_0": 0.5}


# Twenty questions for two


def test_each_pair_of_things_is_told_apart_by_a_question():
    answers = {tuple(thing in yes for yes in QUESTIONS.values()) for thing in THINGS}
    assert len(answers) == len(THINGS) == 50
    assert all(yes <= set(THINGS) and 0 < len(yes) < 50 for yes in QUESTIONS.values())


@pytest.mark.parametrize("thing", THINGS)
def test_the_experts_find_each_thing_with_at_most_ten_questions(thing):
    game = start(TwentyQuestionsDuo(), {"thing": thing})
    while game.agent_to_move is not None:
        game.play(game.current, game.expert_action(game.current))
    assert game.scores == {"asker_0": 1.0, "answerer_0": 1.0}
    assert len(game.log) <= 10


def duo(*texts, thing="cat", **arguments):
    game = start(TwentyQuestionsDuo(**arguments), {"thing": thing})
    for text in texts:
        game.play(game.current, f"\\boxed{{{text}}}")
    return game


def test_a_false_answer_to_a_checked_question_costs_the_answerer():
    game = duo("is it an ANIMAL", "no", "guess: Cat")
    assert game.scores == {"asker_0": 1.0, "answerer_0": 0.0}
    game = duo("Does it purr?", "no", "Is it an animal?", "yes", "guess: cat")
    assert game.scores == {"asker_0": 1.0, "answerer_0": 1.0}


def test_guesses_count_as_questions_and_the_thing_may_not_be_found():
    game = duo(*["guess: dog"] * 5, num_questions=5)
    assert game.scores == {"asker_0": 0.0, "answerer_0": 0.0}
    assert game.observation("asker_0").endswith("The thing was not found: cat.")


def test_the_asker_never_reads_the_thing():
    texts = set()
    for thing in ("cat", "cow"):
        game = duo("Is it an animal?", "yes", "guess: dog", thing=thing)
        texts.add((game.rules("asker_0"), game.observation("asker_0"), game.expert_move("asker_0")))
    assert len(texts) == 1
    assert "this thing: cow" in game.rules("answerer_0")


@pytest.mark.parametrize("text", ["", "guess: unicorn", "x" * 201])
def test_other_questions_are_refused(text):
    with pytest.raises(IllegalMoveError):
        duo(text)


def test_an_expert_answers_unknown_to_what_is_not_in_the_table():
    assert known_question(" does it  bark ") == "Does it bark?"
    assert known_question("Is it nice?") is None
    assert duo("Is it nice?").expert_move("answerer_0") == "unknown"


def test_no_thing_is_in_both_splits():
    drawn = {}
    for split in ("train", "test"):
        env = make_aec("rllm/TwentyQuestionsDuo-v0", split=split)
        drawn[split] = set()
        for seed in range(60):
            env.reset(seed=seed)
            drawn[split].add(env.task["thing"])
    assert len(drawn["test"]) >= 3
    assert not drawn["train"] & drawn["test"]


def test_arguments_are_checked():
    for game_class, name in [
        (SolverJudge, "num_solvers"),
        (ProposerSolver, "num_attempts"),
        (TwentyQuestionsDuo, "num_questions"),
    ]:
        with pytest.raises(EnvArgumentError, match=name):
            game_class(**{name: 0})
    with pytest.raises(TaskError, match="thing"):
        TwentyQuestionsDuo().with_seed({"thing": ["cat"]})
    with pytest.raises(TaskError, match="digits"):
        ProposerSolver().with_seed({"num_terms": 3, "digits": 7})


def test_generated_sizes_are_within_what_is_documented():
    rng = np.random.default_rng(0)
    sizes = {tuple(ProposerSolver().generate_task(rng).values()) for _ in range(400)}
    assert sizes == {(terms, digits) for terms in range(2, 6) for digits in range(1, 5)}
