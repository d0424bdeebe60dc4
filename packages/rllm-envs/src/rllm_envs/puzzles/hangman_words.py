"""Common English words of six to eleven letters, the hidden words of Hangman-v0."""

_TEXT = """
absence academy account achieve address advance adventure airplane airport alphabet ambition
ancient animal apartment apology appetite apricot archive artist athlete attempt attract author
autumn avalanche average avocado balance balcony balloon bamboo banana bandage banquet bargain
barrier basement basket battery beaver bedroom believe benefit bicycle biscuit blanket blossom
bottle boulder bracelet branch breakfast breeze bridge bright brother bubble bucket budget buffalo
builder burden butter butterfly button cabbage cabinet calendar camera campaign canyon captain
caramel carbon cardigan carpet carriage carrot cartoon castle cathedral cattle caution ceiling
celery cement century cereal certain chamber champion channel chapter charity cherry chicken
chimney chocolate choice circle circus citizen classic climate clothes cluster coastal coconut
coffee collect college colony column combine comfort command compass complete concert condition
confirm connect consider contest copper corner cottage cotton council country courage cousin
cracker crayon creature cricket crocodile crystal cucumber culture cupboard curious current curtain
cushion customer cylinder danger daughter daylight decade decision defend delight deliver dentist
deposit desert designer dessert destroy detail develop diamond dictionary dinner dinosaur direction
discover distance divide doctor dolphin donkey double dragon drawer driver drought dungeon eclipse
economy education effort elephant elevator embrace emerald emotion empire engine enormous envelope
equator escape evening evidence examine example exchange excuse exercise exhibit expert explain
explore express fabric factory failure familiar famous fantasy farmer fashion feather feature
festival fiction figure finger fireplace firework fisherman flavour flight flower folder forest
forever forget fortune fossil fountain fragile freedom freezer friend frozen furnace furniture
future galaxy gallery garage garden garlic gather general gentle geography giraffe glacier glimpse
goggles golden gorilla gossip grammar grandmother grateful gravity grocery ground guitar habitat
hammer hamster handle harbour harvest hazard healthy heather heaven hedgehog helicopter helmet
heritage history holiday horizon hospital hotdog hunger hunter husband iceberg imagine improve
include increase industry injury insect inspect instead instrument insult interest invent invite
island jacket jaguar jealous jewelry journal journey judgment juggle jungle junior justice kangaroo
ketchup kettle keyboard kingdom kitchen kitten knight knowledge laboratory ladder language lantern
laundry lawyer leader leather lecture legend leopard lesson letter lettuce liberty library
lightning limestone liquid listen lizard lobster location locker logical lonely luggage lumber
machine magazine magnet majority mammal manager mansion marble margin market marriage master
mattress meadow measure medicine melody member memory mention merchant message method middle
midnight migrate million mineral minister minute miracle mirror missile mission mistake mixture
modern moment monkey monster monument morning mosquito mother mountain multiply muscle museum
mushroom musician mystery narrow nation nature needle neighbour nephew neutral newspaper nightmare
nothing notice number object observe obvious october octopus office official operate opinion orange
orchard orchestra ordinary organize origin ostrich outside oxygen package painter palace pancake
panther parade parcel parent parrot partner passage passenger passport pasture patient pattern
payment peanut pebble pelican pencil penguin pepper perfect perform perfume permit person petrol
phrase picnic picture pigeon pillow pirate planet plastic platform playground pleasure pocket
poison policy polite population portrait possible potato poverty powder practice predict prepare
present prevent princess prison private problem produce profit program project promise protect
provide pumpkin puppet purple purpose puzzle pyramid quality quantity quarter question rabbit
raccoon railway rainbow random raspberry reason rebuild receipt recipe record recover referee
reflect refuse region regret related release remain remember remove repair repeat replace report
request rescue research reserve respect restaurant result retire return reveal reward rhythm ribbon
rocket romance rotten routine rubber runner saddle safety sailor salmon sample sandwich satellite
saucer sausage scatter scholar science scissors scratch sculpture season second secret section
seldom selfish senior sentence serious servant service session shadow shampoo shelter sheriff
shiver shoulder shovel shower signal silence silver similar simple single sister skeleton sketch
slipper smooth snowflake soccer society soldier solution somebody southern special spider spinach
spirit splash sponge squeeze squirrel stadium standard station statue steady stomach storage
stranger stream street strength stretch strike string strong student studio stupid subject
submarine success sudden suggest summer sunlight sunrise sunset support surface surgeon surprise
survive sweater swimmer symbol sympathy system tailor talent target teacher telescope temple tennis
terrible textbook theatre thermometer thought thousand thread thunder ticket timber tissue tobacco
together tomato tomorrow tongue tornado tourist tractor traffic tragedy trailer transfer transport
travel treasure triangle tribute tricycle trouble trousers trumpet tunnel turkey turtle twelve
twenty typical umbrella unicorn uniform universe unknown useful vacation vaccine valley vanilla
variety vegetable vehicle velvet victim victory village vinegar violet violin visible visitor
vitamin volcano volume volunteer voyage waiter walnut walrus warning warrior wealth weapon weather
website wedding weekend welcome western whisper whistle widespread window winner winter wisdom
witness wizard wonder wooden worker workshop writer yellow yesterday yogurt zipper
"""

HANGMAN_WORDS = tuple(_TEXT.split())
"""Different words in lower case, in alphabetical order."""
