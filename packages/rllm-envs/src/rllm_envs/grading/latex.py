r"""Bring a written mathematical answer to one spelling, without changing what it says.

``clean`` removes what cannot be seen and unifies characters; ``canonical`` also removes spelling
differences of LaTeX: sizes, spacing, ``\dfrac``, dollar and degree signs, units after a value, a
leading ``x =``, and outer ``\text``. All are pure text functions, and their time grows in
proportion to the length of the text, whatever the text.
"""

import re
import unicodedata
from functools import lru_cache

from rllm_envs.parsing import last_boxed

MAX_NAME_LENGTH = 40

_PLAIN_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_MINUS_SIGNS = "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_SPELLINGS = str.maketrans(
    {"\u00d7": r"\times ", "÷": "/", "π": r"\pi ", "°": "", "∞": r"\infty ", "±": r"\pm "}
    | dict.fromkeys("€£¥₹", "")
)

_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle)(?![a-zA-Z])")
_THIN_SPACE = re.compile(r"\\!\s*|(?<=\d)\\,(?=\d{3}(?!\d))")
_SPACE = re.compile(r"(?<!\\)\\[,;:> ]|\\q?quad(?![a-zA-Z])|~|\s+")
_FRACTION = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_DEGREE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))|\\degree(?![a-zA-Z])")
_MATRIX = re.compile(r"\\(begin|end)\s*\{(?:[bB]|small)?matrix\}")
_TEXT = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|operatorname)\s*\{([^{}]*)\}"
)
_PERCENT = re.compile(
    r"(?<=[\d.)}\s])(?:\\(?:text|mbox|mathrm|textrm)\s*\{\s*percent\s*\}|percent(?![a-zA-Z]))"
)
_UNIT = re.compile(
    r"(?<=[\d)}\s%])\\(?:text|mbox|mathrm|textrm)\s*\{([^{}]*)\}\s*(?:\^\s*\{?[23]\}?)?$"
)
_POWER_IN_UNIT = re.compile(r"\^\s*\{?[23]\}?")
_PLAIN_UNIT = re.compile(
    r"[A-Za-z]+(?:\^\{?[23]\}?)?(?:(?: | ?/ ?)[A-Za-z]+(?:\^\{?[23]\}?)?){0,2}\.?"
)
_UNIT_START = re.compile(r"[\d}%] ?(?=[A-Za-z])")
MAX_UNIT_LENGTH = 40

_MAGNITUDES = (
    "ten", "hundred", "thousand", "million", "billion", "trillion", "dozen", "score", "half",
    "third", "quarter", "fourth", "fifth", "tenth", "hundredth", "thousandth", "millionth",
)  # fmt: skip
_OPERATIONS = ("halves", "squared", "cubed", "factorial", "percent", "negative", "mod", "modulo")
_QUALIFIERS = ("at", "least", "most", "about", "approximately", "almost", "nearly", "roughly",
               "than", "under", "except", "maybe", "else")  # fmt: skip
_DENIALS = ("not", "no", "nor", "isn't", "wrong", "incorrect", "false")
_JOINTS = ("or", "and", "is", "to", "through", "plus", "minus", "times", "over", "by", "pi", "i")
_NOT_UNITS = frozenset(
    (*_MAGNITUDES, *(f"{word}s" for word in _MAGNITUDES), *_OPERATIONS, *_QUALIFIERS, *_DENIALS,
     *_JOINTS)
)  # fmt: skip
_NOT_NAMES = frozenset((*_DENIALS, "or", "and", "is", "to"))
_SHORT_UNITS = frozenset(("cm", "mm", "km", "kg", "mg", "ft", "lb", "mi", "hr", "oz", "am", "pm"))
_LETTER_UNITS = frozenset("mgshlcfjw")
_COMMON_UNITS = _SHORT_UNITS | frozenset(
    ("centimeters", "meters", "metres", "kilometers", "miles", "feet", "inches", "yards", "units",
     "square", "cubic", "degrees", "radians", "dollars", "cents", "seconds", "minutes", "hours",
     "days", "years", "mph", "grams", "liters")
)  # fmt: skip

_VARIABLE_LIST = r"\([A-Za-z](?:, ?[A-Za-z])+\)"
_DRAWN_NAME = r"(?:m ?)?\\(?:angle|overline|vec|triangle|mathbf|hat|bar) ?\{?[A-Za-z]{1,3}\}?"
_NAME_IN_TEXT = r"\\(?:text|mbox|mathrm|operatorname) ?\{[A-Za-z .]+\}"
_NAME = re.compile(
    rf"(?:{_DRAWN_NAME}|{_NAME_IN_TEXT}|\\[A-Za-z]+|[A-Za-z]+(?: [A-Za-z]+)*|{_VARIABLE_LIST})'*"
    r"(?:_(?:\w|\{\w+\}))?(?:\^\{?-1\}?)?(?: ?\([A-Za-z0-9](?:, ?[A-Za-z0-9])*\))?"
)
_EQUALS = re.compile(r"=|\\in(?![a-zA-Z])")
_CHOICE = re.compile(r"\(([A-Za-z])\)")


def clean(text: str) -> str:
    """Return the text without invisible characters, in one spelling of digits, signs and spaces.

    NFKC, but superscripts, subscripts and vulgar fractions keep their meaning (``5²`` becomes
    ``5^{2}``, never ``52``). Digits of every script become ASCII; zero-width and direction marks
    go.
    """
    if not text.isascii():
        text = _SUPERSCRIPT_RUN.sub(lambda m: f"^{{{m.group().translate(_SUPERSCRIPTS)}}}", text)
        text = _SUBSCRIPT_RUN.sub(lambda m: f"_{{{m.group().translate(_SUBSCRIPTS)}}}", text)
        text = "".join(map(_vulgar_fraction, text))
        text = unicodedata.normalize("NFKC", text)
        text = "".join(map(_plain_character, text)).translate(_SPELLINGS)
    return " ".join(text.split())


def canonical(text: str) -> str:
    """Return one spelling of an answer; equal results mean equal answers, not the other way."""
    return name_and_value(text)[1]


def name_and_value(text: str) -> tuple[str, str]:
    """Return the name in ``name = value``, empty where there is none, and the canonical value."""
    if _PLAIN_NUMBER.fullmatch(text):
        return "", text
    text = _strip_wrappers(clean(text))
    if "\\" in text or "~" in text:
        text = _one_spelling(text)
    text = text.replace("$", "").strip()
    if "percent" in text:
        text = _PERCENT.sub("%", text)
    text = text.removesuffix(".").rstrip()
    name, text = split_name(_strip_unit(text))
    whole_text = _TEXT.fullmatch(text)
    if whole_text:
        text = whole_text.group(1)
    text = " ".join(text.split()).removesuffix(".").rstrip()
    choice = _CHOICE.fullmatch(text)
    return name, choice.group(1) if choice else text


def compact(text: str) -> str:
    """Return a canonical answer without spaces, except between two letters or digits."""
    if " " not in text:
        return text
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", text)


def is_text_command(text: str) -> bool:
    r"""Return whether all of an answer stands in one ``\text`` or similar command."""
    return _TEXT.fullmatch(_strip_wrappers(clean(text))) is not None


def words_of(text: str) -> list[str]:
    """Return the words that are prose in an answer: inside text commands, or four letters long."""
    inside = " ".join(_TEXT.findall(text))
    outside = re.sub(r"\\(?:begin|end)\s*\{[a-zA-Z*]+\}|\\[a-zA-Z]+", " ", _TEXT.sub(" ", text))
    plain = re.findall(r"(?<![a-zA-Z])(?:or|and|not|[a-zA-Z]{4,})(?![a-zA-Z])", outside)
    return re.findall(r"[a-zA-Z']+", inside) + plain


def split_name(text: str) -> tuple[str, str]:
    r"""Cut ``name = value`` and ``name \in set`` in two; the name is empty where there is none.

    A chain of equalities, and an equation between two expressions, stay whole.
    """
    sign = _EQUALS.search(text)
    if sign is None:
        return "", text
    name, value = text[: sign.start()].strip(), text[sign.end() :].strip()
    if not value or "=" in value or len(name) > MAX_NAME_LENGTH or not _NAME.fullmatch(name):
        return "", text
    words = re.findall(r"[a-z']+", name.lower())
    return (name, value) if _NOT_NAMES.isdisjoint(words) else ("", text)


def without_plain_unit(text: str, *, common_only: bool = False) -> str:
    """Return a text without the plain unit after its value, such as ``18 dollars`` or ``18 km/h``.

    Args:
        text: A canonical answer.
        common_only: Whether only units of a short list go, because the value may hold letters.
    """
    starts = list(_UNIT_START.finditer(text))
    if not starts:
        return text
    value, unit = text[: starts[-1].end()], text[starts[-1].end() :]
    if len(unit) > MAX_UNIT_LENGTH or not _PLAIN_UNIT.fullmatch(unit):
        return text
    words = re.findall(r"[a-z]+", unit.lower())
    if common_only:
        is_unit = all(word in _COMMON_UNITS for word in words)
    elif "/" in unit or "^" in unit:
        is_unit = all(
            word in _LETTER_UNITS or word in _COMMON_UNITS or len(word) >= 3 for word in words
        )
    else:
        # Three letters that touch the number are a product: 42xyz.
        shortest = 3 if value.endswith(" ") else 4
        is_unit = all(len(word) >= shortest or word in _SHORT_UNITS for word in words)
    return value.rstrip() if is_unit and _NOT_UNITS.isdisjoint(words) else text


def _one_spelling(text: str) -> str:
    text = _THIN_SPACE.sub("", _SIZES.sub("", text))
    text = _SPACE.sub(" ", _DEGREE.sub("", text))
    text = _MATRIX.sub(r"\\\1{pmatrix}", _FRACTION.sub(r"\\frac", text))
    text = text.replace(r"\$", "").replace(r"\%", "%")
    return " ".join(text.split())


@lru_cache(maxsize=4096)
def _vulgar_fraction(character: str) -> str:
    decomposition = unicodedata.decomposition(character)
    if not decomposition.startswith("<fraction>"):
        return character
    value = "".join(chr(int(code, 16)) for code in decomposition.split()[1:])
    numerator, _, denominator = value.partition("\u2044")
    return rf"\frac{{{numerator}}}{{{denominator}}}"


@lru_cache(maxsize=4096)
def _plain_character(character: str) -> str:
    if character in _MINUS_SIGNS:
        return "-"
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.decimal(character))
    return "" if category == "Cf" else character


def _strip_wrappers(text: str) -> str:
    """Remove math delimiters and boxes that enclose the whole text."""
    for _ in range(4):
        if text[:1] not in ("$", "\\"):
            break
        before = text
        for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
            inner = text[len(opening) : -len(closing)]
            if len(text) > len(opening + closing) and text == opening + inner + closing:
                text = inner.strip()
        if text.startswith("\\boxed"):
            inner = last_boxed(text)
            if inner is not None and re.fullmatch(r"\\boxed\s*\{" + re.escape(inner) + r"\}", text):
                text = inner.strip()
        if text == before:
            break
    return text


def _strip_unit(text: str) -> str:
    r"""Remove one unit in a text command after a value, such as ``\text{ cm}^2``."""
    unit = _UNIT.search(text)
    if unit is None:
        return text
    words = _POWER_IN_UNIT.sub("", unit.group(1)).replace(".", " ").lower().split()
    is_unit = len(words) <= 4 and all(
        word not in _NOT_UNITS
        and not re.search(r"\d", word)
        and (len(word) > 1 or word in _LETTER_UNITS)
        for word in words
    )
    return text[: unit.start()].strip() if is_unit else text
