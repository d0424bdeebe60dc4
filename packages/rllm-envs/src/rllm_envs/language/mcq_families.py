"""Families of made-up multiple-choice questions: facts of general knowledge, words and numbers.

A family is a function of a random generator and of the number of choices. It returns a question and
the choices, the right one first; they are different, and no other is right.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

Question = tuple[str, list[str]]
"""A question and its choices, the right one first."""


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split(":") for pair in text.split())


_CAPITALS = _pairs(
    "France:Paris Spain:Madrid Portugal:Lisbon Italy:Rome Germany:Berlin Austria:Vienna "
    "Poland:Warsaw Hungary:Budapest Greece:Athens Norway:Oslo Sweden:Stockholm "
    "Finland:Helsinki Denmark:Copenhagen Ireland:Dublin Belgium:Brussels Bulgaria:Sofia "
    "Romania:Bucharest Serbia:Belgrade Croatia:Zagreb Slovenia:Ljubljana Slovakia:Bratislava "
    "Estonia:Tallinn Latvia:Riga Lithuania:Vilnius Iceland:Reykjavik Ukraine:Kyiv "
    "Russia:Moscow Turkey:Ankara Egypt:Cairo Kenya:Nairobi Ethiopia:Addis_Ababa Ghana:Accra "
    "Senegal:Dakar Morocco:Rabat Tunisia:Tunis Algeria:Algiers Libya:Tripoli Uganda:Kampala "
    "Zambia:Lusaka Angola:Luanda Japan:Tokyo China:Beijing Mongolia:Ulaanbaatar "
    "India:New_Delhi Nepal:Kathmandu Thailand:Bangkok Vietnam:Hanoi Cambodia:Phnom_Penh "
    "Iran:Tehran Iraq:Baghdad Jordan:Amman Lebanon:Beirut Qatar:Doha Oman:Muscat "
    "Canada:Ottawa Mexico:Mexico_City Cuba:Havana Jamaica:Kingston Peru:Lima Chile:Santiago "
    "Colombia:Bogotá Ecuador:Quito Uruguay:Montevideo Paraguay:Asunción "
    "Argentina:Buenos_Aires Brazil:Brasília Venezuela:Caracas Australia:Canberra "
    "Cyprus:Nicosia Georgia:Tbilisi Armenia:Yerevan"
)
_SYMBOLS = _pairs(
    "hydrogen:H helium:He lithium:Li beryllium:Be boron:B carbon:C nitrogen:N oxygen:O "
    "fluorine:F neon:Ne sodium:Na magnesium:Mg aluminium:Al silicon:Si phosphorus:P sulphur:S "
    "chlorine:Cl argon:Ar potassium:K calcium:Ca titanium:Ti chromium:Cr manganese:Mn iron:Fe "
    "cobalt:Co nickel:Ni copper:Cu zinc:Zn bromine:Br silver:Ag tin:Sn iodine:I tungsten:W "
    "platinum:Pt gold:Au mercury:Hg lead:Pb uranium:U"
)
_OPPOSITES = _pairs(
    "ancient:modern arrive:depart ascend:descend bold:timid bright:dim broad:narrow "
    "cheap:expensive deep:shallow dry:wet early:late empty:full expand:contract fast:slow "
    "generous:stingy guilty:innocent heavy:light include:exclude increase:decrease loud:quiet "
    "maximum:minimum noisy:silent praise:blame public:private rare:common rigid:flexible "
    "rough:smooth scarce:abundant sharp:blunt sweet:sour temporary:permanent tight:loose "
    "transparent:opaque vertical:horizontal victory:defeat wealthy:poor"
)
_KINDS = {
    "a bird": "sparrow robin eagle owl heron finch swan crow stork falcon gull pigeon",
    "a fish": "salmon trout cod herring tuna carp pike eel perch mackerel sardine halibut",
    "a fruit": "apple pear plum cherry peach mango banana lemon apricot papaya grape fig",
    "a metal": "iron copper zinc tin nickel silver gold lead cobalt titanium chromium platinum",
    "a musical instrument": "violin flute cello trumpet harp oboe piano guitar clarinet drum tuba "
    "bassoon",
    "a tool": "hammer saw chisel wrench drill pliers screwdriver file spade axe sickle anvil",
    "a tree": "oak birch pine maple willow elm beech spruce larch poplar cedar ash",
    "a vehicle": "car bicycle lorry tram bus tractor ferry motorcycle van scooter train canoe",
    "a piece of clothing": "shirt trousers jacket scarf glove sock skirt hat coat jumper vest "
    "apron",
}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def capital(rng: np.random.Generator, count: int) -> Question:
    """Return which city is a country's capital."""
    return _from_table(rng, count, _CAPITALS, "What is the capital of {}?")


def symbol(rng: np.random.Generator, count: int) -> Question:
    """Return what the symbol of a chemical element is."""
    return _from_table(rng, count, _SYMBOLS, "What is the chemical symbol of {}?")


def opposite(rng: np.random.Generator, count: int) -> Question:
    """Return which word is the opposite of another."""
    return _from_table(rng, count, _OPPOSITES, 'Which word is the opposite of "{}"?')


def kind(rng: np.random.Generator, count: int) -> Question:
    """Return which word names a thing of a kind, among words that do not."""
    name = _one(rng, list(_KINDS))
    others = [word for other, words in _KINDS.items() if other != name for word in words.split()]
    right = _one(rng, _KINDS[name].split())
    return f"Which of these is {name}?", [right, *_some(rng, others, count - 1)]


def odd_one_out(rng: np.random.Generator, count: int) -> Question:
    """Return which word does not belong to the others."""
    name, other = _some(rng, list(_KINDS), 2)
    odd = _one(rng, _KINDS[other].split())
    rest = _some(rng, _KINDS[name].split(), count - 1)
    return "Which word names another kind of thing than all the others?", [odd, *rest]


def weekday(rng: np.random.Generator, count: int) -> Question:
    """Return which day follows another by some days; at most seven choices."""
    start, days = int(rng.integers(7)), int(rng.integers(8, 400))
    right = _DAYS[(start + days) % 7]
    others = _some(rng, [day for day in _DAYS if day != right], min(count, 7) - 1)
    return f"Today is {_DAYS[start]}. Which day will it be in {days} days?", [right, *others]


def product(rng: np.random.Generator, count: int) -> Question:
    """Return which number is a product, among numbers near it."""
    one, other = int(rng.integers(12, 99)), int(rng.integers(12, 99))
    near = [delta for delta in range(-30, 31) if delta != 0]
    others = [str(one * other + delta) for delta in _some(rng, near, count - 1)]
    return f"What is {one} * {other}?", [str(one * other), *others]


def largest_fraction(rng: np.random.Generator, count: int) -> Question:
    """Return which of several fractions is the largest."""
    values: dict[Fraction, str] = {}
    while len(values) < count:
        top, bottom = int(rng.integers(1, 20)), int(rng.integers(2, 21))
        values.setdefault(Fraction(top, bottom), f"{top}/{bottom}")
    right = max(values)
    return "Which of these fractions is the largest?", [
        values.pop(right),
        *values.values(),
    ]


def prime(rng: np.random.Generator, count: int) -> Question:
    """Return which number is a prime, among odd numbers that are not."""
    numbers = range(51, 500, 2)
    primes = [n for n in numbers if all(n % d for d in range(3, 23, 2) if d < n)]
    composites = [n for n in numbers if n not in set(primes)]
    chosen = [_one(rng, primes), *_some(rng, composites, count - 1)]
    return "Which of these numbers is a prime?", [str(number) for number in chosen]


Family = Callable[[np.random.Generator, int], Question]

FAMILIES: Mapping[str, Family] = {
    family.__name__: family
    for family in (
        *(capital, symbol, opposite, kind, odd_one_out),
        *(weekday, product, largest_fraction, prime),
    )
}
"""The families by name."""


def _from_table(
    rng: np.random.Generator, count: int, table: Mapping[str, str], question: str
) -> Question:
    key, *others = _some(rng, list(table), count)
    words = [table[name].replace("_", " ") for name in (key, *others)]
    return question.format(key), words


def _one(rng: np.random.Generator, items: Sequence[Any]) -> Any:
    return items[int(rng.integers(len(items)))]


def _some(rng: np.random.Generator, items: Sequence[Any], count: int) -> list[Any]:
    return [items[int(i)] for i in rng.choice(len(items), size=count, replace=False)]
