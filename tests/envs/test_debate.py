import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.multi_agent import make_aec
from rllm_envs.multi_agent.debate import Debate

TASK = {"amounts": [10, 20, 30, 40], "limit": 90}


def start(**arguments):
    game = Debate(**arguments)
    game.start(game.with_seed(TASK))
    return game


def play(game, *texts):
    for text in texts:
        game.play(game.current, text)
    return game.scores


def test_the_rule_compares_the_mean_of_what_is_cited_with_the_limit():
    # (40 + 10) / 2 * 4 = 100 is at least 90.
    assert play(start(num_citations=1), r"\boxed{4}", r"\boxed{1}") == {
        "debater_0": 1.0,
        "debater_1": -1.0,
    }
    # (30 + 10) / 2 * 4 = 80 is not.
    assert play(start(num_citations=1), r"\boxed{3}", r"\boxed{1}") == {
        "debater_0": -1.0,
        "debater_1": 1.0,
    }


def test_the_experts_cite_the_extremes_and_none_twice():
    game = start()
    moves = []
    while game.agent_to_move is not None:
        moves.append(game.expert_move(game.current))
        play(game, game.expert_action(game.current))
    assert moves == ["4", "1", "3", "2"]
    # All is cited, so the verdict is the truth: 100 >= 90.
    assert game.verdict == game.truth == "yes"


def test_an_agent_can_judge_and_is_paid_for_the_truth():
    game = start(judge="agent", num_citations=1)
    assert game.agents == ("debater_0", "debater_1", "judge_0")
    play(game, r"Look at the forty. \boxed{4}", r"\boxed{1}")
    assert game.current == "judge_0"
    assert game.legal_moves("judge_0") == ("yes", "no")
    assert game.view("judge_0") == (
        'debater_0 cites entry 4: 40 and says: "Look at the forty."\ndebater_1 cites entry 1: 10.'
    )
    scores = play(game, r"\boxed{No}")
    assert scores == {"debater_0": -1.0, "debater_1": 1.0, "judge_0": -1.0}
    assert game.observation("judge_0").endswith("The verdict was false.")


def test_the_judge_sees_nothing_that_is_not_cited():
    views = set()
    for second, third in [(20, 30), (99, 1)]:
        game = Debate(judge="agent", num_citations=1)
        game.start(game.with_seed({"amounts": [10, second, third, 40], "limit": 90}))
        play(game, r"\boxed{4}", r"\boxed{1}")
        views.add((game.rules("judge_0"), game.observation("judge_0")))
    assert len(views) == 1


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (r"I say \boxed{yes}", "yes"),
        (r"\boxed{yes}? \boxed{no}", "no"),
        ("yes", "no"),
        (None, "no"),
    ],
)
def test_a_function_can_judge(said, verdict):
    seen = []

    def judge(observation):
        seen.append(observation)
        return said

    env = make_aec("rllm/Debate-v0", judge=judge, num_citations=1)
    env.reset(options={"task": TASK})
    env.step(r"\boxed{4}")
    env.step(r"\boxed{1}")
    assert env.unwrapped.game.verdict == verdict
    assert "You are judge_0" in seen[0]
    assert "20" not in seen[0]


def test_who_makes_no_legal_move_loses():
    game = start(judge="agent")
    game.forfeit("debater_1")
    assert game.scores == {"debater_0": 1.0, "debater_1": -1.0, "judge_0": 0.0}
    game = start(judge="agent")
    game.forfeit("judge_0")
    assert game.scores == {"debater_0": 0.0, "debater_1": 0.0, "judge_0": -1.0}


def test_either_side_is_right_about_half_the_time():
    env = make_aec("rllm/Debate-v0")
    truths = []
    for seed in range(200):
        env.reset(seed=seed)
        truths.append(env.unwrapped.game.truth)
    assert 70 < truths.count("yes") < 130


def test_arguments_and_tasks_are_checked():
    with pytest.raises(EnvArgumentError, match="judge"):
        Debate(judge="llm")
    with pytest.raises(EnvArgumentError, match="num_citations"):
        Debate(num_entries=6, num_citations=4)
    with pytest.raises(TaskError, match="at least 6"):
        Debate(num_citations=3).with_seed(TASK)
    with pytest.raises(TaskError, match="limit"):
        Debate().with_seed({"amounts": [1, 2, 3, 4]})
