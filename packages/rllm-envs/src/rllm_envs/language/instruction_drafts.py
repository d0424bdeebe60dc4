"""Made-up requests with checkable instructions, each of which the writer can follow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rllm_envs.grading.instructions.checks import CONSTRAINED, is_followed
from rllm_envs.language.instruction_writer import FOREIGN_LANGUAGES, write_response
from rllm_envs.tasks import Task

MAX_INSTRUCTIONS = 6
MAX_TRIES = 1000

Arguments = dict[str, Any]

_KINDS_OF_TEXT = ("a short text", "a note", "a letter", "a story", "a blog post", "a speech",
                  "an advertisement", "a diary entry", "a review", "a summary")  # fmt: skip
_TOPICS = (
    *("a day by the sea", "a new library", "an old bicycle", "a long train journey", "a lost dog"),
    *("the first snow", "a village market", "a broken clock", "learning to swim", "a night sky"),
    *("growing tomatoes", "a mountain hut", "a music lesson", "moving house", "a birthday cake"),
    *("a busy kitchen", "a power cut", "a garden gate", "the art of waiting", "a paper boat"),
)
_WORDS = (
    *("apple", "basket", "candle", "copper", "daisy", "ember", "feather", "forest", "glacier"),
    *("hammer", "island", "jacket", "kettle", "ladder", "lantern", "marble", "meadow", "needle"),
    *("orchard", "paper", "pepper", "quartz", "ribbon", "saddle", "shadow", "silver", "summer"),
    *("ticket", "tunnel", "velvet", "violin", "window", "winter", "yellow", "zebra"),
)
_COMMON = (
    *("garden", "river", "bridge", "boat", "people", "market", "street", "trees", "tea", "road"),
    *("hill", "story"),
)
_PHRASES = ("Is there anything else I can do?", "That is all for today.", "See you next week.",
            "Any other questions?", "And so it goes.", "Thank you for reading.")  # fmt: skip
_LANGUAGE_NAMES = {
    "de": "German", "es": "Spanish", "fr": "French", "it": "Italian", "pt": "Portuguese",
    "fi": "Finnish", "ru": "Russian", "hi": "Hindi", "ar": "Arabic", "ko": "Korean",
    "ja": "Japanese", "th": "Thai", "bn": "Bengali", "ta": "Tamil",
}  # fmt: skip


class Dice:
    """Draws from a random generator.

    Args:
        rng: The generator.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def number(self, least: int, most: int) -> int:
        """Return a whole number, both ends included."""
        return int(self._rng.integers(least, most + 1))

    def one(self, items: Any) -> Any:
        """Return one of several items."""
        return items[self.number(0, len(items) - 1)]

    def some(self, items: Any, count: int) -> list[Any]:
        """Return several different items."""
        return [items[int(i)] for i in self._rng.choice(len(items), size=count, replace=False)]


@dataclass(frozen=True, slots=True)
class Draft:
    """How one kind of instruction is made up. Written in ``DRAFTS``."""

    group: str
    """At most one instruction of a group is in a request."""
    draw: Callable[[Dice], Arguments]
    """Draws its arguments."""
    words: Callable[[Arguments], str]
    """Says it in a sentence."""
    is_free: bool = False
    """Whether a response follows it by doing nothing."""


def draft_task(rng: np.random.Generator, num_instructions: int) -> Task:
    """Return a request with instructions, of which one at least asks for something to be done.

    Requests whose instructions the writer cannot follow together are drawn again.
    """
    dice = Dice(rng)
    for _ in range(MAX_TRIES):
        request = f"Write {dice.one(_KINDS_OF_TEXT)} about {dice.one(_TOPICS)}."
        instructions = _draw_instructions(dice, num_instructions, request)
        response = write_response(instructions)
        is_asked = not all(DRAFTS[name].is_free for name, _ in instructions)
        if is_asked and all(is_followed(name, given, response) for name, given in instructions):
            sentences = [DRAFTS[name].words(given) for name, given in instructions]
            return {
                "question": " ".join([request, *sentences]),
                "instruction_id_list": [name for name, _ in instructions],
                "kwargs": [given for _, given in instructions],
            }
    raise AssertionError(f"no request with {num_instructions} instructions in {MAX_TRIES} draws")


def _draw_instructions(dice: Dice, count: int, request: str) -> list[tuple[str, Arguments]]:
    drawn: list[tuple[str, Arguments]] = []
    groups: set[str] = set()
    for name in dice.some(list(DRAFTS), len(DRAFTS)):
        draft = DRAFTS[name]
        if draft.group in groups or len(drawn) == count:
            continue
        arguments = draft.draw(dice)
        if name == "combination:repeat_prompt":
            arguments = {"prompt_to_repeat": request}
        drawn.append((name, arguments))
        groups.add(draft.group)
    return drawn


def _listed(words: list[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _relation(dice: Dice) -> str:
    return dice.one(("at least", "less than"))


def _number_of_words(dice: Dice) -> Arguments:
    relation = _relation(dice)
    wanted = dice.number(4, 20) * 10 if relation == "at least" else dice.number(5, 20) * 10
    return {"num_words": wanted, "relation": relation}


def _nth_paragraph(dice: Dice) -> Arguments:
    count = dice.number(2, 5)
    return {
        "num_paragraphs": count,
        "nth_paragraph": dice.number(1, count),
        "first_word": dice.one(_WORDS),
    }


DRAFTS: Mapping[str, Draft] = {
    "keywords:existence": Draft(
        "keywords",
        lambda dice: {"keywords": dice.some(_WORDS, dice.number(1, 3))},
        lambda given: f"Use these words: {_listed(given['keywords'])}.",
    ),
    "keywords:frequency": Draft(
        "keywords",
        lambda dice: {
            "keyword": dice.one(_WORDS), "frequency": dice.number(2, 5), "relation": "at least",
        },
        lambda given: f'Use the word "{given["keyword"]}" {given["relation"]} '
        f"{given['frequency']} times.",
    ),
    "keywords:forbidden_words": Draft(
        "letters",
        lambda dice: {"forbidden_words": dice.some(_COMMON, dice.number(2, 4))},
        lambda given: f"Do not use these words: {_listed(given['forbidden_words'])}.",
        is_free=True,
    ),
    "keywords:letter_frequency": Draft(
        "letters",
        lambda dice: {
            "letter": dice.one("abcdefghijklmnopqrstuvwxyz"),
            "let_frequency": dice.number(3, 12),
            "let_relation": _relation(dice),
        },
        lambda given: f'Use the letter "{given["letter"]}" {given["let_relation"]} '
        f"{given['let_frequency']} times.",
        is_free=True,
    ),
    "language:response_language": Draft(
        "language",
        lambda dice: {"language": dice.one(FOREIGN_LANGUAGES)},
        lambda given: f"Write the whole response in {_LANGUAGE_NAMES[given['language']]}.",
    ),
    "length_constraints:number_sentences": Draft(
        "length",
        lambda dice: {"num_sentences": dice.number(3, 12), "relation": _relation(dice)},
        lambda given: f"The response must have {given['relation']} {given['num_sentences']} "
        "sentences.",
        is_free=True,
    ),
    "length_constraints:number_paragraphs": Draft(
        "length",
        lambda dice: {"num_paragraphs": dice.number(2, 6)},
        lambda given: f"Write {given['num_paragraphs']} paragraphs, divided by lines of three "
        "asterisks: ***",
    ),
    "length_constraints:number_words": Draft(
        "length",
        _number_of_words,
        lambda given: f"Write {given['relation']} {given['num_words']} words.",
        is_free=True,
    ),
    "length_constraints:nth_paragraph_first_word": Draft(
        "length",
        _nth_paragraph,
        lambda given: f"Write {given['num_paragraphs']} paragraphs, divided by blank lines only; "
        f'paragraph {given["nth_paragraph"]} must start with the word "{given["first_word"]}".',
    ),
    "detectable_content:number_placeholders": Draft(
        "marks",
        lambda dice: {"num_placeholders": dice.number(1, 5)},
        lambda given: f"Use at least {given['num_placeholders']} placeholders in square brackets, "
        "such as [address].",
    ),
    "detectable_content:postscript": Draft(
        "end",
        lambda dice: {"postscript_marker": dice.one(("P.S.", "P.P.S"))},
        lambda given: f"Add a postscript at the end that starts with {given['postscript_marker']}",
    ),
    "detectable_format:number_bullet_lists": Draft(
        "layout",
        lambda dice: {"num_bullets": dice.number(1, 6)},
        lambda given: f"Have exactly {given['num_bullets']} bullet points, as lines that start "
        "with an asterisk: * This is a point.",
    ),
    "detectable_format:constrained_response": Draft(
        "answer",
        lambda dice: {},
        lambda given: f"Say one of these: {_listed(list(CONSTRAINED))}.",
    ),
    "detectable_format:number_highlighted_sections": Draft(
        "marks",
        lambda dice: {"num_highlights": dice.number(1, 5)},
        lambda given: f"Highlight at least {given['num_highlights']} parts by asterisks, as "
        "*this part*.",
    ),
    "detectable_format:multiple_sections": Draft(
        "length",
        lambda dice: {
            "section_spliter": dice.one(("SECTION", "Section", "PART", "Day")),
            "num_sections": dice.number(2, 5),
        },
        lambda given: f"Have {given['num_sections']} sections, each headed by a line such as: "
        f"{given['section_spliter']} 1",
    ),
    "detectable_format:json_format": Draft(
        "layout", lambda dice: {}, lambda given: "Wrap the whole response in JSON."
    ),
    "detectable_format:title": Draft(
        "title",
        lambda dice: {},
        lambda given: "Have a title in double angular brackets, such as <<a fine day>>.",
    ),
    "combination:two_responses": Draft(
        "length",
        lambda dice: {},
        lambda given: "Give two different responses, divided by six asterisks: ******",
    ),
    "combination:repeat_prompt": Draft(
        "start",
        lambda dice: {"prompt_to_repeat": ""},
        lambda given: "First repeat the first sentence of this request word for word, then "
        "respond.",
    ),
    "startend:end_checker": Draft(
        "end",
        lambda dice: {"end_phrase": dice.one(_PHRASES)},
        lambda given: f'End with exactly these words, and nothing after them: '
        f'"{given["end_phrase"]}"',
    ),
    "startend:quotation": Draft(
        "start", lambda dice: {}, lambda given: "Wrap the whole response in double quotes."
    ),
    "change_case:capital_word_frequency": Draft(
        "case",
        lambda dice: {"capital_frequency": dice.number(2, 8), "capital_relation": _relation(dice)},
        lambda given: f"Have {given['capital_relation']} {given['capital_frequency']} words in "
        "capital letters only.",
        is_free=True,
    ),
    "change_case:english_capital": Draft(
        "case", lambda dice: {}, lambda given: "Write in English and in capital letters only."
    ),
    "change_case:english_lowercase": Draft(
        "case",
        lambda dice: {},
        lambda given: "Write in English and in lower case only, without any capital letter.",
        is_free=True,
    ),
    "punctuation:no_comma": Draft(
        "comma", lambda dice: {}, lambda given: "Do not use any commas.", is_free=True
    ),
}  # fmt: skip
"""Each kind of instruction of ``rllm_envs.grading.instructions.checks`` by its name."""
