import json

import gymnasium
import pytest
import walk_envs  # noqa: F401  # registers the test environments
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

from rllm_envs import EnvArgumentError
from rllm_envs.vector import TextVectorEnv
from rllm_envs.wrappers import (
    ChatObservation,
    DictObservation,
    History,
    InvalidAction,
    JsonAction,
    RecordEpisodes,
    ToolWrapper,
    TurnLimit,
)

TASK = {"task": {"expression": "47 * 83"}}
QUESTION = (
    "What is 47 * 83? You may write <calc>2 * 3</calc> to use a calculator. "
    r"Give the answer in \boxed{}."
)
CALL = "<calc>47 * 83</calc>"
ANSWER = r"\boxed{3901}"
TOOL_CALL = '<tool_call>{"name": "calculator", "arguments": {"expression": "6 * 7"}}</tool_call>'

STACKS = {
    "dict": lambda env: DictObservation(env, key="prompt"),
    "chat": lambda env: ChatObservation(env, system="Be brief."),
    "history": lambda env: History(env, max_turns=2, max_length=500),
    "json": lambda env: JsonAction(env, key="answer"),
    "penalise": lambda env: InvalidAction(env, "penalise", penalty=0.25),
    "terminate": lambda env: InvalidAction(env, "terminate"),
    "retry": lambda env: InvalidAction(env, "retry", max_retries=1),
    "limit": lambda env: TurnLimit(env, 2),
    "tools": lambda env: ToolWrapper(env, ["calculator"], max_turns=5),
    "several": lambda env: ChatObservation(
        TurnLimit(JsonAction(ToolWrapper(env, tools=["calculator"])), 4)
    ),
}


def calculator(**arguments):
    return gymnasium.make("rllm/Calculator-v0", disable_env_checker=True, **arguments)


def start(env):
    return env, env.reset(options=TASK)


@pytest.mark.filterwarnings("error", "ignore:.*is different from the unwrapped")
@pytest.mark.parametrize("name", STACKS)
def test_each_wrapper_passes_gymnasiums_check(name):
    check_env(STACKS[name](calculator()), skip_render_check=True)


@pytest.mark.parametrize("name", STACKS)
def test_each_wrapper_is_rebuilt_from_the_json_of_the_spec(name):
    env = STACKS[name](calculator(max_turns=4))
    text = env.spec.to_json()
    again = gymnasium.make(EnvSpec.from_json(text))
    assert again.spec.to_json() == text
    assert str(again) == str(env)
    actions = ["?", CALL, '{"answer": "<calc>1</calc>"}', ANSWER]
    assert play(again, 3, actions) == play(env, 3, actions)


def play(env, seed, actions):
    turns = [env.reset(seed=seed)]
    for action in actions:
        turns.append(env.step(action))
        if turns[-1][2] or turns[-1][3]:
            break
    return turns


def test_a_wrapped_env_runs_in_pools_of_any_kind():
    spec = STACKS["several"](calculator()).spec
    action = json.dumps({"action": TOOL_CALL})
    told = []
    for arguments in ({}, {"isolation": "process"}):
        envs = TextVectorEnv([spec] * 2, **arguments)
        observations, _ = envs.reset(seed=1)
        told.append((observations, envs.step([action] * 2)[0]))
        envs.close()
    assert told[0] == told[1]
    assert told[0][1][0][-1] == {"role": "user", "content": "42"}


# Observations


def test_the_observation_lies_under_the_key():
    env, (observation, _) = start(DictObservation(calculator()))
    assert observation == {"question": QUESTION}
    assert env.step(CALL)[0] == {"question": "Result: 3901"}
    assert observation in env.observation_space


def test_the_chat_grows_turn_by_turn_and_belongs_to_the_reader():
    env, (messages, _) = start(ChatObservation(calculator(), system="Be brief."))
    expected = [("system", "Be brief."), ("user", QUESTION)]
    assert [(m["role"], m["content"]) for m in messages] == expected
    messages[1]["content"] = "changed"
    messages = env.step(CALL)[0]
    assert messages in env.observation_space
    expected += [("assistant", CALL), ("user", "Result: 3901")]
    assert [(m["role"], m["content"]) for m in messages] == expected
    # The last observation is empty and adds no message.
    messages = env.step(ANSWER)[0]
    assert [(m["role"], m["content"]) for m in messages] == [*expected, ("assistant", ANSWER)]
    assert [m["role"] for m in env.reset(options=TASK)[0]] == ["system", "user"]


def test_the_history_tells_the_episode():
    env, (observation, _) = start(History(calculator(max_turns=5)))
    assert observation == QUESTION
    assert env.step(CALL)[0] == f"{QUESTION}\n> {CALL}\nResult: 3901"
    assert env.step(ANSWER)[0] == f"{QUESTION}\n> {CALL}\nResult: 3901\n> {ANSWER}"
    assert env.reset(options=TASK)[0] == QUESTION


def test_the_history_leaves_the_oldest_turns_out():
    env, _ = start(History(calculator(max_turns=9), max_turns=2))
    for number in range(4):
        observation = env.step(f"<calc>{number}</calc>")[0]
    assert observation == (
        f"{QUESTION}\n[2 earlier turns are not shown]\n"
        "> <calc>2</calc>\nResult: 2\n> <calc>3</calc>\nResult: 3"
    )


@pytest.mark.parametrize("max_length", [10, 140, 200, 260])
def test_the_history_keeps_its_length_and_the_last_answer(max_length):
    env, _ = start(History(calculator(max_turns=99), max_length=max_length))
    for number in range(30):
        observation = env.step(f"<calc>{number}</calc>")[0]
        assert len(observation) <= max_length
        assert observation.endswith(f"Result: {number}"[-max_length:])
        assert observation in env.observation_space


# Actions


@pytest.mark.parametrize(
    ("action", "sent"),
    [
        ('{"action": "x"}', "x"),
        ('```json\n{"thought": "{", "action": "a b"}\n```', "a b"),
        ('<think>{"action": "no"}</think> so: {"action": "yes"}', "yes"),
        ('{"action": 42}', "42"),
        ('{"action": ["a", 1]}', '["a", 1]'),
        ('{"other": "x"}', ""),
        ('["action"]', ""),
        ("{" * 100_000 + "}", ""),
        ("[" * 100_000 + "{}", ""),
        ("no json", ""),
        ("", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_json_actions_are_read(action, sent):
    assert JsonAction(calculator()).action(action) == sent


def test_json_actions_are_explained_and_a_broken_one_costs_a_turn():
    env, (observation, _) = start(JsonAction(calculator()))
    assert observation == f'{QUESTION}\nReply with a JSON object: {{"action": "..."}}'
    *_, info = env.step(CALL)
    assert (info["invalid"], info["turn"]) == (True, 1)
    _, reward, terminated, _, _ = env.step(json.dumps({"action": ANSWER}))
    assert (reward, terminated) == (1.0, True)


def test_invalid_actions_are_penalised():
    env, _ = start(InvalidAction(calculator(), "penalise", penalty=0.25))
    assert env.step("?")[1:3] == (-0.25, False)
    assert env.step(CALL)[1] == 0.0
    assert env.step(ANSWER)[1:3] == (1.0, True)


def test_invalid_actions_may_end_the_episode():
    env, _ = start(InvalidAction(calculator(), "terminate", penalty=1))
    assert env.step(CALL)[1:4] == (0.0, False, False)
    assert env.step("?")[1:4] == (-1.0, True, False)


def test_invalid_actions_may_be_undone():
    env, (_, info) = start(InvalidAction(calculator(), "retry", max_retries=2))
    assert info["retries_left"] == 2
    env.step(CALL)
    for left in (1, 0):
        _, reward, terminated, truncated, info = env.step("?")
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert (info["retries_left"], info["turn"], info["turns_left"]) == (left, 1, 2)
    *_, info = env.step("?")
    assert (info["retries_left"], info["turn"], info["turns_left"]) == (0, 2, 1)
    assert env.step(ANSWER)[1] == 1.0


def test_an_undone_action_leaves_no_trace_in_the_random_stream():
    def told(actions):
        env = InvalidAction(calculator(), "retry", max_retries=5)
        env.reset(seed=4)
        for action in actions:
            env.step(action)
        return env.reset()[0]

    assert told(["?", CALL, "?", ANSWER]) == told([CALL, ANSWER])


def test_a_single_turn_that_is_undone_is_asked_again():
    env = InvalidAction(gymnasium.make("rllm/Arithmetic-v0"), "retry", max_retries=1)
    env.reset(seed=0)
    observation, _, terminated, *_ = env.step("no box")
    assert (observation, terminated) == ("That action was not understood. Try again.", False)
    assert env.step(env.get_wrapper_attr("oracle_action")())[1:3] == (1.0, True)


def test_the_turn_limit_truncates_and_counts():
    env, (_, info) = start(TurnLimit(calculator(max_turns=5), 2))
    assert info["turns_left"] == 2
    assert env.step(CALL)[3] is False
    _, _, terminated, truncated, info = env.step(CALL)
    assert (terminated, truncated, info["turns_left"]) == (False, True, 0)
    env, (_, info) = start(TurnLimit(calculator(max_turns=2), 4))
    assert info["turns_left"] == 2
    env, _ = start(TurnLimit(calculator(), 1))
    assert env.step(CALL)[2:4] == (True, False)
    env, _ = start(TurnLimit(calculator(), 2))
    assert env.step(ANSWER)[2:4] == (True, False)


# Tools


def arithmetic_with_tools(**arguments):
    env = ToolWrapper(gymnasium.make("rllm/Arithmetic-v0"), ["calculator"], **arguments)
    return env, env.reset(options={"task": {"expression": "512 + 389"}})


def test_tools_are_listed_with_an_example():
    _, (observation, info) = arithmetic_with_tools()
    assert observation.startswith("What is 512 + 389?")
    assert "- calculator(expression (string)): Compute an arithmetic expression" in observation
    example = observation.partition("<tool_call>")[2].partition("</tool_call>")[0]
    assert json.loads(example) == {"name": "calculator", "arguments": {"expression": "..."}}
    assert (info["tool_call"], info["turn"], info["turns_left"]) == (False, 0, 8)


def test_a_call_costs_a_turn_and_the_env_waits():
    env, _ = arithmetic_with_tools(max_turns=3)
    observation, reward, terminated, truncated, info = env.step(f"Hm. {TOOL_CALL}")
    assert (observation, reward, terminated, truncated) == ("42", 0.0, False, False)
    assert info == {
        "success": False, "invalid": False, "tool_call": True, "turn": 1, "turns_left": 2
    }  # fmt: skip
    _, reward, terminated, _, info = env.step(r"\boxed{901}")
    assert (reward, terminated, info["success"], info["tool_call"]) == (1.0, True, True, False)
    assert (info["turn"], info["turns_left"]) == (2, 1)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        ("{", "Error: the tool call is not JSON"),
        ("[" * 100_000, "Error: the tool call is not JSON"),
        ("[]", "Error: a tool call needs a name, got []"),
        ('{"name": "abacus"}', "Error: no tool is named 'abacus'; known tools: calculator"),
        ('{"name": "calculator", "arguments": 3}', "Error: arguments must be a JSON object, got 3"),
        ('{"name": "calculator"}', "Error: calculator needs the argument 'expression'"),
    ],
)
def test_a_call_that_cannot_be_made_is_answered(call, shown):
    env, _ = arithmetic_with_tools()
    observation, reward, terminated, _, info = env.step(f"<tool_call>{call}</tool_call>")
    assert observation.startswith(shown)
    assert (reward, terminated, info["tool_call"]) == (0.0, False, True)


@pytest.mark.parametrize("action", ["<tool_call>{}", f"<think>{TOOL_CALL}</think>", "", None])
def test_other_actions_are_the_envs(action):
    env, _ = arithmetic_with_tools()
    *_, info = env.step(action)
    assert (info["tool_call"], info["invalid"]) == (False, True)


def test_calls_run_out():
    env, _ = arithmetic_with_tools(max_turns=2)
    assert env.step(TOOL_CALL)[3] is False
    _, _, terminated, truncated, info = env.step(TOOL_CALL)
    assert (terminated, truncated, info["turns_left"]) == (False, True, 0)


# Arguments


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda env: DictObservation(env, key=""), "key"),
        (lambda env: ChatObservation(env, system=3), "system"),
        (lambda env: ChatObservation(DictObservation(env)), "ChatObservation"),
        (lambda env: History(DictObservation(env)), "History"),
        (lambda env: History(env, max_turns=0), "max_turns"),
        (lambda env: History(env, max_length=True), "max_length"),
        (lambda env: JsonAction(env, key=None), "key"),
        (lambda env: InvalidAction(env, "forgive"), "policy"),
        (lambda env: InvalidAction(env, penalty=-1), "penalty"),
        (lambda env: InvalidAction(env, max_retries=0), "max_retries"),
        (lambda env: TurnLimit(env, 0), "max_turns"),
        (lambda env: ToolWrapper(env, "calculator"), "tools"),
        (lambda env: ToolWrapper(env, []), "tools"),
        (lambda env: ToolWrapper(env, ["abacus"]), "abacus"),
        (lambda env: ToolWrapper(env, ["calculator"], max_turns=1), "max_turns"),
        (lambda env: RecordEpisodes(env, "nowhere/at/all.jsonl"), "folder"),
    ],
)
def test_arguments_out_of_range_are_refused(make, named):
    with pytest.raises(EnvArgumentError, match=named):
        make(calculator())


def test_gymnasiums_own_wrappers_fit_around_and_inside():
    env = DictObservation(TimeLimit(TurnLimit(calculator(), 3), 2))
    env.reset(options=TASK)
    env.step(CALL)
    assert env.step(CALL)[3] is True
