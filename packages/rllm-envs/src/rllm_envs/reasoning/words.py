"""Names and words that reasoning tasks are made of."""

NAMES = (
    *("Ana", "Ben", "Chloe", "Dan", "Eva", "Finn", "Gita", "Hugo", "Ines", "Jon", "Kira", "Leo"),
    *("Mara", "Nils", "Olga", "Paul", "Quinn", "Rosa", "Sam", "Tara", "Uma", "Vera", "Will", "Zoe"),
)
"""First names, each with a different initial."""

WOMEN = (
    *("Ada", "Bella", "Clara", "Dora", "Emma", "Fiona", "Grace", "Helen", "Iris", "Julia", "Karen"),
    *("Lucy", "Maria", "Nora", "Olivia", "Petra", "Rita", "Sofia", "Tina", "Ursula", "Wilma"),
)
"""First names of women."""

MEN = (
    *("Adam", "Boris", "Carl", "David", "Erik", "Felix", "George", "Henry", "Ivan", "James"),
    *("Kevin", "Lukas", "Mark", "Noah", "Oscar", "Peter", "Ralph", "Simon", "Tom", "Victor"),
)
"""First names of men."""

THINGS = (
    *("apple", "ball", "book", "candle", "coin", "cup", "drum", "feather", "flute", "hat", "key"),
    *("kite", "lamp", "map", "mirror", "pen", "ring", "rope", "scarf", "shell", "spoon", "stone"),
    *("ticket", "torch", "umbrella", "vase", "watch", "whistle"),
)
"""Things that one can hold, none the plural or a part of another."""

WORDS = (
    *("abandon", "academy", "account", "address", "adventure", "alphabet", "amazing", "ancient"),
    *("animal", "apple", "arrow", "autumn", "balance", "balloon", "banana", "barrel", "basket"),
    *("battery", "bicycle", "blanket", "blossom", "bottle", "bridge", "bubble", "butter"),
    *("butterfly", "cabbage", "camera", "candle", "carpet", "carriage", "castle", "ceiling"),
    *("cheese", "cherry", "chocolate", "circle", "coffee", "committee", "compass", "copper"),
    *("cotton", "cricket", "crystal", "curtain", "daughter", "desert", "diamond", "dinner"),
    *("dolphin", "donkey", "dragon", "drawer", "eagle", "elephant", "engine", "envelope"),
    *("evening", "expression", "feather", "finger", "flower", "forest", "fountain", "freedom"),
    *("garden", "garlic", "giraffe", "glacier", "grammar", "grass", "guitar", "hammer", "harbour"),
    *("harvest", "helmet", "holiday", "honey", "horizon", "hospital", "hurricane", "iceberg"),
    *("illness", "insect", "island", "jacket", "jewel", "jungle", "kettle", "keyboard", "kingdom"),
    *("kitchen", "kitten", "ladder", "lantern", "lemon", "lesson", "letter", "library", "lizard"),
    *("machine", "magnet", "market", "marriage", "meadow", "medicine", "message", "mirror"),
    *("mississippi", "monkey", "mountain", "muffin", "museum", "necessary", "needle", "network"),
    *("nothing", "number", "ocean", "october", "office", "orange", "orchard", "oxygen", "paddle"),
    *("palace", "panther", "parallel", "parrot", "pattern", "pebble", "pencil", "pepper"),
    *("pepperoni", "piano", "picture", "pillow", "pirate", "planet", "pocket", "possession"),
    *("potato", "pressure", "pumpkin", "puzzle", "pyramid", "quarter", "question", "rabbit"),
    *("railway", "raspberry", "referee", "reindeer", "ribbon", "river", "rocket", "saddle"),
    *("saffron", "sailor", "sandwich", "scissors", "season", "secret", "shadow", "shoulder"),
    *("silver", "sister", "skeleton", "slipper", "spaghetti", "spider", "sparrow", "squirrel"),
    *("station", "strawberry", "street", "success", "summer", "sunflower", "teacher", "telescope"),
    *("temple", "theatre", "thunder", "ticket", "tiger", "tobacco", "tomorrow", "traffic"),
    *("treasure", "triangle", "trumpet", "tunnel", "turtle", "umbrella", "uncle", "valley"),
    *("vanilla", "velvet", "village", "violin", "volcano", "voyage", "walnut", "weather"),
    *("whisper", "willow", "window", "winter", "wisdom", "yellow", "yesterday", "zebra", "zipper"),
)
"""English words in lower case."""
