# ruff: noqa: RUF001
import time

import pytest

from rllm_envs.grading.instructions.languages import LANGUAGES, language_of

TEXTS = {
    "en": "This is a small house and it was built by the people of the town.",
    "de": "Das Haus ist nicht groß, aber die Leute sind mit dem Garten zufrieden.",
    "nl": "Het huis is niet groot, maar de mensen van het dorp zijn er blij mee.",
    "fr": "La maison n'est pas grande, mais les gens du village sont contents.",
    "es": "La casa no es grande, pero los vecinos del pueblo están contentos con ella.",
    "pt": "A casa não é grande, mas os vizinhos da aldeia estão contentes com ela.",
    "it": "La casa non è grande, ma gli abitanti del paese sono contenti di vivere qui.",
    "pl": "Dom nie jest duży, ale ludzie z tej wsi są z niego zadowoleni.",
    "fi": "Talo ei ole suuri, mutta kylän ihmiset ovat siihen tyytyväisiä ja iloisia.",
    "sw": "Nyumba hii si kubwa lakini watu wa kijiji wanafurahi kuwa na nyumba yao.",
    "vi": "Ngôi nhà không lớn nhưng người trong làng rất vui với nó.",
    "sv": "Huset är inte stort, men folket i byn är nöjda med det och har en trädgård.",
    "ru": "Дом небольшой, но жители деревни очень рады, что он у них есть.",
    "uk": "Будинок невеликий, але мешканці села дуже раді, що він у них є.",
    "bg": "Къщата не е голяма, но хората от селото са доволни от нея.",
    "ar": "البيت ليس كبيرا لكن سكان القرية سعداء به في كل يوم.",
    "fa": "این خانه بزرگ نیست اما مردم روستا از آن خوشحال هستند و در آن زندگی می کنند.",
    "ur": "یہ گھر بڑا نہیں ہے لیکن گاؤں کے لوگ اس سے خوش ہیں۔",
    "hi": "यह घर बड़ा नहीं है लेकिन गाँव के लोग इससे खुश हैं।",
    "mr": "हे घर मोठे नाही पण गावातील लोक त्यात आनंदी आहेत आणि हसतात.",
    "ne": "यो घर ठूलो छैन तर गाउँका मानिसहरू यसमा खुसी छन्।",
    "bn": "বাড়িটি বড় নয় কিন্তু গ্রামের মানুষ খুশি।",
    "pa": "ਇਹ ਘਰ ਵੱਡਾ ਨਹੀਂ ਹੈ।",
    "gu": "આ ઘર મોટું નથી.",
    "ta": "இந்த வீடு பெரியது அல்ல.",
    "te": "ఈ ఇల్లు పెద్దది కాదు.",
    "kn": "ಈ ಮನೆ ದೊಡ್ಡದಲ್ಲ.",
    "ml": "ഈ വീട് വലുതല്ല.",
    "th": "บ้านหลังนี้ไม่ใหญ่",
    "he": "הבית אינו גדול אבל האנשים שמחים.",
    "ko": "집은 크지 않지만 사람들은 행복하다.",
    "el": "Το σπίτι δεν είναι μεγάλο.",
    "ja": "その家は大きくないが、村の人々は喜んでいる。",
    "zh": "房子不大，但是村民很高兴。",
}


def test_there_is_a_text_for_each_language():
    assert set(TEXTS) == LANGUAGES


@pytest.mark.parametrize("language", TEXTS)
def test_a_text_is_told_by_its_language(language):
    assert language_of(TEXTS[language]) == language
    assert language_of(TEXTS[language].upper()) == language


@pytest.mark.parametrize("text", ["", "123 + 4", "...", "\ud800", "Xqz"])
def test_what_has_no_words_has_no_language(text):
    assert language_of(text) is None


def test_most_of_a_mixed_text_decides():
    assert language_of(f"{TEXTS['hi']} {TEXTS['hi']} OK, Mr. Smith") == "hi"
    assert language_of(f"{TEXTS['en']} {TEXTS['en']} (Москва)") == "en"


def test_long_text_is_no_longer_work():
    start = time.process_time()
    language_of("é" * 1_000_000)
    language_of("the " * 250_000)
    assert time.process_time() - start < 1.0
