"""What a request may say: obeyed, neutral, ignored or refused by its name."""

from __future__ import annotations

from typing import Any

import pytest
from agents_fakes import ByteTokenizer, byte_completion
from gateway_fakes import WEATHER, assistant, chat_call, text_call, user
from hypothesis import given, settings
from hypothesis import strategies as st

from rllm_agents.gateway.json_body import read_json_object
from rllm_agents.gateway.messages import conversation_keys, read_messages, template_messages
from rllm_agents.gateway.parameters import IGNORED, NEUTRAL
from rllm_agents.gateway.protocol import read_chat_call, read_text_call
from rllm_agents.gateway.refusals import RequestError, printable
from rllm_agents.gateway.turns import cut_at_stop
from rllm_agents.renderer import Renderer
from rllm_agents.tool_parsers import ToolCall, get_tool_parser
from rllm_agents.types import VersionSpan

ASK = {"model": "m", "messages": [user("hi")]}
PARSER = get_tool_parser("qwen")


def refusal(**more: Any) -> RequestError:
    with pytest.raises(RequestError) as caught:
        read_chat_call({**ASK, **more}, stop_token_ids=(258, 256))
    return caught.value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("n", 2), ("presence_penalty", 0.1), ("frequency_penalty", -1), ("logit_bias", {"1": 1})),
        *(("response_format", {"type": "json_object"}), ("top_logprobs", 3), ("min_p", 0.1)),
        *(
            ("parallel_tool_calls", False),
            ("ignore_eos", True),
            ("n", True),
            ("tool_choice", "required"),
        ),
        ("tool_choice", {"type": "function", "function": {"name": "weather"}}),
        *(
            ("reasoning_effort", "high"),
            ("guided_json", {}),
            ("functions", []),
            ("stop_token_ids", [1]),
        ),
    ],
)
def test_what_would_change_the_sampling_is_refused_by_its_name(name: str, value: Any) -> None:
    error = refusal(**{name: value})
    assert error.status == 400
    assert error.code in ("unsupported_parameter", "unknown_parameter")
    assert error.parameter == name
    assert name in str(error)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("temperature", -0.1), ("temperature", "1"), ("temperature", True), ("temperature", 1e9)),
        *(("top_p", 0), ("top_p", 1.1), ("top_k", -2), ("top_k", 1.5), ("seed", 2**64)),
        *(("max_tokens", 0), ("max_completion_tokens", "9"), ("stop", [""]), ("stop", ["x"] * 17)),
        *(("stop", {"a": 1}), ("stream", 1), ("stream_options", {"x": 1}), ("logprobs", 1)),
        *(("user", 5), ("model", ""), ("model", 3), ("tools", {}), ("tools", [{"type": "code"}])),
        *(("tools", [{"type": "function", "function": {"name": "a b"}}]), ("messages", [])),
        *(("messages", "hi"), ("messages", ["hi"]), ("messages", [{"role": "god", "content": ""}])),
        ("messages", [{"role": "user"}]),
        ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]),
        ("messages", [{"role": "tool", "content": "x"}]),
        ("messages", [{"role": "user", "content": "x", "tool_calls": [{}]}]),
        ("messages", [{"role": "assistant", "tool_calls": [{"id": "a", "function": {}}]}]),
        ("messages", [{"role": "user", "content": "x", "weight": 2}]),
        ("messages", [{"role": "user", "content": "x", "name": "a\nb"}]),
    ],
)
def test_wrong_values_are_refused_where_they_stand(name: str, value: Any) -> None:
    error = refusal(**{name: value})
    assert (error.status, error.code) == (400, "invalid_value")
    assert (error.parameter or "").startswith(name)


def test_neutral_ignored_and_absent_values_change_nothing() -> None:
    plain = read_chat_call(ASK)
    neutral = {name: values[0] for name, values in NEUTRAL.items()}
    ignored = {name: {"any": "thing"} for name in IGNORED}
    absent = dict.fromkeys(("temperature", "tools", "made_up", "stop", "logit_bias"))
    assert read_chat_call({**ASK, **neutral, **ignored, **absent}) == plain


def test_what_is_obeyed_is_read() -> None:
    call = chat_call(
        [user("hi")],
        **{"temperature": 0, "top_p": 0.5, "top_k": -1, "seed": 3, "stop": "x", "stream": True},
        **{"max_tokens": 9, "max_completion_tokens": 7, "stream_options": {"include_usage": True}},
    )
    sampling = call.sampling
    assert sampling.named() == {"temperature": 0.0, "top_p": 0.5, "top_k": 0, "seed": 3}
    assert (sampling.max_tokens, sampling.stop) == (7, ("x",))
    assert (call.form.is_stream, call.form.has_usage) == (True, True)


@pytest.mark.parametrize("prompt", [None, "", [], [-1], [1.5], [True], ["a", "b"], [[1], [2]], 5])
def test_prompts_that_are_not_one_text_or_one_list_of_ids_are_refused(prompt: Any) -> None:
    with pytest.raises(RequestError, match="prompt must be"):
        text_call(prompt)


def test_a_prompt_in_a_list_of_one_is_that_prompt() -> None:
    assert text_call(["a"]).prompt == "a"
    assert text_call([[1, 2]]).prompt == (1, 2)


def test_quotes_of_the_assistant_are_the_same_whatever_spaces_and_order_they_have() -> None:
    def key(content: Any, arguments: str) -> bytes:
        function = {"name": "f", "arguments": arguments}
        call = {"id": "1", "type": "function", "function": function}
        reply = {"role": "assistant", "content": content, "tool_calls": [call]}
        return conversation_keys(read_messages([user("a"), reply]))[-1]

    same = {
        key("x", '{"a": 1, "b": 2}'),
        key(" x\n", '{"b":2,"a":1}'),
        key([{"type": "text", "text": "x"}], '{"a":1,"b":2}'),
    }
    assert len(same) == 1
    assert key("x", '{"a": 2, "b": 2}') not in same
    assert key("y", '{"a": 1, "b": 2}') not in same


def test_what_users_say_is_compared_to_the_letter() -> None:
    keys = {conversation_keys(read_messages([user(text)]))[0] for text in ("a", "a ", "A")}
    assert len(keys) == 3


def test_the_last_key_is_of_the_whole_conversation() -> None:
    messages = read_messages([user("a"), assistant("b"), user("c")])
    keys = conversation_keys(messages)
    assert conversation_keys(messages[1:], before=keys[0]) == keys[1:]
    assert conversation_keys(messages[1:])[-1] != keys[-1]


def test_calls_that_others_wrote_are_put_as_the_models_family_writes_them() -> None:
    function = {"name": "weather", "arguments": '{"city": "Ål"}'}
    calls = [{"id": "1", "type": "function", "function": function}]
    given = [
        {"role": "developer", "content": "Be kind."},
        {"role": "assistant", "content": "I ask.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "sun"},
    ]
    system, reply, result = template_messages(read_messages(given), {}, [WEATHER], PARSER)
    assert system["role"] == "system"
    assert system["content"].startswith("Be kind.\n\n# Tools")
    parsed = PARSER.parse(reply["content"])
    assert parsed.content == "I ask."
    assert parsed.calls == (ToolCall("weather", {"city": "Ål"}),)
    assert result == {"role": "tool", "content": "sun", "tool_call_id": "1"}


def test_tools_bring_a_system_message_where_there_is_none() -> None:
    first, second = template_messages(read_messages([user("a")]), {}, [WEATHER], PARSER)
    assert (first["role"], second) == ("system", user("a"))
    assert '"weather"' in first["content"]


def test_a_cut_at_a_stop_keeps_the_versions_of_what_is_left() -> None:
    completion = byte_completion("abcSTOPdef")
    spans = (VersionSpan(0, 2, 7), VersionSpan(2, 9, 8), VersionSpan(9, 11, 9))
    completion = type(completion)(
        completion.text, "length", completion.token_ids, completion.logprobs, 7, spans
    )
    cut = cut_at_stop(completion, ["STOP"], Renderer(ByteTokenizer()))  # type: ignore[arg-type]
    assert (cut.text, cut.finish_reason) == ("abc", "stop")
    assert bytes(cut.token_ids) == b"abcSTOP"
    assert cut.version_spans == (VersionSpan(0, 2, 7), VersionSpan(2, 7, 8))
    assert cut_at_stop(completion, ["nowhere"], None) is completion


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=20,
)
names = st.sampled_from(
    [
        *(*ASK, *NEUTRAL, "temperature", "top_p", "top_k", "seed", "stop", "tools", "tool_choice"),
        *("stream", "stream_options", "max_tokens", "prompt", "logprobs", "user", "stop_token_ids"),
    ]
)
parts = st.dictionaries(
    st.sampled_from(["role", "content", "tool_calls", "tool_call_id", "name", "refusal"]),
    json_values | st.sampled_from(["user", "assistant", "tool"]),
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, json_values), st.lists(parts, max_size=3))
def test_any_json_is_read_or_refused(body: dict[str, Any], messages: list[Any]) -> None:
    for read in (read_chat_call, read_text_call):
        for given_body in (body, {**body, "model": "m", "messages": messages}):
            try:
                read(given_body)
            except RequestError as error:
                assert error.status == 400
                assert str(error).isprintable()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\u0e1- ', max_size=60).map(str.encode))
def test_any_bytes_are_an_object_or_refused(raw: bytes) -> None:
    try:
        assert isinstance(read_json_object(raw), dict)
    except RequestError as error:
        assert error.code == "json"


def test_text_for_logs_is_one_short_line_without_control_characters() -> None:
    assert printable("a\x1b[31m\nb\u202e\ud800c") == "a [31m b c"
    assert len(printable("x" * 10_000)) == 503
