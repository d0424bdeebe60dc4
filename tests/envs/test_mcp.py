import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from rllm_envs import EnvArgumentError, MCPTools, ToolEnvironment
from rllm_envs.errors import ToolServerError
from rllm_envs.tools import close_tools, episode_tools, make_tools

pytest.importorskip("mcp", reason="needs rllm-envs[mcp]")

SERVER = '''
import asyncio, os, sys
from typing import Literal
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer
from pydantic import BaseModel

class Place(BaseModel):
    city: str
    zone: int | None = None

server = MCPServer("test")
count = 0
if "slow" in sys.argv:
    import time
    time.sleep(60)
if "broken" in sys.argv:
    sys.exit("no configuration")

@server.tool()
def add(first: int, second: int = 2) -> int:
    """Add two numbers."""
    return first + second

@server.tool()
def count_calls() -> str:
    """Count the calls."""
    global count
    count += 1
    return f"{count} of {os.getpid()} {os.environ.get('MARK', '')}"

@server.tool()
def where(place: Place, kind: Literal["north", "south"] = "north") -> str:
    """Say where a place is."""
    return f"{place.city} {place.zone} {kind}"

@server.tool()
def die(when: str) -> str:
    """End the server: "once" only where the file of that name is not there."""
    if when == "always":
        os._exit(3)
    if not os.path.exists(when):
        open(when, "w").close()
        os._exit(3)
    return "alive"

@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return "waited"

@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("bad")

@server.tool(name="odd name")
def odd(length: int) -> str:
    """Return a long text."""
    return "x" * length

if "http" in sys.argv:
    import uvicorn
    uvicorn.run(server.streamable_http_app(), port=int(sys.argv[-1]), log_level="error")
else:
    server.run()
'''


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("mcp") / "server.py"
    path.write_text(SERVER)
    return str(path)


@pytest.fixture(scope="module")
def shared(script):
    with MCPTools([sys.executable, script], timeout=30, shared=True) as tools:
        yield tools


def call(tools, name, **arguments):
    return tools.tools[name].call(arguments)


def number_and_pid(tools):
    number, _, pid, *_ = call(tools, "count_calls").text.split()
    return int(number), int(pid)


def test_each_tool_has_the_schema_of_the_server(shared):
    assert list(shared.tools) == [
        "add", "count_calls", "where", "die", "wait", "fail", "odd_name"
    ]  # fmt: skip
    function = shared.tools["add"].schema["function"]
    assert (function["name"], function["description"]) == ("add", "Add two numbers.")
    assert function["parameters"]["required"] == ["first"]
    assert function["parameters"]["properties"]["second"]["default"] == 2


def test_calls_return_their_text(shared):
    assert call(shared, "add", first=3).text == "5"
    assert call(shared, "where", place={"city": "Kiel"}, kind="south").text == "Kiel None south"
    assert call(shared, "odd_name", length=20_000).text == (
        "x" * 10_000 + "\n[the result is longer and was cut here]"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "reason"),
    [
        ("add", {}, "add needs the argument 'first'"),
        ("add", {"first": "1"}, "'first' must be of type integer, got '1'"),
        ("add", {"first": float("nan")}, "must be finite"),
        ("add", {"first": 1, "third": 1}, "add has no argument 'third'; it takes: first, second"),
        ("where", {"place": {}}, "'place' needs 'city'"),
        ("where", {"place": {"city": "a", "zone": "b"}}, "'place'.zone must be of type integer"),
        ("where", {"place": {"city": "\ud800"}}, "half of a character pair"),
        ("where", {"place": {"city": "a"}, "kind": "up"}, 'must be one of "north", "south"'),
        ("fail", {}, "fail"),
    ],
)
def test_what_does_not_fit_or_fails_is_an_answer(shared, name, arguments, reason):
    pid = number_and_pid(shared)[1]
    output = call(shared, name, **arguments)
    assert output.is_error and reason in output.text
    assert number_and_pid(shared)[1] == pid


def test_calls_from_threads_run_side_by_side(shared):
    answers = {}

    def run(number):
        call(shared, "wait", seconds=0.4)
        answers[number] = call(shared, "add", first=number).text

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {n: str(n + 2) for n in range(8)}
    assert time.perf_counter() - start < 8 * 0.4


@pytest.mark.slow
def test_a_call_that_takes_too_long_is_an_answer_and_a_dead_server_is_started_again(script):
    with MCPTools([sys.executable, script], timeout=0.5, shared=True) as tools:
        number, pid = number_and_pid(tools)
        output = call(tools, "wait", seconds=30)
        assert (output.text, output.is_error) == ("Error: wait took longer than 0.5 s", True)
        assert number_and_pid(tools) == (number + 1, pid)
        os.kill(pid, signal.SIGKILL)
        assert call(tools, "add", first=1).text.startswith("3\n[the server had ended")


def test_a_server_that_ends_is_started_once_more_and_the_agent_is_told(script, tmp_path):
    with MCPTools([sys.executable, script], shared=True) as tools:
        first = number_and_pid(tools)[1]
        output = call(tools, "die", when=str(tmp_path / "seen"))
        assert output.text.startswith("alive\n[the server had ended and was started again")
        second = number_and_pid(tools)
        assert second[0] == 1 and second[1] != first
        with pytest.raises(ToolServerError, match="the MCP server failed"):
            call(tools, "die", when="always")
    with pytest.raises(ToolServerError, match="closed"):
        call(tools, "add", first=1)


def test_each_episode_has_a_server_of_its_own_and_ends_it(script):
    with MCPTools([sys.executable, script], env={"MARK": "m"}) as tools:
        made = make_tools(["calculator", tools])
        one, two = episode_tools(made), episode_tools(made)
        assert one["calculator"].call({"expression": "6 * 7"}).text == "42"
        texts = [episode["count_calls"].call({}).text for episode in (one, one, two)]
        assert [text.split()[0] for text in texts] == ["1", "2", "1"]
        assert all(text.endswith(" m") for text in texts)
        pids = [int(text.split()[2]) for text in texts]
        assert pids[0] == pids[1] != pids[2]
        close_tools(one.values())
        with pytest.raises(ProcessLookupError):
            os.kill(pids[0], 0)
        os.kill(pids[2], 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[2], 0)


@pytest.mark.slow
def test_an_environment_closes_the_server_of_its_episode(script):
    with MCPTools([sys.executable, script]) as tools:
        env = ToolEnvironment(tools=[tools], reward_fn=lambda **_: 1.0)
        env.reset()
        made = {"id": "a", "name": "count_calls", "arguments": {}}
        pid = int(env.step(made)[0]["tool_outputs"]["a"].split()[2])
        env.close()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.slow
def test_another_process_gets_a_session_of_its_own(shared):
    pid = number_and_pid(shared)[1]
    with pickle.loads(pickle.dumps(shared)) as copy:
        assert list(copy.tools) == list(shared.tools)
        number, other = number_and_pid(copy)
        assert number == 1 and other != pid
        # A call that is under way when the tools are closed ends, too.
        failures = []

        def wait():
            try:
                call(copy, "wait", seconds=15)
            except ToolServerError as error:
                failures.append(error)

        waiting = threading.Thread(target=wait)
        waiting.start()
        threading.Event().wait(0.3)
        copy.close()
        waiting.join(10)
        assert "closed" in str(failures[0])


def test_a_server_that_does_not_start_is_named_with_its_last_words(script):
    with pytest.raises(ToolServerError, match="no configuration"):
        MCPTools([sys.executable, script, "broken"])
    with pytest.raises(ToolServerError, match="no-such-program"):
        MCPTools(["no-such-program"])


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def http_server(script, port):
    process = subprocess.Popen([sys.executable, script, "http", str(port)])
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return process
        threading.Event().wait(0.05)
    raise AssertionError("the server does not start")


@pytest.mark.slow
def test_a_server_is_reached_by_http_and_once_more_after_it_was_gone(script):
    port = free_port()
    process = http_server(script, port)
    tools = MCPTools(url=f"http://127.0.0.1:{port}/mcp", headers={"X-Key": "k"}, timeout=20)
    try:
        episode = tools.for_episode()
        assert call(episode, "add", first=1).text == "3"
        assert call(episode, "where", place={"city": "Graz"}).text == "Graz None north"
        process.kill()
        process.wait()
        with pytest.raises(ToolServerError):
            call(episode, "add", first=1)
        process = http_server(script, port)
        assert call(episode, "add", first=4).text == "6"
        episode.end_episode()
    finally:
        tools.close()
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "either a command or a url"),
        ({"command": ["a"], "url": "http://a"}, "either a command or a url"),
        ({"command": "python server.py"}, "must be a list"),
        ({"command": []}, "must be a list"),
        ({"url": "ftp://a"}, "http://"),
        ({"url": "http://a", "env": {"a": "b"}}, "env belongs to a command"),
        ({"command": ["a"], "headers": {"a": "b"}}, "headers belong to a url"),
        ({"command": ["a"], "timeout": 0}, "timeout"),
        ({"command": ["a"], "max_output_characters": 5}, "max_output_characters"),
    ],
)
def test_wrong_arguments_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        MCPTools(**arguments)
