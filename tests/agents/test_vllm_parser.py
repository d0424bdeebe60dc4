from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from rllm_agents.errors import UserError
from rllm_agents.tool_parsers import MalformedCall, ToolCall, get_tool_parser

needs_vllm = pytest.mark.skipif(
    importlib.util.find_spec("vllm") is None, reason="vLLM is not installed"
)
SCHEMA = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "F.",
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
    },
}


def test_without_vllm_the_error_names_what_to_install() -> None:
    script = (
        "import sys; sys.modules['vllm'] = None\n"
        "from rllm_agents.errors import UserError\n"
        "from rllm_agents.tool_parsers import get_tool_parser\n"
        "try: get_tool_parser('vllm:kimi_k2')\n"
        "except UserError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "parser_name='vllm:kimi_k2' needs vLLM: install rllm-agents[gpu]" in done.stdout


def test_parsers_of_ours_do_not_load_vllm() -> None:
    script = (
        "import sys\nfrom rllm_agents.tool_parsers import TOOL_PARSERS, get_tool_parser\n"
        "for name in TOOL_PARSERS: get_tool_parser(name).parse('x')\n"
        "print('vllm' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.slow
@needs_vllm
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", 'Hi <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'),
        (
            "kimi_k2",
            "Hi <|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
            '<|tool_call_argument_begin|>{"x": 1}<|tool_call_end|><|tool_calls_section_end|>',
        ),
        (
            "qwen3_xml",
            "Hi <tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n"
            "</tool_call>",
        ),
    ],
)
def test_calls_are_read_by_vllm_with_the_types_of_the_tools(name: str, text: str) -> None:
    parser = get_tool_parser(f"vllm:{name}")
    assert '"name": "f"' in parser.tool_prompt([SCHEMA])
    parsed = parser.parse(f"thought</think>{text}")
    assert (parsed.content, parsed.calls) == ("Hi", (ToolCall("f", {"x": 1}),))


@pytest.mark.slow
@needs_vllm
def test_a_call_that_vllm_gives_back_as_text_is_malformed() -> None:
    parsed = get_tool_parser("vllm:hermes").parse("Hi <tool_call>{oops</tool_call>")
    (call,) = parsed.calls
    assert isinstance(call, MalformedCall)
    assert (parsed.content, call.text) == ("Hi", "<tool_call>{oops</tool_call>")
    assert get_tool_parser("vllm:hermes").parse("Just text.").calls == ()


@pytest.mark.slow
@needs_vllm
@pytest.mark.parametrize(
    ("name", "problem"), [("nope", "it has .*hermes"), ("openai", "cannot read text alone")]
)
def test_a_parser_that_vllm_lacks_or_that_needs_more_than_text_is_refused(
    name: str, problem: str
) -> None:
    with pytest.raises(UserError, match=problem):
        get_tool_parser(f"vllm:{name}")


@pytest.mark.slow
@needs_vllm
def test_calls_are_written_where_the_parser_reads_the_form_of_hermes() -> None:
    call = ToolCall("f", {"x": [1, {"y": "it's </tool_call> é"}]})
    hermes = get_tool_parser("vllm:hermes")
    assert hermes.parse(hermes.call_text(call)).calls == (call,)
    with pytest.raises(UserError, match="'kimi_k2' reads another form of calls"):
        get_tool_parser("vllm:kimi_k2").call_text(call)
