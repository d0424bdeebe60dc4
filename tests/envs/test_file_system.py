import pytest

from rllm_envs import TaskError
from rllm_envs.tool_use.file_questions import QUESTIONS
from rllm_envs.tool_use.file_system import FileSystemEnv

TREE = {
    "config": {"live": {"mail.conf": "port=25\nworkers=3\n"}, "old": {"web.conf": "port=80\n"}},
    "data": {
        "staff.csv": "name,department,city,salary\nAda,sales,Oslo,900\nBo,sales,Lyon,4000\n"
        "Cy,design,Oslo,5000\n"
    },
    "logs": {"mail": {"a.log": "x ERROR y\nok\n", "b.log": "ERROR\nERROR\nok\n"}, "c.txt": "ok\n"},
    "notes": {"n.txt": "ticket 12345\n"},
}
CASES = [
    ("count_files", {"directory": "/logs", "ending": "log"}, "2"),
    ("count_files", {"directory": "/notes", "ending": "md"}, "0"),
    ("count_lines", {"directory": "/logs", "text": "ERROR"}, "3"),
    ("where", {"text": "ticket 12345"}, "/notes/n.txt"),
    ("setting", {"service": "mail", "key": "port"}, "25"),
    ("best_paid", {"file": "/data/staff.csv", "department": "sales"}, "Bo"),
    ("distinct", {"file": "/data/staff.csv", "column": "city", "number": "3"}, "2"),
    ("most_common", {"file": "/data/staff.csv", "column": "city", "number": "3"}, "Oslo"),
    ("longest", {"directory": "/logs/mail"}, "/logs/mail/b.log"),
]


def start(kind, arguments, **env_arguments):
    env = FileSystemEnv(**env_arguments)
    task = {"tree": TREE, "kind": kind, "arguments": arguments}
    return env, env.reset(options={"task": task})[0]


@pytest.mark.parametrize(("kind", "arguments", "answer"), CASES)
def test_each_kind_is_answered_by_hand_and_by_the_oracles_command(kind, arguments, answer):
    env, observation = start(kind, arguments)
    assert all(value in observation for name, value in arguments.items() if name != "number")
    assert env.step(env.oracle_action())[4]["invalid"] is False
    assert env.oracle_action() == f"\\boxed{{{answer}}}"
    _, reward, terminated, _, info = env.step(f"\\boxed{{ {answer} }}")
    assert (reward, terminated, info["success"]) == (1.0, True, True)
    env, _ = start(kind, arguments)
    assert env.step(r"\boxed{wrong}")[1] == 0.0


def test_all_kinds_are_checked_above():
    assert {case[0] for case in CASES} == set(QUESTIONS)


def test_commands_keep_the_current_directory_and_a_path_needs_no_first_slash():
    env, _ = start("where", {"text": "ticket 12345"})
    assert env.step("<command>cd notes</command>")[0] == "(no output)"
    assert env.step("<command>cat n.txt</command>")[0] == "ticket 12345"
    assert env.step(r"\boxed{notes/n.txt}")[1] == 1.0


def test_long_output_is_cut():
    env, _ = start("where", {"text": "ticket 12345"})
    observation = env.step("<command>cat " + "/logs/mail/*.log " * 230 + "</command>")[0]
    assert len(observation) < 4100
    assert "more characters are not shown" in observation
    assert env.step("<command>" + "x" * 5000 + "</command>")[4]["invalid"] is True


def test_generated_questions_cover_all_kinds_and_the_shell_agrees_with_python():
    env = FileSystemEnv(split="all")
    kinds = set()
    for seed in range(200):
        env.reset(seed=seed)
        kinds.add(env.task["kind"])
        env.step(env.oracle_action())
        assert env.step(env.oracle_action())[4]["success"]
    assert kinds == set(QUESTIONS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tree": {"a/b": ""}}, "file name"),
        ({"tree": {"a": 3}}, "directory or a text"),
        ({"tree": {"a": "x" * 9000}}, "directory or a text"),
        ({"kind": "guess"}, "kind"),
        ({"arguments": {"text": "x"}}, "arguments"),
        ({"arguments": {"directory": "/logs", "ending": "'; ls"}}, "letters"),
        ({"kind": "where", "arguments": {"text": "ok"}}, "unique"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, message):
    task = {"tree": TREE, "kind": "count_files"}
    task["arguments"] = {"directory": "/logs", "ending": "log"}
    with pytest.raises(TaskError, match=message):
        FileSystemEnv().reset(options={"task": {**task, **change}})
