"""Generated shops: products with options, wishes, and the pages of the shop as text."""

from typing import Any

from rllm_envs.tool_use.bm25 import Bm25
from rllm_envs.tool_use.draws import Draws

Product = dict[str, Any]
"""``name``, ``category``, ``material``, ``features``, ``price``, ``colours``, ``sizes``."""
Wish = dict[str, Any]
"""``category``, ``material``, ``feature``, ``colour``, ``size``, ``max_price``."""
WISHES = ("category", "material", "feature", "colour", "size", "max_price")
_CLOTHES = ("small", "medium", "large", "extra large")
_VOLUMES = ("half litre", "one litre", "two litres")
_LENGTHS = ("short", "regular", "long")
_WEAR = (("cotton", "wool", "linen", "silk"), _CLOTHES)
_WARE = (("steel", "glass", "ceramic", "copper"), _VOLUMES)
_HOME = (("oak", "bamboo", "metal", "plastic"), _LENGTHS)
CATEGORIES = {
    "shirt": (*_WEAR, ("slim fit", "button collar", "breast pocket", "iron free", "striped")),
    "jacket": (*_WEAR, ("hooded", "waterproof", "lined", "foldable", "inside pocket")),
    "scarf": (("cotton", "wool", "linen", "silk"), _LENGTHS,
              ("fringed", "checked", "reversible", "extra soft", "knitted")),
    "kettle": (*_WARE, ("whistling", "cordless", "quick boil", "cool handle", "drip free")),
    "bottle": (*_WARE, ("leak proof", "insulated", "wide mouth", "carry loop", "straw lid")),
    "pot": (*_WARE, ("non stick", "glass lid", "oven safe", "induction ready", "stackable")),
    "lamp": (*_HOME, ("dimmable", "battery powered", "touch switch", "swivel arm", "motion sense")),
    "desk": (*_HOME, ("height adjustable", "cable tray", "drawer", "corner shape", "on wheels")),
    "shelf": (*_HOME, ("wall mounted", "five boards", "hidden screws", "open back", "with hooks")),
    "mat": (("cork", "rubber", "jute", "foam"), _LENGTHS,
            ("anti slip", "washable", "extra thick", "rolled edge", "scented")),
}  # fmt: skip
"""Materials, sizes and features of each category."""
COLOURS = ("red", "blue", "green", "black", "white", "yellow", "grey", "orange")
_BRANDS = ("Norwood", "Kasten", "Lumo", "Brightside", "Alder", "Veloria", "Quill", "Tamsin", "Oru")
RESULTS_PER_PAGE = 6


def random_shop(draws: Draws, num_products: int) -> list[Product]:
    """Return products with different names."""
    products: dict[str, Product] = {}
    while len(products) < num_products:
        category = draws.pick(tuple(CATEGORIES))
        materials, sizes, features = CATEGORIES[category]
        own = draws.sample(features, 2)
        name = f"{draws.pick(_BRANDS)} {own[0]} {category} {draws.between(100, 999)}"
        chosen = set(draws.sample(sizes, len(sizes) - 1))
        products[name] = {
            "name": name,
            "category": category,
            "material": draws.pick(materials),
            "features": own,
            "price": draws.between(8, 200),
            "colours": sorted(draws.sample(COLOURS, 3)),
            "sizes": [size for size in sizes if size in chosen],
        }
    return list(products.values())


def random_wish(draws: Draws, products: list[Product]) -> Wish:
    """Return a wish that at least one of the products fulfils."""
    product = draws.pick(products)
    return {
        "category": product["category"],
        "material": product["material"],
        "feature": draws.pick(product["features"]),
        "colour": draws.pick(product["colours"]),
        "size": draws.pick(product["sizes"]),
        "max_price": product["price"] + draws.between(0, 20),
    }


def matches(product: Product, chosen: dict[str, str], wish: Wish) -> list[str]:
    """Return which parts of a wish a product with the chosen colour and size fulfils."""
    fulfilled = {
        "category": product["category"] == wish["category"],
        "material": product["material"] == wish["material"],
        "feature": wish["feature"] in product["features"],
        "colour": chosen.get("colour") == wish["colour"],
        "size": chosen.get("size") == wish["size"],
        "max_price": product["price"] <= wish["max_price"],
    }
    return [name for name in WISHES if fulfilled[name]]


def fitting(products: list[Product], wish: Wish) -> list[int]:
    """Return the numbers of the products that fulfil all of a wish with some choice of options."""
    return [
        number
        for number, product in enumerate(products)
        if wish["colour"] in product["colours"]
        and wish["size"] in product["sizes"]
        and len(matches(product, {"colour": wish["colour"], "size": wish["size"]}, wish)) == 6
    ]


class Shop:
    """The pages of a shop, and which one is open.

    Args:
        products: What is sold.
    """

    def __init__(self, products: list[Product]) -> None:
        self.products = products
        self.index: Bm25 | None = None
        self.page = "home"
        self.results: list[int] = []
        self.first = 0
        self.product = 0
        self.chosen: dict[str, str] = {}

    def text(self) -> str:
        """Return the open page; what can be clicked stands in square brackets."""
        if self.page == "home":
            return "Home page. Use search to find products."
        if self.page == "results":
            return self._results_page()
        product = self.products[self.product]
        if self.page == "details":
            return (
                f"Details of {product['name']}. Material: {product['material']}. Features: "
                f"{', '.join(product['features'])}.\n[back] [home]"
            )
        lines = [f"{product['name']}, {product['price']} euros."]
        for option, values in (("colour", product["colours"]), ("size", product["sizes"])):
            shown = " ".join(f"[{value}]" for value in values)
            lines.append(f"{option}: {shown} (chosen: {self.chosen.get(option, 'nothing')})")
        return "\n".join((*lines, "[details] [buy] [back] [home]"))

    def search(self, words: str) -> None:
        """Open the results for some words."""
        if self.index is None:
            self.index = Bm25(
                [" ".join((p["name"], p["material"], *p["features"])) for p in self.products]
            )
        self.results = self.index.search(words, len(self.products))
        self.page, self.first = "results", 0

    def buttons(self) -> dict[str, str]:
        """Return what can be clicked: label in lower case, and what it does."""
        if self.page == "home":
            return {}
        buttons = {"home": "home"}
        if self.page == "results":
            if self.first + RESULTS_PER_PAGE < len(self.results):
                buttons["next"] = "next"
            if self.first:
                buttons["previous"] = "previous"
            return buttons | {
                self.products[number]["name"].lower(): f"product {number}"
                for number in self.results[self.first :][:RESULTS_PER_PAGE]
            }
        buttons["back"] = "back"
        if self.page == "product":
            product = self.products[self.product]
            buttons |= {"details": "details", "buy": "buy"}
            buttons |= {value: f"colour {value}" for value in product["colours"]}
            buttons |= {value: f"size {value}" for value in product["sizes"]}
        return buttons

    def press(self, action: str) -> None:
        """Do what a button does, except "buy"."""
        verb, _, value = action.partition(" ")
        if verb == "home":
            self.page = "home"
        elif verb in ("next", "previous"):
            self.first += RESULTS_PER_PAGE if verb == "next" else -RESULTS_PER_PAGE
        elif verb == "product":
            self.page, self.product, self.chosen = "product", int(value), {}
        elif verb == "details":
            self.page = "details"
        elif verb == "back":
            self.page = "product" if self.page == "details" else "results"
        else:
            self.chosen[verb] = value

    def _results_page(self) -> str:
        if not self.results:
            return "No product has any of these words.\n[home]"
        shown = self.results[self.first :][:RESULTS_PER_PAGE]
        lines = [
            f"Results {self.first + 1} to {self.first + len(shown)} of {len(self.results)}:",
            *(
                f"[{self.products[number]['name']}] {self.products[number]['price']} euros"
                for number in shown
            ),
        ]
        buttons = [name for name in ("previous", "next", "home") if name in self.buttons()]
        return "\n".join((*lines, " ".join(f"[{name}]" for name in buttons)))
