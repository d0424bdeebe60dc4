import threading

import pytest

from rllm_envs import EnvArgumentError, FilesTool, ToolEnvironment
from rllm_envs.tools import make_tools

TREE = {"notes": {"plan.txt": "Buy milk\nCall Ida\n", "old": {"a.md": "milk\n"}}, "b.txt": ""}


def do(tool, operation, path="/", **arguments):
    return tool.call({"operation": operation, "path": path, **arguments}).text


def test_the_four_operations():
    tool = FilesTool(TREE)
    assert do(tool, "list") == "b.txt (0 characters)\nnotes/"
    assert do(tool, "list", "notes/old/..") == "old/\nplan.txt (18 characters)"
    assert do(tool, "read", "/notes/plan.txt") == "Buy milk\nCall Ida"
    assert do(tool, "read", "/notes/plan.txt", first_line=2) == "Call Ida"
    assert do(tool, "read", "/b.txt") == "[the file is empty]"
    assert do(tool, "search", text="MILK") == "/notes/old/a.md:1: milk\n/notes/plan.txt:1: Buy milk"
    assert do(tool, "search", "/notes/old/a.md", text="m") == "/notes/old/a.md:1: milk"
    assert do(tool, "search", text="cat") == "No line has this text."
    assert do(tool, "write", "/x/y/z.txt", content="1\n") == "[2 characters written]"
    assert do(tool, "write", "b.txt", content="") == "[0 characters written]"
    assert tool.tree == {**TREE, "x": {"y": {"z.txt": "1\n"}}}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"operation": "read", "path": "/c"}, "/c: No such file or directory"),
        ({"operation": "read", "path": "/notes"}, "/notes: Is a directory"),
        ({"operation": "read", "path": "/b.txt/"}, "/b.txt/: No such file"),
        ({"operation": "read", "path": "/notes/plan.txt", "first_line": 3}, r"in [1, 2], got 3"),
        ({"operation": "read", "path": "/notes/plan.txt", "first_line": 0}, r"in [1, 2], got 0"),
        ({"operation": "list", "path": "/b.txt"}, "/b.txt: Not a directory"),
        ({"operation": "write", "path": "/c"}, "write needs the argument 'content'"),
        ({"operation": "write", "path": "/", "content": "a"}, "/: Is a directory"),
        ({"operation": "write", "path": "/notes", "content": "a"}, "/notes: Is a directory"),
        ({"operation": "write", "path": "/b.txt/c", "content": "a"}, "No such file or directory"),
        ({"operation": "write", "path": "/n/" + "x" * 99, "content": "a"}, "name too long"),
        ({"operation": "write", "path": "/n/a\nb", "content": "a"}, "not printable"),
        ({"operation": "write", "path": "/n/c", "content": "a" * 100_001}, "File too large"),
        ({"operation": "write", "path": "/n" * 13, "content": "a"}, "No space left"),
        ({"operation": "search"}, "search needs the argument 'text'"),
        ({"operation": "delete"}, 'must be one of "list", "read", "write", "search"'),
    ],
)
def test_what_cannot_be_done_is_answered_and_changes_nothing(arguments, reason):
    tool = FilesTool(TREE)
    output = tool.call(arguments)
    assert output.is_error and reason in output.text
    assert tool.tree == TREE


def test_each_episode_begins_with_the_same_files():
    tool = FilesTool(TREE)
    env = ToolEnvironment(tools=[tool], reward_fn=lambda **_: 0.0)

    def step(**arguments):
        made = {"id": "a", "name": "files", "arguments": arguments}
        return env.step(made)[0]["tool_outputs"]["a"]

    env.reset()
    step(operation="write", path="/b.txt", content="mine")
    assert step(operation="read", path="/b.txt") == "mine"
    env.reset()
    assert step(operation="read", path="/b.txt") == "[the file is empty]"
    assert tool.tree == TREE


def test_two_episodes_and_the_given_dict_share_nothing():
    given = {"a": {"b": "1"}}
    tool = FilesTool(given)
    one, two = tool.for_episode(), tool.for_episode()
    do(one, "write", "/a/b", content="2")
    given["a"]["b"] = "3"
    assert (one.tree, two.tree, tool.tree) == ({"a": {"b": "2"}}, {"a": {"b": "1"}}, two.tree)


def test_long_answers_are_cut_and_can_be_read_on():
    lines = [f"line {n}" for n in range(100)]
    tool = FilesTool({"a": "\n".join(lines), "b": "x" * 500}, max_output_characters=100)
    seen, first = [], 1
    while True:
        shown = do(tool, "read", "/a", first_line=first).split("\n")
        seen += [line for line in shown if not line.startswith("[")]
        if not shown[-1].startswith("["):
            break
        first = int(shown[-1].split()[-1].rstrip("]"))
    assert seen == lines
    assert do(tool, "read", "/b") == "x" * 100 + "\n[line 1 is longer and was cut here]"
    assert do(tool, "search", text="line").endswith("[there is more, which was cut here]")


def test_a_read_only_tree_and_a_full_one_take_nothing():
    assert do(FilesTool(TREE, writable=False), "write", "/c", content="a") == (
        "Error: the file system is read-only"
    )
    full = FilesTool({str(n): "" for n in range(5000)})
    assert "No space left" in do(full, "write", "/c", content="a")
    assert do(full, "write", "/1", content="a") == "[1 characters written]"


def test_threads_write_one_after_the_other():
    tool = FilesTool()
    threads = [
        threading.Thread(target=do, args=(tool, "write", f"/d/{n}"), kwargs={"content": str(n)})
        for n in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tool.tree == {"d": {str(n): str(n) for n in range(20)}}


@pytest.mark.parametrize(
    "arguments",
    [
        {"tree": []}, {"tree": {"a/b": ""}}, {"tree": {"a": 3}}, {"tree": {"a": "x" * 100_001}},
        {"tree": {"..": ""}}, {"tree": {3: ""}}, {"max_output_characters": 9}, {"writable": 1},
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments):
    with pytest.raises(EnvArgumentError):
        FilesTool(**arguments)


def test_the_name_alone_gives_an_empty_file_system():
    assert do(make_tools(["files"])["files"], "list") == "[the directory is empty]"
