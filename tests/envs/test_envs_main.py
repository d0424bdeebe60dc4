import json
import subprocess
import sys

import pytest

from rllm_envs import CATALOG
from rllm_envs.cli import main
from rllm_envs.multi_agent import GAMES


def listed(capsys, *arguments):
    assert main(["list", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_without_a_command_it_lists_the_environments(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert "rllm/Math-v0" in out
    assert "play ID" in out
    assert main(["list"]) == 0
    assert capsys.readouterr().out == out


def test_the_table_has_one_line_for_each_environment_under_its_category(capsys):
    main(["list"])
    sections = capsys.readouterr().out.split("\n[")[1:]
    names = {section.partition("]")[0]: section for section in sections}
    assert set(names) == {entry.category for entry in (*CATALOG, *GAMES)}
    for entry in (*CATALOG, *GAMES):
        kind = getattr(entry, "kind", "gymnasium")
        lines = [line.split() for line in names[entry.category].splitlines()]
        found = [words for words in lines if words[:2] == [entry.id, kind]]
        needed = [entry.extra] * bool(entry.extra) + ["network"] * (not entry.offline)
        assert [words[2:] for words in found] == [(needed or ["-"]) + entry.summary.split()]


def test_json_holds_every_environment_with_all_that_is_known_of_it(capsys):
    rows = listed(capsys)
    assert len(rows) == len(CATALOG) + len(GAMES)
    keys = {"id", "kind", "offline", "extra", "category", "summary", "reward_threshold"}
    assert all(set(row) == keys for row in rows)
    by_name = {(row["id"], row["kind"]): row for row in rows}
    assert by_name["rllm/Calculator-v0", "gymnasium"] == {
        "id": "rllm/Calculator-v0",
        "kind": "gymnasium",
        "offline": True,
        "extra": "",
        "category": "tool_use",
        "summary": "multiply with a calculator at hand, a few turns",
        "reward_threshold": 1.0,
    }
    assert by_name["rllm/TicTacToe-v0", "gymnasium"]["reward_threshold"] == 0.8
    assert by_name["rllm/TicTacToe-v0", "aec"]["extra"] == "multi"
    assert by_name["rllm/SplitCoins-v0", "parallel"]["reward_threshold"] is None


def test_category_and_kind_choose_rows(capsys):
    tools = {row["id"] for row in listed(capsys, "--category", "tool_use")}
    assert tools == {entry.id for entry in CATALOG if entry.category == "tool_use"}
    rounds = listed(capsys, "--kind", "parallel")
    assert {row["id"] for row in rounds} == {
        entry.id for entry in GAMES if entry.kind == "parallel"
    }
    both = listed(capsys, "--category", "multi_agent", "--kind", "gymnasium")
    assert {row["id"] for row in both} == {
        entry.id for entry in CATALOG if entry.category == "multi_agent"
    }
    assert listed(capsys, "--category", "tool_use", "--kind", "aec") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--category", "cooking"], "there is no category 'cooking'; there are reasoning,"),
        (["list", "--kind", "solo"], "argument --kind: invalid choice: 'solo'"),
        (["list", "--category", "tool_use", "--kind", "aec"], "'tool_use' has no aec environment"),
        (["list", "more"], "unrecognized arguments: more"),
        (["dance"], "argument COMMAND: invalid choice: 'dance'"),
        (["show"], "the following arguments are required: ID"),
    ],
)
def test_wrong_words_are_one_line_and_exit_code_two(capsys, arguments, message):
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def run_python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_an_unknown_id_is_one_line_and_exit_code_two():
    done = run_python("-m", "rllm_envs", "show", "rllm/Maths-v0")
    assert done.returncode == 2
    assert done.stderr == (
        "error: no environment is registered as 'rllm/Maths-v0'; did you mean 'rllm/Math-v0'? "
        "`python -m rllm_envs list` shows those of this package\n"
    )
    assert done.stdout == ""


def test_games_are_listed_shown_and_played_where_pettingzoo_is_not_installed():
    code = (
        "import sys\n"
        "sys.modules['pettingzoo'] = None\n"
        "from rllm_envs.cli import main\n"
        "assert main(['list', '--kind', 'aec']) == 0\n"
        "assert main(['show', 'rllm/Debate-v0']) == 0\n"
        "assert main(['play', 'rllm/SplitCoins-v0']) == 0\n"
        "assert main(['check', 'rllm/Debate-v0']) == 2\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, input="")
    assert done.returncode == 0, done.stderr
    assert "rllm/TicTacToe-v0" in done.stdout
    assert done.stderr == (
        "error: games for several agents need pettingzoo: pip install 'rllm-envs[multi]'\n"
    )


def test_a_reader_that_has_had_enough_is_no_error():
    code = f"{sys.executable} -m rllm_envs list --json | head -c 1"
    done = subprocess.run(["sh", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[", "")
