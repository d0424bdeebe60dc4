"""A writer that follows the instructions of IFEval: the oracle of ``rllm/IFEval-v0``.

It knows how to follow each instruction by itself, and puts the parts together in an order in which
they rarely disturb each other. Whether a response follows all of its instructions is for the checks
to say.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rllm_envs.grading.instructions.checks import CONSTRAINED
from rllm_envs.grading.instructions.words import num_sentences, num_words

Instructions = Mapping[str, Mapping[str, Any]]

_SENTENCES = (
    "the garden is quiet in the morning",
    "we walk along the river and look at the old bridge",
    "a small boat waits near the shore",
    "most people like a calm day",
    "there is a market at the end of the street",
    "some birds sing in the trees",
    "it is good to have time for a cup of tea",
    "the road goes up to the top of the hill",
    "you can see the harbour from there",
    "this is how the story ends for now",
)
"""Plain English without commas; those with forbidden words are left out."""
_SHORT = "go on"
_FOREIGN = {
    "de": "Der Garten ist am Morgen still und die Luft ist kühl.",
    "es": "El jardín es tranquilo por la mañana y el aire es fresco.",
    "fr": "Le jardin est calme dans la matinée et les fleurs sont belles.",
    "it": "Il giardino è tranquillo di mattina e non è più freddo.",
    "pt": "O jardim é calmo de manhã e não faz mais frio para os pássaros.",
    "fi": "Puutarha on hiljainen ja se on kaunis, mutta myös kylmä.",
    "ru": "Утром в саду тихо, и это очень красиво для всех.",
    "hi": "सुबह बगीचा शांत है और यह सुंदर है।",
    "ar": "الحديقة هادئة في الصباح وهي جميلة من كل مكان.",
    "ko": "아침의 정원은 조용하고 아름답다.",
    "ja": "朝の庭は静かで美しい。",
    "th": "สวนในตอนเช้าเงียบและสวยงาม",
    "bn": "সকালে বাগান শান্ত এবং সুন্দর।",
    "ta": "காலையில் தோட்டம் அமைதியாக இருக்கிறது.",
}
"""One sentence in each of some languages."""
FOREIGN_LANGUAGES = tuple(_FOREIGN)


def write_response(instructions: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return a response that follows instructions, where it can be found without searching."""
    wanted: Instructions = dict(instructions)
    body = _body(wanted)
    text = _framed(wanted, body)
    if "detectable_format:json_format" in wanted:
        text = json.dumps({"text": text}, ensure_ascii=False)
    if "change_case:english_capital" in wanted:
        text = text.upper()
    if "change_case:english_lowercase" in wanted:
        text = text.lower()
    if "startend:quotation" in wanted:
        text = f'"{text}"'
    return text


def _body(wanted: Instructions) -> str:
    """Return sentences of the right number and with the right words, in the right paragraphs."""
    language = wanted.get("language:response_language")
    if language is not None:
        return _FOREIGN.get(language["language"], "")
    sentences = _wanted_sentences(wanted)
    fillers = _fillers(wanted)
    spare = 0
    while _is_too_short(wanted, sentences) and spare < 2000:
        sentences.append(fillers[spare % len(fillers)])
        spare += 1
    return _paragraphs(wanted, sentences or [fillers[0]])


def _fillers(wanted: Instructions) -> list[str]:
    forbidden = wanted.get("keywords:forbidden_words", {})
    avoided = [word.lower() for word in forbidden.get("forbidden_words", [])]
    letter = wanted.get("keywords:letter_frequency", {})
    keyword = wanted.get("keywords:frequency", {})
    if letter.get("let_relation") == "less than":
        avoided.append(letter["letter"].lower())
    if keyword.get("relation") == "less than":
        avoided.append(keyword["keyword"].lower())
    kept = [text for text in _SENTENCES if not any(word in text for word in avoided)]
    return [f"{text}." for text in kept or [_SHORT]]


def _wanted_sentences(wanted: Instructions) -> list[str]:
    """Return the sentences that instructions ask for by their words."""
    sentences = []
    if "keywords:existence" in wanted:
        words = " and ".join(wanted["keywords:existence"]["keywords"])
        sentences.append(f"here is a word on {words}.")
    frequency = wanted.get("keywords:frequency", {})
    if frequency.get("relation") == "at least":
        sentences.append(" ".join([frequency["keyword"]] * frequency["frequency"]) + ".")
    letters = wanted.get("keywords:letter_frequency", {})
    if letters.get("let_relation") == "at least":
        sentences.append(f"say {letters['letter'] * letters['let_frequency']}.")
    capitals = wanted.get("change_case:capital_word_frequency", {})
    if capitals.get("capital_relation") == "at least":
        sentences.append(" ".join(["GO"] * capitals["capital_frequency"]) + ".")
    if "detectable_format:constrained_response" in wanted:
        sentences.append(CONSTRAINED[0])
    marks = wanted.get("detectable_format:number_highlighted_sections", {})
    sentences += [f"look at *part {n}* here." for n in range(marks.get("num_highlights", 0))]
    places = wanted.get("detectable_content:number_placeholders", {})
    sentences += [f"write to [name {n}]." for n in range(places.get("num_placeholders", 0))]
    return sentences


def _is_too_short(wanted: Instructions, sentences: list[str]) -> bool:
    if not sentences:
        return True
    text = " ".join(sentences)
    words = wanted.get("length_constraints:number_words", {})
    counted = wanted.get("length_constraints:number_sentences", {})
    needs_words = words.get("relation") == "at least" and num_words(text) < words["num_words"]
    is_counted = counted.get("relation") == "at least"
    return needs_words or (is_counted and num_sentences(text) < counted["num_sentences"])


def _paragraphs(wanted: Instructions, sentences: list[str]) -> str:
    text = " ".join(sentences)
    divided = wanted.get("length_constraints:number_paragraphs", {})
    numbered = wanted.get("length_constraints:nth_paragraph_first_word", {})
    sections = wanted.get("detectable_format:multiple_sections", {})
    short = f"{_SHORT}."
    if divided:
        return "\n***\n".join([text, *[short] * (divided["num_paragraphs"] - 1)])
    if numbered:
        parts = [text, *[short] * (numbered["num_paragraphs"] - 1)]
        place = numbered["nth_paragraph"] - 1
        if 0 <= place < len(parts):
            parts[place] = f"{numbered['first_word']} {parts[place]}"
        return "\n\n".join(parts)
    if sections:
        name, count = sections["section_spliter"], sections["num_sections"]
        parts = [text, *[short] * (count - 1)]
        return "\n".join(f"{name} {n}\n{part}" for n, part in enumerate(parts, start=1))
    if "combination:two_responses" in wanted:
        return f"{text}\n******\n{text} {short}"
    return text


def _framed(wanted: Instructions, body: str) -> str:
    """Return a body with what stands before and after it."""
    before, after = [], []
    if "combination:repeat_prompt" in wanted:
        before.append(wanted["combination:repeat_prompt"]["prompt_to_repeat"])
    if "detectable_format:title" in wanted:
        before.append("<<a day>>")
    bullets = wanted.get("detectable_format:number_bullet_lists", {}).get("num_bullets", 0)
    after += [f"* {_SHORT}" for _ in range(bullets)]
    if "detectable_content:postscript" in wanted:
        after.append(f"{wanted['detectable_content:postscript']['postscript_marker']} {_SHORT}.")
    if "startend:end_checker" in wanted:
        after.append(wanted["startend:end_checker"]["end_phrase"])
    return "\n".join([*before, body, *after])
