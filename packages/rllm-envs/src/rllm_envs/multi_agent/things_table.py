"""Fifty things and what is true of them, for guessing games of two agents."""

THINGS = (
    *("cat", "dog", "horse", "cow", "eagle", "owl", "penguin", "duck", "shark", "salmon"),
    *("whale", "frog", "snake", "bee", "spider", "oak", "rose", "grass", "apple", "banana"),
    *("carrot", "bread", "cheese", "car", "bicycle", "train", "aeroplane", "ship", "chair"),
    *("table", "bed", "lamp", "book", "pencil", "hammer", "knife", "spoon", "telephone"),
    *("computer", "clock", "piano", "guitar", "drum", "ball", "shoe", "shirt", "hat", "house"),
    *("bridge", "mountain"),
)
"""Names of the things."""

_ANIMALS = "cat dog horse cow eagle owl penguin duck shark salmon whale frog snake bee spider"

QUESTIONS: dict[str, frozenset[str]] = {
    question: frozenset(names.split())
    for question, names in (
        ("Is it an animal?", _ANIMALS),
        ("Is it a plant or part of one?", "oak rose grass apple banana carrot"),
        ("Is it a mammal?", "cat dog horse cow whale"),
        ("Does it have feathers?", "eagle owl penguin duck"),
        ("Does it have fins?", "shark salmon whale"),
        ("Can it fly?", "eagle owl duck bee aeroplane"),
        ("Does it live in water or travel on it?", "penguin duck shark salmon whale frog ship"),
        ("Does it have four legs?", "cat dog horse cow frog chair table bed"),
        ("Is it kept as a pet at home?", "cat dog"),
        ("Does it bark?", "dog"),
        ("Do people ride on its back?", "horse"),
        ("Is it active at night?", "owl"),
        ("Does it make honey?", "bee"),
        ("Does it spin webs?", "spider"),
        ("Is it food?", "apple banana carrot bread cheese salmon"),
        ("Does it grow on trees?", "apple banana"),
        ("Is it usually yellow?", "banana cheese"),
        ("Does it have thorns?", "rose"),
        ("Is it bigger than a person?",
         "horse cow shark whale oak car train aeroplane ship bed piano house bridge mountain"),
        ("Does it carry people from place to place?", "horse car bicycle train aeroplane ship"),
        ("Does it have wheels?", "car bicycle train aeroplane"),
        ("Does it run on rails?", "train"),
        ("Does it have pedals?", "bicycle piano"),
        ("Is it furniture?", "chair table bed lamp"),
        ("Do people sit or lie on it?", "chair bed"),
        ("Do people sleep in it?", "bed house"),
        ("Does it use electricity?", "lamp telephone computer clock train"),
        ("Can it be used to talk to people far away?", "telephone computer"),
        ("Does it have a keyboard?", "computer piano"),
        ("Does it show the time?", "clock telephone computer"),
        ("Is it made to make music?", "piano guitar drum"),
        ("Does it have strings?", "piano guitar"),
        ("Do people wear it?", "shoe shirt hat"),
        ("Is it worn on the feet?", "shoe"),
        ("Is it worn on the head?", "hat"),
        ("Is it used at meals?", "knife spoon table chair"),
        ("Can it cut?", "knife"),
        ("Is it used to drive in nails?", "hammer"),
        ("Is it made of metal, at least in part?",
         "car bicycle train aeroplane ship hammer knife spoon bridge"),
        ("Is it used for reading or writing?", "book pencil computer"),
        ("Does it have pages?", "book"),
        ("Is it used in sports?", "ball bicycle"),
        ("Was it made by people?",
         "bread cheese car bicycle train aeroplane ship chair table bed lamp book pencil hammer "
         "knife spoon telephone computer clock piano guitar drum ball shoe shirt hat house bridge"),
        ("Is it made of milk?", "cheese"),
        ("Is it a tree?", "oak"),
        ("Does it live in cold lands?", "penguin"),
    )
}  # fmt: skip
"""For each question the things of which it is true."""


def best_question(candidates: list[str]) -> str:
    """Return the question that splits the candidates most evenly, the first one of equals."""
    return min(
        QUESTIONS,
        key=lambda question: abs(
            2 * sum(thing in QUESTIONS[question] for thing in candidates) - len(candidates)
        ),
    )
