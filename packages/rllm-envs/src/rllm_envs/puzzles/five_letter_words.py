"""Common English words of five letters, the hidden words of Wordle-v0."""

_TEXT = """
about above abuse actor acute admit adopt adult after again agent agree ahead alarm album alert
alien alike alive allow alone along alter amber amend among ample angel anger angle angry ankle
apart apple apply arena argue arise armor array arrow ashes aside asset atlas attic audio audit
avoid awake award aware awful bacon badge badly baker basic basin basis batch beach beard beast
began begin being belly below bench berry birth black blade blame blank blast blaze bleak blend
bless blind block blood bloom blown blues blunt blush board boast bonus boost booth bored bound
bowel brain brake brand brave bread break breed brick bride brief bring brink broad broke brook
broom broth brown brush build built bunch burst buyer cabin cable camel canal candy canoe cargo
carol carry carve catch cause cedar chain chair chalk charm chart chase cheap cheat check cheek
cheer chess chest chief child chili chill china choir chord chose chunk cider cigar civic civil
claim clash class clean clear clerk click cliff climb cling cloak clock close cloth cloud clown
coach coast cocoa color comet comic comma coral couch cough could count court cover crack craft
crane crash crawl crazy cream creek creep crest crime crisp cross crowd crown crude cruel crush
crust curly curve cycle daily dairy daisy dance dealt death debut decay delay dense depth devil
diary diner dirty dodge donor doubt dough dozen draft drain drama drank drawn dread dream dress
dried drift drill drink drive drove drown dusty eager eagle early earth easel eight elbow elder
elect elite empty enemy enjoy enter entry equal equip error essay event every exact exert exile
exist extra fable faint fairy faith false fancy fatal fault favor feast fence ferry fetch fever
fewer fiber field fiery fifth fifty fight final first flame flash fleet flesh float flock flood
floor flour fluid flute focus force forge forth forty forum found frame frank fraud fresh front
frost frown fruit fully funny gamma ghost giant given glare glass globe gloom glory glove going
grace grade grain grand grant grape graph grasp grass grave gravy great greed green greet grief
grill grind groan groom group grove growl grown guard guess guest guide guilt habit happy harsh
haste haunt hazel heart heavy hedge hello hence hinge hobby honey honor horse hotel hound house
hover human humor hurry ideal image imply index inner input irony issue ivory jelly jewel joint
joker judge juice jumbo kayak kneel knife knock known label labor large laser later laugh layer
learn lease least leave legal lemon level lever light lilac limit linen liver local lodge lofty
logic loose lover lower loyal lucky lunar lunch magic major maker mango maple march marry match
maybe mayor medal media melon mercy merge merit merry metal meter might minor minus mixed model
moist money month moral motor mound mount mouse mouth movie muddy music naval nerve never night
noble noise north notch novel nurse nylon ocean offer often olive onion opera orbit order organ
other ought ounce outer owner paint panel panic paper party pasta patch pause peace peach pearl
pedal penny perch phase phone photo piano piece pilot pinch pitch pizza place plain plane plank
plant plate plaza plead pluck plumb point polar porch pound power press price pride prime print
prior prize probe proof proud prove prune pulse punch pupil puppy purse queen query quest queue
quick quiet quilt quite quota quote radar radio rainy raise rally ranch range rapid ratio raven
razor reach react ready realm rebel refer reign relax relay remit reply rider ridge rifle right
rigid rinse risen risky rival river roast robin robot rocky rough round route royal rugby ruler
rural sadly saint salad sauce sauna scale scare scarf scene scent scold scope score scout scrap
seize sense serve seven shade shaft shake shall shame shape share shark sharp sheep sheet shelf
shell shine shiny shirt shock shore short shout shown sight silly since sixth sixty skill skirt
skull slate sleep slice slide slope small smart smell smile smoke snack snake sneak solar solid
solve sorry sound south space spare spark speak spear speed spell spend spice spicy spine spoil
spoke spoon sport spray squad stack staff stage stain stair stake stamp stand stare start state
steak steal steam steel steep steer stern stick still sting stock stole stone stood stool store
storm story stove straw strip stuck study stuff style sugar suite sunny super surge swamp swear
sweat sweep sweet swell swift swing sword table taken taste teach tempo tenth thank theft their
theme there these thick thief thing think third thorn those three threw throw thumb tiger tight
timer tired title toast today token tooth topic torch total touch tough towel tower toxic trace
track trade trail train trait treat trend trial tribe trick tried troop truck truly trunk trust
truth tulip tutor twice twist ultra uncle under union unite unity until upper upset urban usage
usual valid value vapor vault venue verse video vigor villa virus visit vital vivid vocal voice
voter wages wagon waist waste watch water weary weigh weird whale wheat wheel where which while
whole widow width woman world worry worth would wound woven wrist write wrong yacht yeast yield
young youth zebra
"""

FIVE_LETTER_WORDS = tuple(_TEXT.split())
"""Different words in lower case, in alphabetical order."""
