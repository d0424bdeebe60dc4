# ruff: noqa: RUF001  # the letters of many scripts look alike
"""Which language a text is in, by its script and by words and letters that only it has."""

import re
from collections import Counter

MAX_LENGTH = 20_000
"""Characters that are looked at."""

_SCRIPTS = (
    ("latin", "a-zA-Z\u00c0-\u024f\u1e00-\u1eff"),
    ("cyrillic", "\u0400-\u052f"),
    ("arabic", "\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufeff"),
    ("devanagari", "\u0900-\u097f"),
    ("bn", "\u0980-\u09ff"),
    ("pa", "\u0a00-\u0a7f"),
    ("gu", "\u0a80-\u0aff"),
    ("ta", "\u0b80-\u0bff"),
    ("te", "\u0c00-\u0c7f"),
    ("kn", "\u0c80-\u0cff"),
    ("ml", "\u0d00-\u0d7f"),
    ("th", "\u0e00-\u0e7f"),
    ("he", "\u0590-\u05ff"),
    ("ko", "\u1100-\u11ff\uac00-\ud7af"),
    ("el", "\u0370-\u03ff"),
    ("ja", "\u3040-\u30ff"),
    ("zh", "\u4e00-\u9fff"),
)
"""Scripts; those named by a language are used by it alone."""
_SCRIPT_OF = [(name, re.compile(f"[{letters}]")) for name, letters in _SCRIPTS]

_WORDS = {
    "latin": {
        "en": "the and of to in is that it for with was are this as on be not by from you have",
        "de": "der die das und ist nicht ein eine mit von zu den auf für sich auch es im dem wir",
        "nl": "de het een en van is niet met voor dat zijn op te ook maar wij deze naar bij aan",
        "fr": "le la les et est des une dans pour que qui pas avec sur du au il elle nous sont",
        "es": "el la los y es las una por que con para del se en lo como su más pero está",
        "pt": "o a os e é as uma por que com para do da em não um se na no mais são",
        "it": "il la e di che è un una per con non del della sono gli nel si più anche lo",
        "pl": "i w nie się na jest z do to że o jak ale po co dla od czy są oraz",
        "fi": "ja on ei että se oli hän mutta myös kun niin ovat tämä joka sen kuin olla voi",
        "sw": "na ya wa kwa ni katika za la kuwa hii cha watu lakini kama sana yake yetu wao",
        "vi": "và là của có không một những cho trong được với các người này đã khi để từ",
        "sv": "och att det är en som på för med inte av den till ett var har om vi men kan",
    },
    "cyrillic": {
        "ru": "и в не на что с это как но из он они быть для от по мы было все его",
        "uk": "і в не на що з це як але він вони бути для від та ми було все його також",
        "bg": "и в не на че с това как но той те да за от по ние беше се са е",
    },
    "arabic": {
        "ar": "في من على إلى أن هذا هذه التي الذي كان مع عن ما لا هو هي كما أو بين ذلك",
        "fa": "و در به از که این را است با برای آن یک می های شود بود هم تا خود ما",
        "ur": "اور کے میں کی ہے کا سے کو نے پر یہ ہیں ایک کہ وہ بھی تھا ہم لیے کر",
    },
    "devanagari": {
        "hi": "है के में की और का से को यह हैं एक पर नहीं ने कि भी था हम लिए वह",
        "mr": "आहे आणि च्या हे या ते आहेत एक मध्ये नाही होते की पण हा ही आम्ही साठी तो होता मी",
        "ne": "छ र को मा हो यो पनि छन् एक लागि गर्न भएको हामी थियो गरेको तर यस ले हुन्छ उनी",
    },
}
"""Frequent words of the languages that share a script."""
_LETTERS = {
    "de": "äß", "fr": "œçêè", "es": "ñ¿¡", "pt": "ãõ", "pl": "łżśęą", "vi": "ơưạảấầẩẫậ", "sv": "å",
    "ru": "ыэё", "uk": "іїєґ", "bg": "ъ", "fa": "گچپژ", "ur": "ٹڈڑےںہ", "mr": "ळ", "ne": "छ",
}  # fmt: skip
"""Letters that hint at one language among those of its script."""
_VOCABULARY = {
    script: {language: frozenset(words.split()) for language, words in languages.items()}
    for script, languages in _WORDS.items()
}

_WORD = re.compile(r"[^\W\d_]+(?:[\u0900-\u0903\u093a-\u094f]+[^\W\d_]*)*|[¿¡]")
"""A word with the vowel signs of Devanagari, which are no letters; or a mark of Spanish."""

LANGUAGES = frozenset(
    {name for name, _ in _SCRIPTS if name not in _WORDS}
    | {language for languages in _WORDS.values() for language in languages}
)
"""Codes of the languages that can be told apart (ISO 639-1)."""


def script_of(text: str) -> str | None:
    """Return the script of most letters of a text; None where it has none that is known."""
    counts = {name: len(pattern.findall(text[:MAX_LENGTH])) for name, pattern in _SCRIPT_OF}
    # Japanese mixes its syllables with the characters that Chinese is written in.
    if counts["ja"] * 10 > counts["zh"]:
        counts["ja"] += counts.pop("zh")
    script = max(counts, key=counts.__getitem__)
    return script if counts[script] else None


def language_of(text: str) -> str | None:
    """Return the code of the language that a text is in; None where nothing tells it.

    A script that one language has decides by itself. Else each word counts for the languages whose
    frequent words it is one of, or whose own letters it has.
    """
    script = script_of(text)
    if script is None or script not in _VOCABULARY:
        return script
    votes: Counter[str] = Counter()
    for word in re.findall(
        r"[^\W\d_]+(?:[\u0900-\u0903\u093a-\u094f]+[^\W\d_]*)*|[¿¡]", text[:MAX_LENGTH].casefold()
    ):
        for language, words in _VOCABULARY[script].items():
            is_own = any(letter in word for letter in _LETTERS.get(language, ""))
            votes[language] += (word in words) + is_own
    language, most = max(votes.items(), key=lambda item: item[1], default=("", 0))
    return language if most else None
