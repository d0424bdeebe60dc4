"""The instructions of IFEval and how each is checked.

Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models", table 1. The checks
are strict: they take the response as it is.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rllm_envs.errors import TaskError, excerpt
from rllm_envs.grading.instructions.languages import LANGUAGES, language_of
from rllm_envs.grading.instructions.words import (
    all_upper_words,
    num_sentences,
    num_words,
)

RELATIONS = ("less than", "at least")
CONSTRAINED = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
MAX_COUNT = 100_000
MAX_TEXT = 20_000

Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of instruction. Written in ``CHECKS``, read by the reward function."""

    passes: Callable[[str, Arguments], bool]
    """Whether a response that is not blank follows it."""
    arguments: Mapping[str, str]
    """Kind of each argument: "count", "relation", "text", "texts", "character" or "language"."""


def is_followed(name: str, arguments: Arguments, response: str) -> bool:
    """Return whether a response follows an instruction; a blank one follows none.

    The instruction is one that ``check_instruction`` has passed.
    """
    return bool(response.strip()) and CHECKS[name].passes(response, arguments)


def check_instruction(name: Any, arguments: Any) -> None:
    """Check that an instruction is known and has the arguments that it needs.

    Raises:
        TaskError: It is not, or an argument is missing, unknown or wrong; the message names it.
    """
    check = CHECKS.get(name) if isinstance(name, str) else None
    if check is None:
        raise TaskError(f"no instruction is named {excerpt(name)}; known: {', '.join(CHECKS)}")
    if not isinstance(arguments, Mapping):
        raise TaskError(f"the arguments of {name} must be an object, got {excerpt(arguments)}")
    unknown = sorted(map(str, set(arguments) - set(check.arguments)))
    if unknown:
        known = ", ".join(check.arguments) or "none"
        raise TaskError(f"{name} has no argument {unknown[0]!r:.80}; it takes: {known}")
    for argument, kind in check.arguments.items():
        if not _FITS[kind](arguments.get(argument)):
            raise TaskError(
                f"{name} needs {argument!r}, a {kind}, got {excerpt(arguments.get(argument))}"
            )


def _compares(count: int, relation: str, wanted: int) -> bool:
    return count < wanted if relation == "less than" else count >= wanted


# Keywords and letters


def _has_keywords(response: str, arguments: Arguments) -> bool:
    lowered = response.casefold()
    return all(keyword.casefold() in lowered for keyword in arguments["keywords"])


def _has_frequency(response: str, arguments: Arguments) -> bool:
    count = response.casefold().count(arguments["keyword"].casefold())
    return _compares(count, arguments["relation"], arguments["frequency"])


def _lacks_words(response: str, arguments: Arguments) -> bool:
    words = "|".join(re.escape(word) for word in arguments["forbidden_words"])
    return re.search(rf"\b(?:{words})\b", response, re.IGNORECASE) is None


def _has_letters(response: str, arguments: Arguments) -> bool:
    count = response.lower().count(arguments["letter"].lower())
    return _compares(count, arguments["let_relation"], arguments["let_frequency"])


# Language and case


def _is_in_language(response: str, arguments: Arguments) -> bool:
    return language_of(response) == arguments["language"]


def _is_english_upper(response: str, _: Arguments) -> bool:
    return response.isupper() and _may_be_english(response)


def _is_english_lower(response: str, _: Arguments) -> bool:
    return response.islower() and _may_be_english(response)


def _may_be_english(response: str) -> bool:
    # A few names or numbers have no language, which is not another one.
    return language_of(response) in ("en", None)


def _has_upper_words(response: str, arguments: Arguments) -> bool:
    count = all_upper_words(response)
    return _compares(count, arguments["capital_relation"], arguments["capital_frequency"])


# Lengths


def _has_words(response: str, arguments: Arguments) -> bool:
    return _compares(num_words(response), arguments["relation"], arguments["num_words"])


def _has_sentences(response: str, arguments: Arguments) -> bool:
    return _compares(num_sentences(response), arguments["relation"], arguments["num_sentences"])


def _has_paragraphs(response: str, arguments: Arguments) -> bool:
    parts = [part.strip() for part in response.split("***")]
    # A divider may open and close the text; between two of them there must be something.
    inner = parts[1 if not parts[0] else 0 : len(parts) - (not parts[-1])]
    return all(inner) and len(inner) == arguments["num_paragraphs"]


def _has_first_word(response: str, arguments: Arguments) -> bool:
    paragraphs = [part.strip() for part in response.split("\n\n") if part.strip()]
    if not 1 <= arguments["nth_paragraph"] <= len(paragraphs):
        return False
    words = paragraphs[arguments["nth_paragraph"] - 1].split()
    first = re.split(r"[.,?!'\"]", words[0].lstrip("'\""))[0]
    is_right = first.lower() == arguments["first_word"].lower()
    return is_right and len(paragraphs) == arguments["num_paragraphs"]


# Layout


def _has_placeholders(response: str, arguments: Arguments) -> bool:
    return len(re.findall(r"\[[^\[\]\n]*\]", response)) >= arguments["num_placeholders"]


def _has_postscript(response: str, arguments: Arguments) -> bool:
    letters = [re.escape(c) for c in arguments["postscript_marker"].lower() if not c.isspace()]
    marker = r"[ \t]*".join(letters)
    return re.search(marker, response.lower()) is not None


def _has_bullets(response: str, arguments: Arguments) -> bool:
    bullets = re.findall(r"^[ \t]*(?:\*(?!\*)|-)[ \t]*\S", response, re.MULTILINE)
    return len(bullets) == arguments["num_bullets"]


def _is_constrained(response: str, _: Arguments) -> bool:
    return any(sentence in response for sentence in CONSTRAINED)


def _has_highlights(response: str, arguments: Arguments) -> bool:
    found = re.findall(r"\*\*([^\n*]+)\*\*|\*([^\n*]+)\*", response)
    count = sum(1 for double, single in found if (double or single).strip())
    return count >= arguments["num_highlights"]


def _has_sections(response: str, arguments: Arguments) -> bool:
    name = re.escape(arguments["section_spliter"].strip())
    return len(re.findall(rf"{name}[ \t]*\d+", response)) >= arguments["num_sections"]


def _is_json(response: str, _: Arguments) -> bool:
    text = response.strip()
    fenced = re.fullmatch(r"```(?:json)?[ \t]*\n(.*)```", text, re.DOTALL | re.IGNORECASE)
    try:
        json.loads(fenced.group(1) if fenced else text)
    except (ValueError, RecursionError):
        return False
    return True


def _has_title(response: str, _: Arguments) -> bool:
    titles = re.findall(r"<<([^\n<>]+)>>", response)
    return any(title.strip() for title in titles)


def _has_two_responses(response: str, _: Arguments) -> bool:
    parts = [part.strip() for part in response.split("******")]
    inner = parts[1 if not parts[0] else 0 : len(parts) - (not parts[-1])]
    return len(inner) == 2 and all(inner) and inner[0] != inner[1]


# Beginnings, ends and punctuation


def _repeats_prompt(response: str, arguments: Arguments) -> bool:
    prompt = arguments["prompt_to_repeat"].strip().lower()
    return response.strip().lower().startswith(prompt)


def _ends_with(response: str, arguments: Arguments) -> bool:
    phrase = arguments["end_phrase"].strip().lower()
    return response.strip().strip('"').lower().endswith(phrase)


def _has_no_comma(response: str, _: Arguments) -> bool:
    return "," not in response


def _is_quoted(response: str, _: Arguments) -> bool:
    text = response.strip()
    return len(text) > 1 and text[0] == text[-1] == '"'


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value.strip()) > 0 and len(value) <= MAX_TEXT


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "count": _is_count,
    "relation": lambda value: isinstance(value, str) and value in RELATIONS,
    "text": _is_text,
    "texts": lambda value: (
        isinstance(value, list) and 0 < len(value) <= 100 and all(map(_is_text, value))
    ),
    "character": lambda value: isinstance(value, str) and len(value) == 1,
    "language": lambda value: isinstance(value, str) and value in LANGUAGES,
}

CHECKS: Mapping[str, Check] = {
    "keywords:existence": Check(_has_keywords, {"keywords": "texts"}),
    "keywords:frequency": Check(
        _has_frequency, {"keyword": "text", "frequency": "count", "relation": "relation"}
    ),
    "keywords:forbidden_words": Check(_lacks_words, {"forbidden_words": "texts"}),
    "keywords:letter_frequency": Check(
        _has_letters,
        {"letter": "character", "let_frequency": "count", "let_relation": "relation"},
    ),
    "language:response_language": Check(_is_in_language, {"language": "language"}),
    "length_constraints:number_sentences": Check(
        _has_sentences, {"num_sentences": "count", "relation": "relation"}
    ),
    "length_constraints:number_paragraphs": Check(_has_paragraphs, {"num_paragraphs": "count"}),
    "length_constraints:number_words": Check(
        _has_words, {"num_words": "count", "relation": "relation"}
    ),
    "length_constraints:nth_paragraph_first_word": Check(
        _has_first_word,
        {"num_paragraphs": "count", "nth_paragraph": "count", "first_word": "text"},
    ),
    "detectable_content:number_placeholders": Check(
        _has_placeholders, {"num_placeholders": "count"}
    ),
    "detectable_content:postscript": Check(_has_postscript, {"postscript_marker": "text"}),
    "detectable_format:number_bullet_lists": Check(_has_bullets, {"num_bullets": "count"}),
    "detectable_format:constrained_response": Check(_is_constrained, {}),
    "detectable_format:number_highlighted_sections": Check(
        _has_highlights, {"num_highlights": "count"}
    ),
    "detectable_format:multiple_sections": Check(
        _has_sections, {"section_spliter": "text", "num_sections": "count"}
    ),
    "detectable_format:json_format": Check(_is_json, {}),
    "detectable_format:title": Check(_has_title, {}),
    "combination:two_responses": Check(_has_two_responses, {}),
    "combination:repeat_prompt": Check(_repeats_prompt, {"prompt_to_repeat": "text"}),
    "startend:end_checker": Check(_ends_with, {"end_phrase": "text"}),
    "startend:quotation": Check(_is_quoted, {}),
    "change_case:capital_word_frequency": Check(
        _has_upper_words, {"capital_frequency": "count", "capital_relation": "relation"}
    ),
    "change_case:english_capital": Check(_is_english_upper, {}),
    "change_case:english_lowercase": Check(_is_english_lower, {}),
    "punctuation:no_comma": Check(_has_no_comma, {}),
}
"""Each kind of instruction by its name in IFEval."""
