import copy

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.file_changes import CHANGES, changed
from rllm_envs.tool_use.shell.shell import Shell
from rllm_envs.tool_use.terminal import TerminalEnv

TREE = {"a": {"x.txt": "red fox\nfox\ncat\nfox\n", "y.md": "1\n", "in": {"z.txt": "0\n"}}, "b": {}}
X, Y, IN = "red fox\nfox\ncat\nfox\n", "1\n", {"z.txt": "0\n"}
CASES = [
    ("move", {"source": "/a", "ending": "txt", "target": "/b/new"},
     {"a": {"y.md": Y, "in": IN}, "b": {"new": {"x.txt": X}}}),
    ("rename", {"file": "/a/x.txt", "name": "w.old"},
     {"a": {"w.old": X, "y.md": Y, "in": IN}, "b": {}}),
    ("delete", {"directory": "/a", "ending": "txt"}, {"a": {"y.md": Y, "in": {}}, "b": {}}),
    ("copy", {"source": "/a/in", "target": "/b/c"},
     {"a": TREE["a"], "b": {"c": IN}}),
    ("write", {"target": "/b/n.txt", "text": "good day"},
     {"a": TREE["a"], "b": {"n.txt": "good day\n"}}),
    ("append", {"file": "/a/y.md", "text": "2"},
     {"a": {"x.txt": X, "y.md": "1\n2\n", "in": IN}, "b": {}}),
    ("replace", {"file": "/a/x.txt", "word": "fox", "text": "dog"},
     {"a": {"x.txt": "red dog\ndog\ncat\ndog\n", "y.md": Y, "in": IN}, "b": {}}),
    ("remove_lines", {"file": "/a/x.txt", "word": "fox"},
     {"a": {"x.txt": "cat\n", "y.md": Y, "in": IN}, "b": {}}),
    ("sort", {"file": "/a/x.txt", "target": "/b/s"},
     {"a": TREE["a"], "b": {"s": "cat\nfox\nred fox\n"}}),
    ("count", {"file": "/a/x.txt", "word": "fox", "target": "/b/n"},
     {"a": TREE["a"], "b": {"n": "3\n"}}),
]  # fmt: skip


def start(*steps, **arguments):
    env = TerminalEnv(**arguments)
    task = {"tree": TREE, "steps": [{"kind": k, "arguments": a} for k, a in steps]}
    return env, env.reset(options={"task": task})[0]


@pytest.mark.parametrize(("kind", "arguments", "goal"), CASES)
def test_python_and_the_command_make_the_tree_worked_out_by_hand(kind, arguments, goal):
    assert changed(TREE, kind, arguments) == goal
    shell = Shell(copy.deepcopy(TREE), is_writable=True)
    assert shell.run(CHANGES[kind].command(TREE, arguments)) == ""
    assert shell.files.tree == goal


def test_all_kinds_are_checked_above():
    assert [case[0] for case in CASES] == list(CHANGES)


def test_steps_are_made_in_order_by_any_commands():
    env, observation = start(
        ("rename", {"file": "/a/y.md", "name": "z.md"}),
        ("append", {"file": "/a/z.md", "text": "2"}),
    )
    assert "1. Rename the file /a/y.md to z.md" in observation
    assert "2. Add this line at the end of /a/z.md: 2" in observation
    assert env.step("<command>cat /a/y.md</command>")[0] == "1"
    assert env.step("<command>cd a; echo 2 >> y.md</command>")[2] is False
    _, reward, terminated, _, info = env.step("<command>mv y.md z.md</command>")
    assert (reward, terminated, info["success"]) == (1.0, True, True)


def test_a_tree_with_more_than_asked_is_not_the_goal():
    env, _ = start(("write", {"target": "/b/n.txt", "text": "good day"}))
    assert env.step("<command>mkdir c; echo good day > b/n.txt</command>")[1:3] == (0.0, False)
    assert env.step("<command>rmdir c</command>")[1:3] == (1.0, True)


def test_a_box_or_plain_text_is_no_command():
    env, _ = start(("write", {"target": "/b/n.txt", "text": "good day"}))
    observation, reward, terminated, _, info = env.step(r"\boxed{done}")
    assert (observation, reward, terminated, info["invalid"]) == (env.hint, 0.0, False, True)


def test_generated_tasks_are_solved_step_by_step():
    env = TerminalEnv(num_steps=4, split="all")
    kinds = set()
    for seed in range(80):
        env.reset(seed=seed)
        kinds |= {step["kind"] for step in env.task["steps"]}
        ends = [env.step(env.oracle_action())[2] for _ in range(4)]
        assert ends == [False, False, False, True]
    assert kinds == set(CHANGES)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "steps"),
        ([{"kind": "fly", "arguments": {}}], "kind"),
        ([{"kind": "rename", "arguments": {"file": "/a/y.md"}}], "needs"),
        ([{"kind": "rename", "arguments": {"file": "/a/no", "name": "x"}}], "not possible"),
        ([{"kind": "rename", "arguments": {"file": "/a/y.md", "name": "$(x)"}}], "letters"),
        ([{"kind": "copy", "arguments": {"source": "/a", "target": "/a/in/c"}}], "not possible"),
        ([{"kind": "rename", "arguments": {"file": "/a/y.md", "name": "z"}},
          {"kind": "rename", "arguments": {"file": "/a/z", "name": "y.md"}}], "must not undo"),
    ],
)  # fmt: skip
def test_tasks_that_cannot_be_played_are_refused(steps, message):
    with pytest.raises(TaskError, match=message):
        TerminalEnv().reset(options={"task": {"tree": TREE, "steps": steps}})


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_steps"):
        TerminalEnv(num_steps=9)
    with pytest.raises(EnvArgumentError, match="max_turns"):
        TerminalEnv(num_steps=3, max_turns=2)
