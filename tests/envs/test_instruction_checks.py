import time

import pytest

from rllm_envs import TaskError
from rllm_envs.grading.instructions.checks import CHECKS, check_instruction, is_followed

LEAST = {"relation": "at least"}
LESS = {"relation": "less than"}
CASES = [
    ("keywords:existence", {"keywords": ["Tea", "red"]}, "Green TEA, hundred cups", "Tea only"),
    ("keywords:frequency", {"keyword": "tea", "frequency": 2, **LEAST}, "Tea and tea", "tea"),
    ("keywords:frequency", {"keyword": "tea", "frequency": 2, **LESS}, "one tea", "tea, tea"),
    ("keywords:forbidden_words", {"forbidden_words": ["tea", "a.b"]}, "teapot axb", "my Tea!"),
    (
        "keywords:letter_frequency",
        {"letter": "E", "let_frequency": 3, "let_relation": "at least"},
        "Eleven",
        "ten men",
    ),
    (
        "keywords:letter_frequency",
        {"letter": "#", "let_frequency": 1, "let_relation": "less than"},
        "none",
        "one #",
    ),
    ("language:response_language", {"language": "de"}, "Das ist nicht gut.", "This is not good."),
    ("length_constraints:number_sentences", {"num_sentences": 2, **LEAST}, "One. Two.", "One."),
    ("length_constraints:number_sentences", {"num_sentences": 2, **LESS}, "One.", "One. Two."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n\nb"),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        "***\na\n***\nb\n***",
        "a***b***c",
    ),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a *** b", "a *** *** b"),
    ("length_constraints:number_words", {"num_words": 3, **LEAST}, "a b c", "a b"),
    ("length_constraints:number_words", {"num_words": 3, **LESS}, "a b", "a b c"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Tea"},
        'One.\n\n\n\n"tea, please."',
        "Tea.\n\nOne.",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 1, "nth_paragraph": 1, "first_word": "tea"},
        "Tea!",
        "tea\n\ntwo",
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        "[a] and [b]",
        "[a] and [b",
    ),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Bye.\np. s. more", "Bye. PS"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "P.P.S more", "P.S. more"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n  - b", "* a\n* b\n* c"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 1}, "* a\n** b **\n***", "**a**"),
    ("detectable_format:constrained_response", {}, "Well. My answer is no.", "My answer is: no."),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        "*a* and **b**",
        "*a* and ** **",
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Part", "num_sections": 2},
        "Part 1\na\nPart 2\nb",
        "Part 1\npart 2\nPart two",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": [1]}\n```', "{'a': 1}"),
    ("detectable_format:json_format", {}, ' "text" ', '{"a": 1} so'),
    ("detectable_format:title", {}, "<<My day>>\ntext", "<< >> <My day>"),
    ("combination:two_responses", {}, "one\n******\ntwo", "one\n******\none"),
    ("combination:two_responses", {}, "******one******two", "one******two******three"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it. "}, "say it. Yes.", "Yes. Say it."),
    ("startend:end_checker", {"end_phrase": "The end."}, 'So. "the END."', "The end. Bye"),
    ("startend:quotation", {}, ' "So it is." ', '"So" it is.'),
    ("startend:quotation", {}, '""', '"'),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "GO and STOP",
        "GO and Stop",
    ),
    ("change_case:english_capital", {}, "THIS IS IT, 42.", "THIS IS It."),
    ("change_case:english_capital", {}, "TEA", "DAS IST NICHT GUT."),
    ("change_case:english_lowercase", {}, "this is it.", "This is it."),
    ("punctuation:no_comma", {}, "a; b", "a, b"),
]


@pytest.mark.parametrize(("name", "arguments", "good", "bad"), CASES)
def test_each_instruction_tells_good_from_bad(name, arguments, good, bad):
    check_instruction(name, arguments)
    assert is_followed(name, arguments, good)
    assert not is_followed(name, arguments, bad)


def test_there_is_a_case_for_each_instruction_and_there_are_those_of_the_paper():
    assert {name for name, *_ in CASES} == set(CHECKS)
    assert len(CHECKS) == 25


@pytest.mark.parametrize("response", ["", "  \n"])
def test_a_blank_response_follows_nothing(response):
    for name, arguments, *_ in CASES:
        assert not is_followed(name, arguments, response)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("keywords:none", {}, "no instruction is named 'keywords:none'"),
        (7, {}, "no instruction"),
        ("punctuation:no_comma", {"num": 1}, "no argument 'num'; it takes: none"),
        ("punctuation:no_comma", None, "must be an object"),
        ("keywords:existence", {}, "needs 'keywords', a texts"),
        ("keywords:existence", {"keywords": []}, "'keywords'"),
        ("keywords:existence", {"keywords": ["a", ""]}, "'keywords'"),
        ("keywords:frequency", {"keyword": "a", "frequency": -1, **LEAST}, "'frequency'"),
        ("keywords:frequency", {"keyword": "a", "frequency": True, **LEAST}, "'frequency'"),
        ("keywords:frequency", {"keyword": "a", "frequency": 1, "relation": "more"}, "'relation'"),
        ("language:response_language", {"language": "xx"}, "'language'"),
    ],
)
def test_an_instruction_that_cannot_be_checked_is_refused(name, arguments, message):
    with pytest.raises(TaskError, match=message):
        check_instruction(name, arguments)


HOSTILE = ["[" * 200_000, "*" * 199_999, "<<" * 100_000, "p " * 100_000, '"' * 200_000,
           "SECTION" * 28_000, "\n" * 200_000 + "a", "a\n\n" * 60_000, "[" * 100_000 + "]",
           "{" * 200_000, "* \t" * 60_000, "\ud800\x00" * 100_000]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_hostile_text_is_answered_in_time(number):
    start = time.process_time()
    for name, arguments, *_ in CASES:
        is_followed(name, arguments, HOSTILE[number])
    assert time.process_time() - start < 4.0
