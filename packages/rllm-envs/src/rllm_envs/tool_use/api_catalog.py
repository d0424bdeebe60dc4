"""Generated functions of invented services, requests in words, and the calls that they mean."""

from dataclasses import dataclass
from typing import Any

from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.functions import Call, Function, Parameter

NAMES = ("Ada Berg", "Ben Cole", "Carla Diaz", "Dev Patel", "Emma Fox", "Finn Gray", "Gus Holm")
CITIES = ("Oslo", "Lyon", "Porto", "Ghent", "Turin", "Leeds", "Graz", "Brno")
TITLES = ("Blue Hour", "Long Road", "Quiet Storm", "First Light", "Old Harbour", "Red Kite")
TOPICS = ("budget", "hiring", "roadmap", "safety", "training", "launch", "audit")


@dataclass(frozen=True, slots=True)
class Attribute:
    """One property of a thing."""

    aliases: tuple[str, ...]
    """Names that the argument may have, in snake case."""
    values: tuple[Any, ...]
    """Texts, or lowest and highest integer."""
    phrase: str
    """How a request states it; {} is the value."""
    is_enum: bool = False
    """Whether the schema lists the values."""
    default: Any = None
    """Value where a request does not state it; None where it always does."""

    @property
    def kind(self) -> str:
        """JSON type."""
        return "integer" if isinstance(self.values[0], int) else "string"

    def draw(self, draws: Draws) -> Any:
        """Return a random value other than the default."""
        if self.kind == "integer":
            value: Any = draws.between(*self.values)
        else:
            value = draws.pick(self.values)
        return self.draw(draws) if value == self.default else value


@dataclass(frozen=True, slots=True)
class Thing:
    """What the functions of a service are about."""

    name: str
    """Singular, in snake case."""
    code: str
    """Letters of its identifiers, such as INV for INV-204."""
    attributes: tuple[Attribute, ...]
    """Its properties; the first one is what it can be listed by."""


def _a(aliases: str, values: tuple[Any, ...], phrase: str, **options: Any) -> Attribute:
    return Attribute(tuple(aliases.split()), values, phrase, **options)


THINGS = (
    Thing("invoice", "INV", (
        _a("customer customer_name client", NAMES, "for the customer {}"),
        _a("amount total amount_eur", (10, 5000), "over {} euros"),
        _a("due_days days_until_due", (5, 90), "due in {} days", default=30))),
    Thing("meeting", "MT", (
        _a("topic subject", TOPICS, "about the topic {}"),
        _a("organizer host", NAMES, "organized by {}"),
        _a("duration_minutes length_in_minutes", (10, 120), "{} minutes long", default=30))),
    Thing("flight", "FL", (
        _a("origin from_city departure_city", CITIES, "from {}"),
        _a("passenger traveller", NAMES, "for the passenger {}"),
        _a("cabin travel_class", ("economy", "business", "first"), "in {} class", is_enum=True,
           default="economy"))),
    Thing("ticket", "TK", (
        _a("assignee owner", NAMES, "assigned to {}"),
        _a("priority severity", ("low", "normal", "high", "urgent"), "with {} priority",
           is_enum=True, default="normal"),
        _a("category area", ("network", "printer", "login", "email"), "in the category {}",
           is_enum=True))),
    Thing("parcel", "PC", (
        _a("destination to_city", CITIES, "to {}"),
        _a("weight_grams grams", (50, 20_000), "weighing {} grams"),
        _a("service delivery", ("standard", "express", "overnight"), "by {} delivery",
           is_enum=True, default="standard"))),
    Thing("playlist", "PL", (
        _a("title name", TITLES, "called {}"),
        _a("mood genre", ("calm", "happy", "sad", "loud"), "with a {} mood", is_enum=True),
        _a("max_tracks track_limit", (5, 200), "of at most {} tracks", default=50))),
    Thing("reservation", "RS", (
        _a("restaurant place", TITLES, "at the restaurant {}"),
        _a("guests party_size", (1, 12), "for {} guests"),
        _a("guest_name booked_by", NAMES, "under the name {}"))),
    Thing("sensor", "SN", (
        _a("city location", CITIES, "in {}"),
        _a("quantity measures", ("temperature", "humidity", "pressure", "wind"), "for {}",
           is_enum=True),
        _a("interval_seconds every_seconds", (10, 3600), "read every {} seconds", default=60))),
    Thing("course", "CR", (
        _a("teacher instructor", NAMES, "taught by {}"),
        _a("subject field", ("algebra", "botany", "drawing", "physics"), "on {}", is_enum=True),
        _a("seats capacity", (5, 300), "with {} seats"))),
    Thing("payment", "PM", (
        _a("recipient payee", NAMES, "to {}"),
        _a("amount_cents cents", (100, 90_000), "of {} cents"),
        _a("account source_account", ("checking", "savings", "business"), "from the {} account",
           is_enum=True, default="checking"))),
)  # fmt: skip
VERBS = {
    "create": (("create", "add", "make"), "Make a new {}."),
    "delete": (("delete", "remove", "cancel"), "Delete a {} for good."),
    "update": (("update", "change", "edit"), "Change one property of a {}."),
    "list": (("list", "search", "find"), "List all objects of type {} that have a property."),
}
"""What can be done with a thing: names of the function, and its description."""


@dataclass(frozen=True, slots=True)
class Service:
    """One function with what is needed to draw requests for it."""

    thing: Thing
    """What it is about."""
    verb: str
    """Key of ``VERBS``."""
    function: Function
    """Name and arguments, with the aliases chosen."""
    attributes: tuple[Attribute, ...]
    """Attributes in the order of the arguments (without the identifier)."""


def random_services(draws: Draws, count: int) -> list[Service]:
    """Return ``count`` different functions, at most 40; several are about the same things."""
    is_camel = draws.random() < 0.3
    pairs: list[tuple[Thing, str]] = []
    for thing in draws.shuffled(THINGS):
        pairs += [(thing, verb) for verb in draws.shuffled(tuple(VERBS))]
    return [_service(draws, thing, verb, is_camel) for thing, verb in pairs[:count]]


def _service(draws: Draws, thing: Thing, verb: str, is_camel: bool) -> Service:
    attributes = thing.attributes
    if verb == "update":
        attributes = (draws.pick(thing.attributes[1:]),)
    elif verb in ("list", "delete"):
        attributes = thing.attributes[:1] if verb == "list" else ()
    parameters = []
    if verb in ("update", "delete"):
        parameters.append(Parameter(f"{thing.name}_id", "string", "Identifier, such as AB-123."))
    for attribute in attributes:
        words = draws.pick(attribute.aliases)
        default = attribute.default if verb == "create" else None
        choices = attribute.values if attribute.is_enum else ()
        description = words.replace("_", " ").capitalize() + f" of the {thing.name}."
        parameters.append(Parameter(words, attribute.kind, description, choices, default))
    names, description = VERBS[verb]
    name = f"{draws.pick(names)}_{thing.name}" + ("s" if verb == "list" else "")
    if verb == "update":
        description = f"Change the {parameters[-1].name.replace('_', ' ')} of a {{}}."
    if is_camel:
        name = _camel(name)
        parameters = [
            Parameter(_camel(p.name), p.kind, p.description, p.choices, p.default)
            for p in parameters
        ]
    text = description.format(thing.name)
    return Service(thing, verb, Function(name, text, tuple(parameters)), attributes)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def random_request(draws: Draws, service: Service) -> tuple[str, Call]:
    """Return a request in words for a function, and the call that it means."""
    arguments: dict[str, Any] = {}
    phrases = []
    parameters = list(service.function.parameters)
    if service.verb in ("update", "delete"):
        identifier = f"{service.thing.code}-{draws.between(100, 999)}"
        arguments[parameters.pop(0).name] = identifier
        phrases.append(identifier)
    for parameter, attribute in zip(parameters, service.attributes, strict=True):
        if parameter.default is not None and draws.random() < 0.5:
            continue
        value = attribute.draw(draws)
        arguments[parameter.name] = value
        phrases.append(attribute.phrase.format(value))
    name = service.thing.name
    if service.verb == "create":
        words = f"{draws.pick(('Create', 'Set up', 'Add'))} a new {name} {', '.join(phrases)}."
    elif service.verb == "delete":
        words = f"{draws.pick(('Delete', 'Get rid of', 'Remove'))} the {name} {phrases[0]}."
    elif service.verb == "update":
        words = f"Change the {name} {phrases[0]}: it should be {phrases[1]}."
    else:
        words = f"{draws.pick(('Show me', 'List', 'Find'))} all {name}s {phrases[0]}."
    return words, Call(service.function.name, arguments)
