"""``rllm/WebShop-v0``: find and buy the product that fits a request."""

from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import TaskError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.command_env import CommandEnv
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import (
    check_flag,
    check_integer,
    is_integer,
    is_name,
    list_field,
    need,
    object_field,
)
from rllm_envs.tool_use.shop_world import (
    WISHES,
    Shop,
    Wish,
    fitting,
    matches,
    random_shop,
    random_wish,
)

_RESERVED = ("home", "back", "next", "previous", "details", "buy")


class WebShopEnv(CommandEnv):
    r"""Search a shop, choose a product and its options, and buy it.

    ## Description
    The pages of a generated shop are shown as text: a search form, result pages, products with
    colours and sizes, and their details. A request states what is wanted: category, material,
    feature, colour, size and the highest price. Several products are alike.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<command>search wool scarf</command>`` searches
    from any page, ``<command>click next</command>`` presses what stands in square brackets on the
    page; the last complete command counts.

    ## Observation Space
    First the request, how to act, and the home page. A command is answered with the page that it
    leads to, or with what is wrong. The last observation says what was bought.

    ## Starting State
    ``num_products`` random products of ten categories; a request that at least one of them fulfils.

    ## Rewards
    1 for buying a product that fulfils all six parts of the request, with the right colour and size
    chosen; 0 otherwise. With ``partial_reward`` the share of the parts that are fulfilled.

    ## Episode End
    Terminates with a purchase. Truncates after ``max_turns`` actions without one.

    ## Information
    ``success``, ``invalid`` (no command, or nothing of that name to click), ``turn``,
    ``turns_left``.

    ## Arguments
    ``num_products`` (10 to 300, default 60), ``partial_reward`` (default False), ``max_turns`` (8
    to 1000, default 25), ``split`` ("train", "test" or "all").
    Task: ``{"products": [{"name", "category", "material", "features", "price", "colours",
    "sizes"}, ...], "wish": {"category", "material", "feature", "colour", "size", "max_price"}}``.
    ``rllm/WebShopHard-v0`` has 250 products and 40 turns.

    ## Version History
    * v0: Initial version
    """

    hint = (
        "Write <command>search WORDS</command>, or <command>click NAME</command> with a name that "
        "stands in square brackets."
    )

    def __init__(
        self,
        *,
        num_products: int = 60,
        partial_reward: bool = False,
        max_turns: int = 25,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_products", num_products, 10, 300)
        check_flag("partial_reward", partial_reward)
        check_integer("max_turns", max_turns, 8, 1000)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_products = num_products
        self.partial_reward = partial_reward
        self._shop = Shop([])
        self._wish: Wish = {}

    def generate_task(self) -> Task:
        """Return a random shop and a wish that it can fulfil."""
        draws = Draws(self.np_random)
        products = random_shop(draws, self.num_products)
        return {"products": products, "wish": random_wish(draws, products)}

    def validate_task(self, task: Task) -> Task:
        """Check the products, and that one of them fulfils the wish."""
        names: set[str] = set(_RESERVED)
        for product in list_field(task, "products", 1, 1000):
            _check_product(product)
            need(product["name"].lower() not in names, "names must differ", product["name"])
            names.add(product["name"].lower())
        wish = object_field(task, "wish", 6, 6)
        need(set(wish) == set(WISHES), f"task['wish'] must hold {', '.join(WISHES)}", wish)
        for name in WISHES[:-1]:
            need(is_name(wish[name]), f"{name!r} of the wish must be a text", wish[name])
        need(is_integer(wish["max_price"], 0, 10**6), "'max_price' must be an integer", wish)
        if not fitting(task["products"], wish):
            raise TaskError(f"no product of the task fulfils the wish {wish}")
        return task

    def begin(self, task: Task) -> str:
        """Return the request, the rules and the home page."""
        self._shop, self._wish = Shop(task["products"]), task["wish"]
        wish = self._wish
        return (
            f"Buy this in a web shop: a {wish['category']} made of {wish['material']}, "
            f"{wish['feature']}, colour {wish['colour']}, size {wish['size']}, for at most "
            f"{wish['max_price']} euros.\n"
            "Write one command per turn: <command>search WORDS</command>, or <command>click "
            "NAME</command> for what stands in square brackets on the page. Choose colour and size "
            f"before you click buy; buying ends the task. You have {self.max_turns} turns.\n"
            f"{self._shop.text()}"
        )

    def run_command(self, command: str) -> Response:
        """Search, or press a button of the page."""
        verb, _, rest = " ".join(command.lower().split()).partition(" ")
        if verb == "search" and rest:
            self._shop.search(rest)
            return Response(self._shop.text())
        action = self._shop.buttons().get(rest.strip("[] "))
        if verb != "click" or action is None:
            answer = self.hint if verb != "click" else f"There is no [{rest[:60]}] on this page."
            return Response(f"{answer}\n{self._shop.text()}", info={"invalid": True})
        if action == "buy":
            return self._buy()
        self._shop.press(action)
        return Response(self._shop.text())

    def _buy(self) -> Response:
        shop = self._shop
        if set(shop.chosen) != {"colour", "size"}:
            return Response(f"Choose colour and size before you buy.\n{shop.text()}")
        product = shop.products[shop.product]
        share = len(matches(product, shop.chosen, self._wish)) / len(WISHES)
        reward = share if self.partial_reward else float(share == 1.0)
        bought = f"You bought {product['name']}, {shop.chosen['colour']}, {shop.chosen['size']}."
        return Response(bought, reward, terminated=True)

    def oracle_action(self) -> str:
        """Search for the wish, page to a product that fits, choose its options, and buy it."""
        return self.tagged(self._next_command())

    def _next_command(self) -> str:
        shop, wish = self._shop, self._wish
        targets = fitting(shop.products, wish)
        if shop.page == "results" and set(targets) & set(shop.results[shop.first :]):
            shown = shop.results[shop.first :][: len(shop.buttons())]
            buttons = {action: name for name, action in shop.buttons().items()}
            names = [buttons[f"product {n}"] for n in shown if f"product {n}" in buttons]
            wanted = [shop.products[number]["name"].lower() for number in targets]
            return "click " + next((name for name in names if name in wanted), "next")
        if shop.page == "product" and shop.product in targets:
            for option in ("colour", "size"):
                if shop.chosen.get(option) != wish[option]:
                    return f"click {wish[option]}"
            return "click buy"
        if shop.page == "details" and shop.product in targets:
            return "click back"
        return f"search {wish['material']} {wish['category']} {wish['feature']}"


def _check_product(product: Any) -> None:
    need(isinstance(product, dict), "a product must be an object", product)
    for name in ("name", "category", "material"):
        need(is_name(product.get(name)), f"{name!r} of a product must be a text", product)
    for name in ("features", "colours", "sizes"):
        values = product.get(name)
        is_list = isinstance(values, list) and 1 <= len(values) <= 20 and all(map(is_name, values))
        need(is_list, f"{name!r} of a product must be a list of texts", values)
    labels = [value.lower() for value in (*product["colours"], *product["sizes"])]
    need(
        len({*labels, *_RESERVED}) == len(labels) + len(_RESERVED)
        and labels == [*product["colours"], *product["sizes"]],
        "colours and sizes must be different, in lower case, and no names of buttons",
        labels,
    )
    need(is_integer(product.get("price"), 0, 10**6), "'price' must be an integer", product)
