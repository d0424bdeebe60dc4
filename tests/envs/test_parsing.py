import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllm_envs.errors import excerpt
from rllm_envs.parsing import (
    boxed_answer,
    code_block,
    last_boxed,
    strip_thoughts,
    tag_content,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\boxed{42}", "42"),
        (r"\boxed{1} then \boxed{2}", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\boxed{7}}", r"\boxed{7}"),
        (r"\boxed {7}", "7"),
        (r"\boxed{}", ""),
        (r"\boxed{42} and \boxed{43", "42"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"} \boxed{3} }", "3"),
        (r"\boxed 3", None),
        ("42", None),
        ("", None),
    ],
)
def test_the_last_complete_box_is_the_answer(text, expected):
    assert last_boxed(text) == expected


@given(st.lists(st.sampled_from(["\\boxed{", "\\boxed", "{", "}", "\\", " ", "a"]), max_size=8))
def test_a_box_is_read_alike_with_braces_before_it_and_without(parts):
    text = "".join(parts)
    assert last_boxed(text) == last_boxed("{} " + text)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (r"<think>\boxed{1}</think>\boxed{2}", "2"),
        (r"<think>\boxed{1}</think> two", None),
        (r"a</think>b</think>\boxed{3}", "3"),
        (r"<think>never ends \boxed{1}", None),
        (r"</think>\boxed{1} <think> \boxed{2}", "1"),
    ],
)
def test_boxes_inside_thoughts_are_no_answers(response, expected):
    assert boxed_answer(response) == expected


def test_thoughts_are_stripped_to_the_text_after_them():
    assert strip_thoughts("<think>a</think> b") == " b"
    assert strip_thoughts("plain") == "plain"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("<calc>2 * 3</calc>", "2 * 3"),
        ("<calc>1</calc> <calc> 2 </calc>", "2"),
        ("<calc>1</calc> <calc>2", "1"),
        ("<calc>1</calc> </calc>", "1"),
        ("</calc><calc>1", None),
        ("<think><calc>1</calc></think>", None),
        ("", None),
    ],
)
def test_the_last_complete_tag_content_counts(response, expected):
    assert tag_content(response, "calc") == expected


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{" * 100_000 + "1" + "}" * 100_000,
        r"\boxed{" * 200_000,
        "<calc>" * 200_000,
        "</calc>" * 200_000 + "<calc>",
        "<think>" * 200_000,
        "{" * 1_000_000,
    ],
)
def test_hostile_text_is_read_in_linear_time(text):
    start = time.perf_counter()
    boxed_answer(text)
    tag_content(text, "calc")
    assert time.perf_counter() - start < 4.0


def test_an_excerpt_is_short_whatever_the_value():
    assert excerpt("abc") == "'abc'"
    assert len(excerpt("x" * 10**6)) == 80
    assert excerpt([10**5000]) == "a value of type list"
    assert len(excerpt({"key": "x" * 1000})) == 80


@pytest.mark.parametrize(
    ("response", "program"),
    [
        ("```python\nx = 1\n```", "x = 1\n"),
        ("a\n```py\nx\n```\nb\n```\ny\n```\nc", "y\n"),
        ("```python\nx\n```\nThen run:\n```bash\nls\n```", "x\n"),
        ("<think>```python\nx\n```</think> none", None),
        ("  ```python\n  x\n  ```", "  x\n"),
        ("```python\r\nx\r\n```", "x\n"),
        ("```python\nx", None),
        ("def f():\n    return 1", "def f():\n    return 1"),
        ("I would define f so that it returns 1.", None),
        ("", None),
    ],
)
def test_the_last_block_of_python_is_the_program(response, program):
    assert code_block(response) == program


def test_a_program_is_found_in_linear_time():
    for text in ("```" * 100_000, "```python\n" * 30_000, "`" * 300_000, "``` \n" * 60_000):
        start = time.process_time()
        code_block(text)
        assert time.process_time() - start < 2
