r"""Bring a written mathematical answer to one spelling, without changing what it says.

``clean`` removes what cannot be seen and unifies characters; ``canonical`` also removes spelling
differences of LaTeX: sizes, spacing, ``\dfrac``, dollar and degree signs, units after a value, a
leading ``x =``, and outer ``\text``. Both are pure text functions, linear or close to it.
"""

import re
import unicodedata

from rllm_envs.parsing import last_boxed

_MINUS_SIGNS = "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_SPELLINGS = str.maketrans({"\u00d7": r"\times ", "÷": "/", "π": r"\pi ", "°": "", "∞": r"\infty "})

_SPACING = re.compile(r"\\(?:left|right|[bB]igg?[lr]?|displaystyle)(?![a-zA-Z])")
_THIN_SPACE = re.compile(r"\\!\s*")
_SPACE = re.compile(r"(?<!\\)\\[,;:> ]|\\q?quad(?![a-zA-Z])|~|\s+")
_FRACTION = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_DEGREE = re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\\circ(?![a-zA-Z]))|\\degree(?![a-zA-Z])")
_TEXT = re.compile(
    r"\\(?:text|mbox|textbf|textit|textrm|mathrm|mathbf|operatorname)\s*\{([^{}]*)\}"
)
_UNIT = re.compile(
    r"(?<=[\d)}\s])\s*(?:\\text|\\mbox|\\mathrm|\\textrm)\s*\{([^{}\d]*)\}\s*(?:\^\s*\{?[23]\}?)?$"
)
_MAGNITUDES = ("hundred", "thousand", "million", "billion", "trillion", "dozen", "half", "percent")
_DENIALS = ("not", "no", "nor", "isn't", "wrong", "incorrect", "false")
_JOINTS = ("or", "and", "is", "to", "through", "plus", "minus", "times", "over", "by", "pi", "i")
_NOT_UNITS = frozenset((*_MAGNITUDES, *_DENIALS, *_JOINTS))
_SHORT_UNITS = frozenset(("cm", "mm", "km", "kg", "mg", "ft", "lb", "mi", "hr", "oz", "am", "pm"))
_NAMED_VALUE = re.compile(
    r"(?:\\[A-Za-z]+|[A-Za-z]{1,2}|\([A-Za-z](?:,\s*[A-Za-z])+\))(?:_\{?\w{1,8}\}?)?(?:\([A-Za-z]\))?"
    r"\s*(?:=|\\in(?![a-zA-Z]))\s*([^=]+)"
)
_CHOICE = re.compile(r"^\(([A-Za-z])\)$")


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
    text = _strip_wrappers(clean(text))
    text = _SPACING.sub("", text)
    text = _THIN_SPACE.sub("", text)
    text = _DEGREE.sub("", text)
    text = _FRACTION.sub(r"\\frac", text)
    text = text.replace(r"\$", "").replace(r"\%", "%").replace("$", "")
    text = _strip_name(_strip_unit(text.strip()))
    whole_text = _TEXT.fullmatch(text)
    if whole_text:
        text = whole_text.group(1)
    text = _SPACE.sub(" ", text).strip()
    text = text.removesuffix(".").strip()
    choice = _CHOICE.match(text)
    return choice.group(1) if choice else text


def compact(text: str) -> str:
    """Return a canonical answer without spaces, except between two letters or digits."""
    return re.sub(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])", "", text)


def words_of(text: str) -> list[str]:
    """Return the words that are prose in an answer: inside text commands, or four letters long."""
    inside = " ".join(_TEXT.findall(text))
    outside = re.sub(r"\\[a-zA-Z]+", " ", _TEXT.sub(" ", text))
    plain = re.findall(r"(?<![a-zA-Z])(?:or|and|not|[a-zA-Z]{4,})(?![a-zA-Z])", outside)
    return re.findall(r"[a-zA-Z']+", inside) + plain


def _vulgar_fraction(character: str) -> str:
    decomposition = unicodedata.decomposition(character)
    if not decomposition.startswith("<fraction>"):
        return character
    value = "".join(chr(int(code, 16)) for code in decomposition.split()[1:])
    numerator, _, denominator = value.partition("\u2044")
    return rf"\frac{{{numerator}}}{{{denominator}}}"


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
        before = text
        for opening, closing in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
            inner = text[len(opening) : -len(closing)]
            if len(text) > len(opening + closing) and text == opening + inner + closing:
                text = inner.strip()
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
    words = unit.group(1).replace(".", " ").lower().split()
    if len(words) > 4 or any(word in _NOT_UNITS for word in words):
        return text
    return text[: unit.start()].strip()


def _strip_name(text: str) -> str:
    r"""Reduce ``name = value`` and ``name \in set`` to the value; a chain of equalities stays."""
    named = _NAMED_VALUE.fullmatch(text)
    return named.group(1).strip() if named else text


def without_plain_unit(text: str) -> str:
    """Return a text without up to three plain unit words after a number, such as ``18 dollars``."""
    match = re.fullmatch(r"(.*[\d}%])\s*((?:[A-Za-z]+\s?){1,3})", text)
    if match is None:
        return text
    words = match.group(2).lower().split()
    is_unit = all(len(word) >= 3 or word in _SHORT_UNITS for word in words)
    return match.group(1) if is_unit and _NOT_UNITS.isdisjoint(words) else text
