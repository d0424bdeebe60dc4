import json
import os
import random
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.reasoning_gym_env import REFUSED, ReasoningGymEnv, is_plain_integral

factory = pytest.importorskip("reasoning_gym.factory")
NAMES = sorted({*factory.DATASETS} - {*REFUSED})


def play(dataset, answer, index=3, **arguments):
    env = ReasoningGymEnv(dataset=dataset, **arguments)
    env.reset(options={"task": {"dataset": dataset, "index": index}})
    return env.step(f"\\boxed{{{answer}}}")[1]


def answer_of(dataset, index=3):
    env = ReasoningGymEnv(dataset=dataset)
    env.reset(options={"task": {"dataset": dataset, "index": index}})
    return env.task["answer"]


def test_the_item_is_that_of_the_package():
    env = ReasoningGymEnv(dataset="gcd")
    observation, _ = env.reset(options={"task": {"index": 3}})
    item = factory.create_dataset("gcd", seed=0, size=10)[3]
    assert observation == f"{item['question']}\n\nGive the final answer in \\boxed{{}}."
    assert env.oracle_action() == f"\\boxed{{{item['answer']}}}"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_of_every_data_set_is_right_and_other_text_is_not(name):
    env = ReasoningGymEnv(dataset=name)
    for seed in range(2):
        env.reset(seed=seed)
        assert env.step(env.oracle_action())[1] == 1.0
    env.reset(seed=0)
    assert env.step(r"\boxed{certainly not the answer}")[1] == 0.0


LISTING = """
import hashlib, json
from reasoning_gym.factory import DATASETS
from rllm_envs.reasoning.reasoning_gym_env import REFUSED, ReasoningGymEnv
found = {}
for name in sorted({*DATASETS} - {*REFUSED}):
    env = ReasoningGymEnv(dataset=name)
    shown = [(env.reset(seed=seed)[0], env.task["answer"]) for seed in range(3)]
    found[name] = hashlib.sha256(repr(shown).encode()).hexdigest()
print(json.dumps(found))
"""


@pytest.mark.slow
def test_items_do_not_depend_on_the_hash_seed_of_the_process():
    found = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", LISTING],
            capture_output=True, text=True, check=True, env=environment,
        )  # fmt: skip
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert {*found[0]} == {*NAMES}


@pytest.mark.parametrize("name", ["list_functions", "pool_matrix", "chain_sum", "word_sorting"])
def test_equal_seeds_give_equal_items_and_global_generators_are_left_alone(name):
    random.seed(5)
    np.random.seed(5)
    expected = random.Random(5).random(), np.random.RandomState(5).rand()
    env, other = ReasoningGymEnv(dataset=name), ReasoningGymEnv(dataset=name)
    first = [env.reset(seed=seed)[0] for seed in range(4)]
    assert (random.random(), np.random.rand()) == expected
    random.seed(77)
    assert [other.reset(seed=seed)[0] for seed in range(4)] == first
    assert len(set(first)) == 4


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_data_sets_that_cannot_be_played_are_refused_with_the_reason(name):
    with pytest.raises(EnvArgumentError, match=f'"{name}" cannot be played: '):
        ReasoningGymEnv(dataset=name)


@pytest.mark.parametrize(
    "name", ["boxnet", "graph_color", "propositional_logic", "rubiks_cube", "rush_hour"]
)
def test_the_refused_data_sets_without_answers_really_have_none(name):
    assert factory.create_dataset(name, seed=0, size=3)[0]["answer"] is None


ATTACKS = (
    "open('{path}','w').close()",
    "__import__('pathlib').Path('{path}').touch()",
    "[open('{path}','w').close()]",
    "(lambda: open('{path}','w').close())()",
)


@pytest.mark.parametrize(
    "name",
    ["binary_matrix", "countdown", "intermediate_integration", "n_queens", "number_sorting",
     "polynomial_equations", "puzzle24", "simple_integration", "spiral_matrix",
     "string_insertion"],
)  # fmt: skip
def test_an_answer_is_never_run_as_code(name, tmp_path):
    mark = tmp_path / "mark"
    for attack in ATTACKS:
        assert play(name, attack.format(path=mark)) == 0.0
    assert not mark.exists()


def test_expressions_of_countdown_and_24_are_judged_by_their_numbers():
    env = ReasoningGymEnv(dataset="puzzle24")
    env.reset(options={"task": {"index": 3}})
    numbers = env._item(3)["metadata"]["numbers"]
    assert play("puzzle24", answer_of("puzzle24")) == 1.0
    assert play("puzzle24", f"({answer_of('puzzle24')}) * 1") == 0.0
    # The package's own scorer accepts any four numbers of the range.
    other = "6 * 4 + 5 - 5" if sorted(numbers) != [4, 5, 5, 6] else "8 * 3 + 2 - 2"
    assert play("puzzle24", other) == 0.0
    right = answer_of("countdown")
    assert play("countdown", right) == 1.0
    assert play("countdown", f"({right})") == 1.0
    assert play("countdown", "9**9**9") == 0.0


def test_integrals_may_be_written_differently():
    right = answer_of("simple_integration")
    assert play("simple_integration", right) == 1.0
    assert play("simple_integration", f"7 + {right}") == 1.0
    assert play("simple_integration", f"x*x + {right}") == 0.0
    assert play("simple_integration", "C") == 0.0


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [
        ("-4*(-2*x - 8)**(3/2)/3 + C", True),
        ("x**2*exp(x)/2 + sin(x)**2 + C", True),
        ("x ** -1", True),
        ("9**9**9", False),
        ("9**(9**9)", False),
        ("9**999", False),
        ("x**y", False),
        ("x**2.5", False),
        ("((x+1)**9)**9", True),
        ("(((x+1)**9)**9)**9", False),
        ("factorial(9)", False),
        ("x.diff", False),
        ("x[0]", False),
        ("__import__", False),
        ("'a'", False),
        ("1e99", True),
        ("x;y", False),
        ("x" * 301, False),
    ],
)
def test_only_plain_expressions_reach_the_symbolic_parser(text, is_plain):
    assert is_plain_integral(text) is is_plain


@pytest.mark.parametrize("answer", ["1e99999999", "1E+9999999", "1e9_999_999", "9" * 20_000, "1/0"])
def test_huge_numbers_are_wrong_at_once(answer):
    assert play("coin_flip", answer) == 0.0
    assert play("power_function", answer) == 0.0


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("game_of_life_halting", "x"),
        ("coin_flip", "0"),
        ("complex_arithmetic", "nan"),
        ("complex_arithmetic", "NaN + inf i"),
        ("decimal_chain_sum", "NaN"),
    ],
)
def test_answers_that_fool_a_scorer_of_the_package_are_wrong(name, answer):
    for index in range(4):
        assert play(name, answer, index) == 0.0
        assert play(name, answer_of(name, index), index) == 1.0


def test_probabilities_may_be_fractions_or_rounded():
    right = Fraction(answer_of("coin_flip"))
    assert play("coin_flip", f"{right.numerator}/{right.denominator}") == 1.0
    assert play("coin_flip", f"{float(right):.5f}") == 1.0
    assert play("coin_flip", str(float(right) + 0.001)) == 0.0
    assert play("game_of_life_halting", answer_of("game_of_life_halting").lower()) == 1.0


def test_settings_are_handed_to_the_data_set():
    settings = {"min_numbers": 5, "max_numbers": 5}
    env = ReasoningGymEnv(dataset="gcd", config=settings)
    env.reset(seed=0)
    item = factory.create_dataset("gcd", seed=0, size=10_000, **settings)[env.task["index"]]
    assert env.task["question"] == item["question"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"dataset": "nonsense"}, "dataset must be one of ab, "),
        ({"dataset": 3}, "dataset must be one of"),
        ({"dataset": "gcd", "config": {"size": 3}}, "without 'seed' and 'size'"),
        ({"dataset": "gcd", "config": ["x"]}, "config must be a dict"),
        ({"dataset": "gcd", "config": {"colour": 3}}, "reasoning-gym refuses"),
        ({"dataset": "gcd", "config": {"min_numbers": 0}}, "reasoning-gym refuses"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        ReasoningGymEnv(**arguments)


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({}, "'index' must be an integer"),
        ({"index": 10_000}, "from 0 to 9999"),
        ({"index": 1, "dataset": "lcm"}, 'this environment plays "gcd"'),
        ({"index": 1, "answer": "no"}, "'answer' is not that of item 1"),
    ],
)
def test_given_tasks_are_checked(task, reason):
    with pytest.raises(TaskError, match=reason):
        ReasoningGymEnv(dataset="gcd").reset(options={"task": task})
