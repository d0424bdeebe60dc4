"""Things and what is true of them: the table behind TwentyQuestions-v0."""

import re

_ATTRIBUTES = """
alive: is alive
animal: is an animal
plant: is a plant
made: is made by people
big: is bigger than a person
small: fits in one hand
eat: is something people eat
fly: can fly
swim: lives or moves in water
legs4: has four legs
wheels: has wheels
metal: is made mostly of metal
electric: needs electricity
indoors: is usually kept indoors
farm: is found on a farm
fur: has fur
wings: has wings
danger: is dangerous to people
carry: carries people
sound: makes a sound
sweet: tastes sweet
green: is mostly green
round: is round
sharp: has a sharp edge or point
read: has writing or pictures on it
worn: is worn on the body
open: can be opened and closed
music: is used to make music
"""

_THINGS = """
aeroplane: made big wheels metal carry sound fly wings open
ant: alive animal small
apple: plant small eat sweet round farm
ball: made round
banana: plant small eat sweet
bat: alive animal small fly fur wings sound
bee: alive animal small fly wings danger sound sharp farm
bell: made metal sound round music
bicycle: made wheels metal carry
boat: made big swim carry
book: made indoors read open
bread: made eat
bus: made big wheels metal carry sound danger open read
butterfly: alive animal small fly wings
cactus: alive plant green sharp indoors
cake: made eat sweet round
car: made big wheels metal carry sound danger open
carrot: plant small eat farm sweet
cat: alive animal legs4 indoors fur sound sharp
chair: made indoors legs4
cheese: made eat farm
chicken: alive animal farm wings sound eat
clock: made indoors read round sound
coat: made worn open
coin: made metal small round read
cow: alive animal big legs4 farm fur sound eat
crocodile: alive animal big legs4 swim green danger sharp
cup: made indoors small
dog: alive animal legs4 indoors fur sound
door: made indoors big open
drum: made indoors sound music round
duck: alive animal farm fly swim wings sound eat
eagle: alive animal fly wings sound sharp danger
egg: small eat farm round
elephant: alive animal big legs4 danger sound carry
fire: danger
flute: made metal indoors small sound music
frog: alive animal small legs4 swim green sound
glasses: made worn indoors open
goldfish: alive animal small swim indoors
grass: alive plant green farm
guitar: made indoors sound music
hammer: made metal danger indoors
honey: eat sweet farm
horse: alive animal big legs4 farm fur carry sound
house: made big open
key: made metal small
kite: made fly
knife: made metal danger indoors sharp
lamp: made electric indoors
lettuce: plant eat farm green
lion: alive animal big legs4 fur danger sound sharp
moon: big round
mouse: alive animal small legs4 fur sound
needle: made metal indoors small sharp
newspaper: made read open
oak tree: alive plant big green
orange: plant small eat sweet round
owl: alive animal fly wings sound sharp
parrot: alive animal fly wings sound indoors green
pencil: made indoors small sharp
penguin: alive animal swim wings sound
piano: made indoors sound music big open
pig: alive animal legs4 farm sound eat
polar bear: alive animal big legs4 fur danger sound sharp swim
potato: plant small eat farm
rabbit: alive animal legs4 farm fur eat
refrigerator: made electric indoors big metal open sound
ring: made worn metal small round
river: big swim danger sound
rocket: made big metal carry sound fly danger sharp
rose: alive plant small sharp
salmon: alive animal swim eat
scissors: made metal indoors sharp open small
shark: alive animal big swim danger sharp
sheep: alive animal legs4 farm fur sound eat
shoe: made worn
skateboard: made wheels carry
snake: alive animal danger sharp
snow:
sock: made worn small
spider: alive animal small indoors
spoon: made metal indoors small
stone: small
sunflower: alive plant farm round
table: made indoors legs4 big
telephone: made electric indoors sound read small
television: made electric indoors sound read
tractor: made big wheels metal carry sound farm danger
train: made big wheels metal carry sound danger open electric
turtle: alive animal legs4 swim green round
umbrella: made open sharp
watermelon: plant eat sweet round green
whale: alive animal big swim sound
window: made indoors open
"""

_FILLERS = frozenset(
    ["it", "is", "are", "does", "do", "can", "has", "have", "a", "an", "the", "be"]
)


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = (line.partition(":") for line in text.strip().splitlines())
    return [(name, rest.strip()) for name, _, rest in parts]


_WORDS_OF_KEY = dict(_pairs(_ATTRIBUTES))
ATTRIBUTES = tuple(_WORDS_OF_KEY.values())
"""What can be asked, as the rest of a sentence that begins with "it"."""

THINGS = {
    name: frozenset(_WORDS_OF_KEY[key] for key in keys.split()) for name, keys in _pairs(_THINGS)
}
"""Attributes of each thing; no two things have the same."""


def content_words(text: str) -> tuple[str, ...]:
    """Return the words of a question or a name without fillers: "Can it fly?" gives ("fly",)."""
    words = re.findall(r"[a-z]+", text[:200].lower())
    return tuple(word for word in words if word not in _FILLERS)


_ATTRIBUTE_OF_WORDS = {content_words(words): words for words in ATTRIBUTES}
_THING_OF_WORDS = {content_words(name): name for name in THINGS}


def find_attribute(text: str) -> str:
    """Return the attribute that a question asks about, in its own words; empty where none is."""
    return _ATTRIBUTE_OF_WORDS.get(content_words(text), "")


def find_thing(text: str) -> str:
    """Return the thing that a text names; the empty text where it names none."""
    return _THING_OF_WORDS.get(content_words(text), "")


def has_attribute(thing: str, attribute: str) -> bool:
    """Return whether an attribute of ``ATTRIBUTES`` is true of a thing of ``THINGS``."""
    return attribute in THINGS[thing]
