import subprocess
import sys

import pytest

from rllm_envs.cli import main

ENVS = '''
import gymnasium
from rllm_envs import Response, SingleTurnEnv


class CopyEnv(SingleTurnEnv):
    """Copy a number."""

    def __init__(self, *, digits=6, split="train", render_mode=None):
        super().__init__(split=split, render_mode=render_mode)
        if digits < 4:
            raise ValueError("too few digits")
        self.digits = digits

    def generate_task(self):
        number = str(self.np_random.integers(10**self.digits))
        return {"question": f"Copy {number} into a box.", "answer": number}


class WrongOracleEnv(CopyEnv):
    """Its oracle does not know the answer."""

    def oracle_action(self):
        return "no"


class RaisingEnv(CopyEnv):
    """Raises on some texts."""

    def grade(self, task, answer):
        return int(answer) == int(task["answer"])


class BrokenEnv(CopyEnv):
    """Cannot draw a task."""

    def generate_task(self):
        return {"question": self.no_such_attribute}


class UnfinishedEnv(SingleTurnEnv):
    """Has no task."""


def make_copy_env(digits):
    print("making one")
    return CopyEnv(digits=digits)


table = [1, 2]
gymnasium.register("check-test/Copy-v0", entry_point="MODULE:CopyEnv")
'''

GAMES = '''
import itertools
from rllm_envs.multi_agent import TextAECEnv, TextParallelEnv
from rllm_envs.multi_agent.nim import Nim
from rllm_envs.multi_agent.split_coins import SplitCoins

counter = itertools.count()


def nim(render_mode=None, **arguments):
    return TextAECEnv(Nim(**arguments), render_mode=render_mode)


def coins(render_mode=None):
    return TextParallelEnv(SplitCoins(), render_mode=render_mode)


class CountingNim(Nim):
    """Its rules are other ones in each environment."""

    def __init__(self):
        super().__init__()
        self.number = next(counter)

    def rules(self, agent):
        return f"{self.number} {super().rules(agent)}"


def counting(render_mode=None):
    return TextAECEnv(CountingNim(), render_mode=render_mode)


class BareEnv(TextAECEnv):
    """Observes plain texts."""

    def __init__(self, render_mode=None):
        super().__init__(Nim(), render_mode=render_mode)

    def observe(self, agent):
        return str(super().observe(agent))
'''


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The folder of two modules of environments, whose names no other test uses."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "check_test_envs.py").write_text(ENVS.replace("MODULE", "check_test_envs"))
    (folder / "check_test_games.py").write_text(GAMES)
    (folder / "check_test_broken.py").write_text("def f(:\n")
    (folder / "check_test_importing.py").write_text("import math\nmath.no_such_name\n")
    return folder


def checked(capsys, target, *arguments):
    """Exit code, outcome of each rule, and all that is printed."""
    code = main(["check", str(target), *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    lines = [line.split() for line in out.splitlines()]
    outcomes = {words[1]: words[0] for words in lines if words[:1] and words[0] in OUTCOMES}
    return code, outcomes, out


OUTCOMES = ("pass", "FAIL", "skip")
RULES = ["base", "gymnasium", "seeds", "threads", "oracle", "any-text", "info", "guessing",
         "tasks", "rendering", "spec"]  # fmt: skip


def test_a_good_env_keeps_every_rule_and_a_class_has_no_spec(capsys, files):
    code, outcomes, out = checked(capsys, f"{files}/check_test_envs.py:CopyEnv")
    assert code == 0
    assert outcomes == dict.fromkeys(RULES, "pass") | {"spec": "skip"}
    assert out.endswith("\n10 rules kept, 0 broken, 1 skipped\n")


def test_an_id_that_the_module_registers_has_one(capsys, files):
    code, outcomes, out = checked(capsys, f"{files}/check_test_envs.py:check-test/Copy-v0")
    assert code == 0
    assert outcomes == dict.fromkeys(RULES, "pass")
    assert out.endswith("\n11 rules kept, 0 broken\n")


def test_an_id_of_this_package_can_be_checked(capsys):
    assert checked(capsys, "rllm/Arithmetic-v0", "--arg", "digits=2")[0] == 0


def test_a_function_gets_the_arguments_and_what_it_prints_is_kept_away(capsys, files):
    target = f"{files}/check_test_envs.py:make_copy_env"
    code, outcomes, out = checked(capsys, target, "-a", "digits=5")
    assert code == 0
    assert outcomes["oracle"] == "pass"
    assert "making one" not in out


def test_a_broken_rule_is_shown_with_what_is_wrong_and_a_remedy(capsys, files):
    code, outcomes, out = checked(capsys, f"{files}/check_test_envs.py:WrongOracleEnv")
    assert code == 1
    assert [name for name in RULES if outcomes[name] == "FAIL"] == ["oracle"]
    failed, why, remedy = out[out.index("  FAIL") :].splitlines()[:3]
    assert failed.split()[1] == "oracle"
    assert why.strip().startswith("WrongOracleEnv: the oracle reaches the mean reward 0")
    assert remedy.strip().startswith("remedy: mend oracle_action")
    assert out.endswith("\n9 rules kept, 1 broken, 1 skipped\n")


def test_where_an_env_raises_the_line_of_its_file_is_told(capsys, files):
    code, outcomes, out = checked(capsys, f"{files}/check_test_envs.py:RaisingEnv")
    assert (code, outcomes["any-text"], outcomes["guessing"]) == (1, "FAIL", "skip")
    line = 1 + ENVS[: ENVS.index("return int(answer)")].count("\n")
    assert f"(check_test_envs.py, line {line}, in grade)" in out
    code, outcomes, out = checked(capsys, f"{files}/check_test_envs.py:BrokenEnv")
    assert (code, outcomes["tasks"]) == (1, "FAIL")
    line = 1 + ENVS[: ENVS.index("self.no_such_attribute")].count("\n")
    assert (
        "it raises AttributeError: 'BrokenEnv' object has no attribute 'no_such_attribute' "
        f"(check_test_envs.py, line {line}, in generate_task)"
    ) in out


def test_an_env_of_another_kind_breaks_the_first_rule_and_is_not_asked_for_more(capsys):
    code, outcomes, out = checked(capsys, "CartPole-v1")
    assert (code, outcomes) == (1, {"base": "FAIL"})
    assert "CartPoleEnv is not a subclass of rllm_envs.TextEnv" in out


@pytest.mark.parametrize(
    ("name", "rules"),
    [("nim", ["api", "seeds", "rendering"]), ("coins", ["api", "conversion", "seeds"])],
)
def test_games_get_pettingzoos_own_tests(capsys, files, name, rules):
    code, outcomes, out = checked(capsys, f"{files}/check_test_games.py:{name}")
    assert (code, outcomes) == (0, dict.fromkeys(rules, "pass"))
    assert out.endswith("\n3 rules kept, 0 broken\n")


def test_games_of_the_catalog_are_checked_by_kind(capsys):
    assert checked(capsys, "rllm/Nim-v0", "--kind", "aec")[1]["api"] == "pass"
    assert checked(capsys, "rllm/SplitCoins-v0")[1]["conversion"] == "pass"


@pytest.mark.parametrize(("name", "rule"), [("counting", "seeds"), ("BareEnv", "api")])
def test_a_game_that_fails_a_test_of_pettingzoo_breaks_that_rule(capsys, files, name, rule):
    code, outcomes, out = checked(capsys, f"{files}/check_test_games.py:{name}")
    assert code == 1
    assert outcomes == dict.fromkeys(("api", "seeds", "rendering"), "pass") | {rule: "FAIL"}
    assert "remedy: " in out


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("check_test_nowhere:CopyEnv", "there is no module 'check_test_nowhere'"),
        ("{}/check_test_nowhere.py:CopyEnv", "there is no file '"),
        ("{}/check_test_envs.py:Copy", "'check_test_envs' has no 'Copy', and no id is called so; "
         "it has CopyEnv, WrongOracleEnv"),
        ("json:Nothing", "'json' has no 'Nothing', and no id is called so; it has no TextEnv"),
        ("{}/check_test_envs.py:table", "table is [1, 2]; name a class, or a function"),
        ("{}/check_test_envs.py:make_copy_env", "missing 1 required positional argument: 'digits'"),
        ("{}/check_test_envs.py:CopyEnv --arg digits=2", "raises ValueError: too few digits (c"),
        ("{}/check_test_envs.py:CopyEnv --arg size=2", "has no argument 'size'; it takes digits"),
        ("{}/check_test_envs.py:UnfinishedEnv", "abstract method"),
        ("{}/check_test_broken.py:CopyEnv", "importing check_test_broken raises SyntaxError"),
        ("{}/check_test_importing.py:A", "no attribute 'no_such_name' (check_test_importing.py, "
         "line 2, in <module>)"),
        ("json:JSONDecoder", "a JSONDecoder; it must be a Gymnasium or PettingZoo environment"),
        ("rllm/Maths-v0", "no environment is registered as 'rllm/Maths-v0'; did you mean"),
    ],
)  # fmt: skip
def test_a_target_that_cannot_be_made_is_one_line_and_exit_code_two(capsys, files, target, message):
    assert main(["check", *target.format(files).split()]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1


def test_a_module_of_the_present_folder_is_found_in_a_fresh_process(files):
    done = subprocess.run(
        [sys.executable, "-m", "rllm_envs", "check", "check_test_envs:WrongOracleEnv"],
        cwd=files,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("check_test_envs:WrongOracleEnv\n\n  pass  base ")
