"""An online shop's customers, orders and policy: what is asked for, and what is right."""

import copy
from typing import Any

from rllm_envs.errors import TaskError
from rllm_envs.tasks import Task
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import is_integer, is_name, need, object_field

Database = dict[str, Any]
"""``customers``, ``orders`` and ``stock``; see ``CustomerServiceEnv``."""
STATUSES = ("processing", "shipped", "delivered", "cancelled")
KINDS = ("refund", "exchange", "cancel")
OUTCOMES = ("done", "refused", "transferred")
PRODUCTS = ("lamp", "kettle", "jacket", "backpack", "blanket", "teapot", "clock", "mirror", "vase")
VARIANTS = ("red", "blue", "green", "black", "white")
_FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hal", "Ines", "Jon", "Kim", "Lou")
_LAST = ("Abel", "Boll", "Cruz", "Dahl", "Ek", "Fuchs", "Gray", "Holm", "Ito", "Juhl")


def policy_text(policy: dict[str, int]) -> str:
    """Return the policy as the agent reads it."""
    return (
        "1. Change an order only if the customer it belongs to is the one whose email address the "
        "person gives; otherwise refuse.\n"
        "2. An order may be cancelled only while its status is processing.\n"
        "3. An item may be refunded only if its order is delivered, at most "
        f"{policy['refund_days']} days have passed since delivery, and it is not a final sale.\n"
        f"4. A refund that rule 3 permits but that is above {policy['refund_limit']} euros is not "
        "made: close the case as transferred.\n"
        "5. An item may be exchanged only if its order is delivered, at most "
        f"{policy['exchange_days']} days have passed since delivery, and the wanted variant of the "
        "same product is in stock. Final sales may be exchanged.\n"
        "6. What is not permitted is refused: change nothing and close the case as refused."
    )


def outcome_of(task: Task) -> str:
    """Return how the case of a task must be closed: one of ``OUTCOMES``."""
    request, policy = task["request"], task["policy"]
    order = task["orders"][request["order"]]
    if order["customer"] != request["customer"]:
        return "refused"
    if request["kind"] == "cancel":
        return "done" if order["status"] == "processing" else "refused"
    item = order["items"][request["item"]]
    days = policy["refund_days" if request["kind"] == "refund" else "exchange_days"]
    if order["status"] != "delivered" or order["days_since_delivery"] > days:
        return "refused"
    if request["kind"] == "exchange":
        is_in_stock = task["stock"][item["product"]].get(request["variant"], 0) > 0
        return "done" if is_in_stock else "refused"
    if item["final_sale"]:
        return "refused"
    return "transferred" if item["price"] > policy["refund_limit"] else "done"


def database_of(task: Task) -> Database:
    """Return a copy of what the functions may change."""
    return copy.deepcopy({name: task[name] for name in ("customers", "orders", "stock")})


def cancel(database: Database, order: str) -> None:
    """Cancel an order, whatever the policy says."""
    database["orders"][order]["status"] = "cancelled"


def refund(database: Database, order: str, item: str) -> None:
    """Refund an item, whatever the policy says."""
    database["orders"][order]["items"][item]["state"] = "refunded"


def exchange(database: Database, order: str, item: str, variant: str) -> None:
    """Exchange an item for another variant that is in stock, whatever the policy says."""
    entry = database["orders"][order]["items"][item]
    database["stock"][entry["product"]][variant] -= 1
    entry["variant"], entry["state"] = variant, "exchanged"


def right_database(task: Task) -> Database:
    """Return the database as it must be when the case is closed."""
    database, request = database_of(task), task["request"]
    if outcome_of(task) == "done":
        if request["kind"] == "cancel":
            cancel(database, request["order"])
        elif request["kind"] == "refund":
            refund(database, request["order"], request["item"])
        else:
            exchange(database, request["order"], request["item"], request["variant"])
    return database


def random_case(draws: Draws, num_customers: int) -> Task:
    """Return a database, a policy and a request; half of the requests can be granted."""
    wanted = "done" if draws.random() < 0.5 else draws.pick(("refused", "refused", "transferred"))
    while True:
        shop = _random_shop(draws, num_customers)
        # Most shops hold an order for each outcome, so that drawing requests is enough.
        for _ in range(60):
            task = {**shop, "request": _random_request(draws, shop)}
            if outcome_of(task) == wanted:
                return task


def _random_shop(draws: Draws, num_customers: int) -> Task:
    names = draws.sample([f"{a} {b}" for a in _FIRST for b in _LAST], num_customers)
    customers = {
        f"C{number}": {"name": name, "email": f"{name.lower().replace(' ', '.')}@mail.example"}
        for number, name in enumerate(names, 1)
    }
    orders: dict[str, Any] = {}
    numbers = draws.sample(range(1000, 9999), 3 * num_customers)
    for customer in customers:
        # A customer never owns a product twice, so that its name tells which item is meant.
        products = draws.sample(PRODUCTS, 6)
        for _ in range(draws.between(1, 3)):
            items = {
                f"I{place}": _random_item(draws, products.pop())
                for place in range(1, draws.between(1, 2) + 1)
            }
            orders[f"N{numbers.pop()}"] = _random_order(draws, customer, items)
    stock = {
        product: {variant: max(draws.between(-2, 4), 0) for variant in VARIANTS}
        for product in PRODUCTS
    }
    policy = {
        "refund_days": draws.pick((14, 20, 30)),
        "exchange_days": draws.pick((30, 45, 60)),
        "refund_limit": draws.pick((80, 100, 150)),
    }
    return {"customers": customers, "orders": orders, "stock": stock, "policy": policy}


def _random_request(draws: Draws, shop: Task) -> dict[str, Any]:
    customers, orders = shop["customers"], shop["orders"]
    order = draws.pick(tuple(orders))
    item = draws.pick(tuple(orders[order]["items"]))
    owner = orders[order]["customer"]
    is_owner = draws.random() < 0.85
    others = [v for v in VARIANTS if v != orders[order]["items"][item]["variant"]]
    return {
        "kind": draws.pick(KINDS),
        "customer": owner if is_owner else draws.pick([c for c in customers if c != owner]),
        "order": order,
        "item": item,
        "variant": draws.pick(others),
        # A stranger must name the order, because it is not among his own.
        "knows_order": draws.random() < 0.5 or not is_owner,
    }


def _random_item(draws: Draws, product: str) -> dict[str, Any]:
    return {
        "product": product,
        "variant": draws.pick(VARIANTS),
        "price": draws.between(15, 220),
        "final_sale": draws.random() < 0.25,
        "state": "sold",
    }


def _random_order(draws: Draws, customer: str, items: dict[str, Any]) -> dict[str, Any]:
    status = draws.pick(("processing", "shipped", "delivered", "delivered"))
    return {
        "customer": customer,
        "status": status,
        "days_since_delivery": draws.between(1, 70) if status == "delivered" else 0,
        "items": items,
    }


def check_case(task: Task) -> Task:
    """Return a given task if it is complete.

    Raises:
        TaskError: A field is missing or has a wrong value; the message names it.
    """
    customers = object_field(task, "customers", 1, 200)
    for customer in customers.values():
        is_customer = isinstance(customer, dict) and set(customer) == {"name", "email"}
        is_named = is_customer and is_name(customer["name"]) and is_name(customer["email"])
        need(is_named, "a customer needs name and email", customer)
    emails = [customer["email"].lower() for customer in customers.values()]
    need(len(set(emails)) == len(emails), "email addresses must differ", emails)
    stock = object_field(task, "stock", 1, 200)
    for product, variants in stock.items():
        is_counted = isinstance(variants, dict) and all(
            is_integer(count, 0, 10**6) for count in variants.values()
        )
        need(is_name(product) and is_counted, "stock must be {product: {variant: count}}", variants)
        words = (product, *variants)
        need(all(word == word.lower() for word in words), "stock must be in lower case", words)
    for number, order in object_field(task, "orders", 1, 500).items():
        _check_order(order, customers, stock)
        words = (number, *order["items"])
        need(all(word == word.upper() for word in words), "numbers must be in upper case", words)
    policy = object_field(task, "policy", 3, 3)
    for name in ("refund_days", "exchange_days", "refund_limit"):
        need(is_integer(policy.get(name), 0, 10**6), f"the policy needs {name!r}", policy)
    _check_request(task, object_field(task, "request", 6, 6))
    return task


def _check_order(order: Any, customers: dict[str, Any], stock: dict[str, Any]) -> None:
    is_order = (
        isinstance(order, dict)
        and order.get("customer") in customers
        and order.get("status") in STATUSES
        and is_integer(order.get("days_since_delivery"), 0, 10**6)
        and isinstance(order.get("items"), dict)
        and len(order["items"]) >= 1
    )
    need(is_order, "an order needs customer, status, days_since_delivery and items", order)
    for item in order["items"].values():
        is_item = (
            isinstance(item, dict)
            and item.get("product") in stock
            and is_name(item.get("variant"))
            and is_integer(item.get("price"), 0, 10**6)
            and isinstance(item.get("final_sale"), bool)
            and is_name(item.get("state"))
        )
        need(is_item, "an item needs product, variant, price, final_sale and state", item)


def _check_request(task: Task, request: dict[str, Any]) -> None:
    order = task["orders"].get(request.get("order"), {"items": {}})
    is_request = (
        request.get("kind") in KINDS
        and request.get("customer") in task["customers"]
        and request.get("item") in order["items"]
        and is_name(request.get("variant"))
        and isinstance(request.get("knows_order"), bool)
    )
    need(
        is_request, "a request needs kind, customer, order, item, variant and knows_order", request
    )
    if not request["knows_order"] and order["customer"] != request["customer"]:
        raise TaskError("who asks about the order of somebody else must know its number")
