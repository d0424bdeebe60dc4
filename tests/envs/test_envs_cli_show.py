import gymnasium
import pytest

from rllm_envs import MissingDependencyError, SingleTurnEnv
from rllm_envs.cli import main
from rllm_envs.cli.transcripts import example
from rllm_envs.multi_agent import GAMES, make_aec, make_parallel


def shown(capsys, *arguments):
    assert main(["show", *arguments]) == 0
    return capsys.readouterr().out


def test_show_prints_the_page_the_arguments_and_an_episode_of_the_oracle(capsys):
    out = shown(capsys, "rllm/Calculator-v0", "--seed", "2")
    assert out.startswith("rllm/Calculator-v0 (gymnasium)\n\nCompute a product in a few turns")
    assert "\n## Rewards\n" in out
    signature = "digits=2, operators='*', num_terms=2, max_turns=3, split='train', render_mode=None"
    assert f"\n## Signature\n{signature}\n" in out
    # 85 * 33 = 2805
    assert out.endswith(
        "\n## Example (seed 2)\n"
        "What is 85 * 33? You may write <calc>2 * 3</calc> to use a calculator. Give the answer "
        "in \\boxed{}.\n> <calc>85 * 33</calc>\nResult: 2805\n> \\boxed{2805}\n[end, reward 1]\n"
    )


def test_show_gives_the_defaults_of_the_id_and_an_example_with_the_given_arguments(capsys):
    assert "num_steps=5, num_tests=12, kinds=('list', 'text')" in shown(
        capsys, "rllm/PythonCodeHard-v0"
    )
    out = shown(capsys, "rllm/Arithmetic-v0", "--arg", "digits=1", "-a", "operators=+")
    question = out.rpartition("What is ")[2].partition("?")[0]
    left, right = question.split(" + ")
    assert len(left) == len(right) == 1
    assert f"> \\boxed{{{int(left) + int(right)}}}\n" in out


def test_an_id_of_both_registries_is_gymnasiums_and_tells_of_the_other(capsys):
    out = shown(capsys, "rllm/Nim-v0")
    assert out.startswith("rllm/Nim-v0 (gymnasium)")
    assert out.endswith("\nThe same id with --kind aec is PettingZoo's.\n")
    out = shown(capsys, "rllm/Nim-v0", "--kind", "aec")
    assert out.startswith("rllm/Nim-v0 (aec)")
    assert "max_retries=2, split='train', render_mode=None" in out


def test_an_env_without_an_oracle_has_no_example(capsys):
    out = shown(capsys, "CartPole-v1")
    assert "pole" in out
    assert "## Example" not in out


class UnavailableEnv(SingleTurnEnv):
    """Ask what only a library knows."""

    def __init__(self, *, level=3):
        raise MissingDependencyError("this needs a library: pip install 'rllm-envs[library]'")

    def generate_task(self):
        return {}


def test_the_page_is_shown_where_an_extra_is_not_installed_without_an_example(capsys):
    gymnasium.register("test-show/Unavailable-v0", entry_point=f"{__name__}:UnavailableEnv")
    try:
        out = shown(capsys, "test-show/Unavailable-v0")
    finally:
        gymnasium.registry.pop("test-show/Unavailable-v0")
    assert "Ask what only a library knows." in out
    assert "\n## Signature\nlevel=3\n" in out
    assert out.endswith("\nNone here: this needs a library: pip install 'rllm-envs[library]'\n")


@pytest.mark.parametrize("entry", GAMES, ids=[entry.id for entry in GAMES])
def test_the_page_of_each_game_has_a_whole_game_of_its_experts(capsys, entry):
    out = shown(capsys, entry.id, "--kind", entry.kind)
    assert "\n## Moves\n" in out
    game = out.partition("\n## Example (seed 0)\n")[2]
    assert game.count("_0> ") >= 1
    assert game.count("\n[end: ") == 1


def test_a_game_of_turns_is_the_one_that_pettingzoo_plays():
    env = make_aec("rllm/LiarsDice-v0")
    env.reset(seed=5)
    moves = []
    for agent in env.agent_iter():
        over = env.terminations[agent]
        action = None if over else env.expert_action(agent)
        if action is not None:
            moves.append(f"{agent}> {action}")
        env.step(action)
    text = example("rllm/LiarsDice-v0", "aec", {}, seed=5)
    assert [line for line in text.splitlines() if "> " in line] == moves


def test_a_game_of_rounds_is_the_one_that_pettingzoo_plays():
    env = make_parallel("rllm/SealedBidAuction-v0", num_rounds=3)
    env.reset(seed=5)
    totals = dict.fromkeys(env.agents, 0.0)
    while env.agents:
        _, rewards, *_ = env.step({agent: env.expert_action(agent) for agent in env.agents})
        totals = {agent: totals[agent] + reward for agent, reward in rewards.items()}
    text = example("rllm/SealedBidAuction-v0", "parallel", {"num_rounds": 3}, seed=5)
    scores = ", ".join(f"{agent} {score:g}" for agent, score in totals.items())
    assert text.endswith(f"\n[end: {scores}]")


def test_the_example_is_the_episode_of_the_seed():
    env = gymnasium.make("rllm/Math-v0")
    assert example("rllm/Math-v0", "gymnasium", {}, seed=4).startswith(env.reset(seed=4)[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rllm/Mat-v0"], "no environment is registered as 'rllm/Mat-v0'; did you mean 'rllm/"),
        (["rllm/Debat-v0"], "did you mean 'rllm/Debate-v0'?"),
        (["rllm/Nim-v0", "--kind", "parallel"], "is of the kind gymnasium and aec, not parallel"),
        (["rllm/Math-v0", "--seed", "-1"], "argument --seed: must be an integer of at least 0"),
        (["rllm/Math-v0", "--seed", "one"], "argument --seed: must be an integer of at least 0"),
        (["rllm/Arithmetic-v0", "-a", "digit=2"], "no argument 'digit'; it takes digits"),
        (["rllm/Arithmetic-v0", "-a", "digits=20"], "digits"),
        (["rllm/Arithmetic-v0", "-a", "digits"], "--arg takes NAME=JSON, such as size=5"),
        (["rllm/Arithmetic-v0", "-a", "digits=1", "-a", "digits=2"], "--arg gives 'digits' twice"),
        (["rllm/PythonCode-v0", "-a", 'kinds=["list"'], "--arg kinds: '[\"list\"' is not JSON"),
        (["rllm/Debate-v0", "-a", "rounds=2"], "Debate has no argument 'rounds'"),
        (["rllm/Debate-v0", "-a", "max_retries=11"], "max_retries must be an integer from 0 to 10"),
        (["no_such_module:me/My-v0"], "no module named 'no_such_module'"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line_and_exit_code_two(capsys, arguments, message):
    assert main(["show", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
