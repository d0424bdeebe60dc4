import json
import sqlite3

import gymnasium
import pytest

from rllm_envs import InfrastructureError
from rllm_envs.wrappers import ToolWrapper


def tool_call(name, **arguments):
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def wrapped(*names):
    env = ToolWrapper(gymnasium.make("rllm/Arithmetic-v0", disable_env_checker=True), list(names))
    return env, env.reset(seed=0)[0]


def test_a_tool_begins_afresh_with_each_episode():
    env, observation = wrapped("files")
    assert 'operation ("list" or "read" or "write" or "search")' in observation
    env.step(tool_call("files", operation="write", path="/a", content="1"))
    assert env.step(tool_call("files", operation="list"))[0] == "a (1 characters)"
    env.reset(seed=0)
    assert env.step(tool_call("files", operation="list"))[0] == "[the directory is empty]"
    env.close()


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ('{"expression": NaN}', "Error: the tool call is not JSON"),
        ('{"expression": "\\ud800"}', "Error: a text holds half of a character pair"),
        ('{"expression": [[[1]]]}', "Error: 'expression' must be of type string"),
    ],
)
def test_hostile_arguments_are_answered(arguments, answer):
    env, _ = wrapped("calculator")
    text = f'<tool_call>{{"name": "calculator", "arguments": {arguments}}}</tool_call>'
    observation, reward, terminated, _, _ = env.step(text)
    assert observation.startswith(answer) and (reward, terminated) == (0.0, False)


def test_a_database_that_is_gone_is_no_answer(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t(n)")
    connection.close()
    monkeypatch.setenv("RLLM_DATABASE", str(path))
    env, _ = wrapped("sql")
    assert env.step(tool_call("sql", query="SELECT COUNT(*) FROM t"))[0] == "COUNT(*)\n0\n(1 rows)"
    path.unlink()
    with pytest.raises(InfrastructureError):
        env.step(tool_call("sql", query="SELECT COUNT(*) FROM t"))
