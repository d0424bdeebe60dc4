"""``rllm/CustomerService-v0``: serve a customer by functions, within a policy."""

import re
from typing import Any

from rllm_envs.core import Response
from rllm_envs.errors import ToolError
from rllm_envs.parsing import tag_content
from rllm_envs.tasks import Task
from rllm_envs.tool_use.draws import Draws
from rllm_envs.tool_use.fields import check_integer
from rllm_envs.tool_use.functions import Function, Parameter
from rllm_envs.tool_use.service_world import (
    OUTCOMES,
    Database,
    cancel,
    check_case,
    database_of,
    exchange,
    outcome_of,
    policy_text,
    random_case,
    refund,
    right_database,
)
from rllm_envs.tool_use.tool_call_env import ToolCallEnv

_ORDER = Parameter("order_id", "string", "Number of the order, such as N1234.")
_ITEM = Parameter("item_id", "string", "Item of the order, such as I1.")
_QUESTION = "Hello! May I have your email address, and the order number if you know it?"


class CustomerServiceEnv(ToolCallEnv):
    r"""Talk to a customer, look orders up, and do what the policy permits.

    ## Description
    A customer of an online shop wants an item refunded or exchanged, or an order cancelled. The
    agent reads the policy, asks for what it needs, looks the order up, and either makes the change
    or refuses or transfers the case. The functions do whatever is possible: the policy is for the
    agent to respect. The customer answers by rules, from key words of the agent's message: email,
    order, name, item or product, variant or colour.

    ## Action Space
    Any text outside of ``<think>...</think>``. ``<tool>{"name": "get_order", "arguments":
    {"order_id": "N1234"}}</tool>`` calls a function; the last complete call counts. Without a call
    ``<say>...</say>`` speaks to the customer.

    ## Observation Space
    First the policy, the functions, how to act, and the customer's message. A call is answered with
    its result or ``Error: ...``, a message with ``Customer: ...``.

    ## Starting State
    ``num_customers`` customers with one to three orders each; a random policy and request. Half of
    the requests are to be granted, a third are to be refused, the others to be transferred.

    ## Rewards
    1 if, when the case is closed, the outcome is the right one and the database is exactly as it
    must be; 0 otherwise.

    ## Episode End
    Terminates with ``close_case``. Truncates after ``max_turns`` actions.

    ## Information
    ``success``, ``invalid`` (neither a readable call nor a message), ``turn``, ``turns_left``.

    ## Arguments
    ``num_customers`` (2 to 50, default 5), ``max_turns`` (10 to 1000, default 20), ``split``
    ("train", "test" or "all").
    Task: ``{"customers": {"C1": {"name", "email"}}, "orders": {"N1234": {"customer", "status",
    "days_since_delivery", "items": {"I1": {"product", "variant", "price", "final_sale",
    "state"}}}}, "stock": {product: {variant: count}}, "policy": {"refund_days", "exchange_days",
    "refund_limit"}, "request": {"kind", "customer", "order", "item", "variant", "knows_order"}}``.

    ## Version History
    * v0: Initial version
    """

    hint = (
        'Call a function as <tool>{"name": "...", "arguments": {...}}</tool>, or speak to the '
        "customer as <say>...</say>."
    )
    functions = (
        Function("find_customer", "Find a customer and the numbers of his or her orders.",
                 (Parameter("email", "string", "Email address."),)),
        Function("get_order", "Show an order with its items.", (_ORDER,)),
        Function("get_stock", "Show how many of each variant of a product are in stock.",
                 (Parameter("product", "string", "Name of the product."),)),
        Function("refund_item", "Refund an item.", (_ORDER, _ITEM)),
        Function("exchange_item", "Exchange an item for another variant of the same product.",
                 (_ORDER, _ITEM, Parameter("variant", "string", "The wanted variant."))),
        Function("cancel_order", "Cancel a whole order.", (_ORDER,)),
        Function("close_case", "End the conversation.",
                 (Parameter("outcome", "string", "done, refused or transferred.", OUTCOMES),)),
    )  # fmt: skip

    def __init__(
        self,
        *,
        num_customers: int = 5,
        max_turns: int = 20,
        split: str = "train",
        render_mode: str | None = None,
    ) -> None:
        check_integer("num_customers", num_customers, 2, 50)
        check_integer("max_turns", max_turns, 10, 1000)
        super().__init__(max_turns=max_turns, split=split, render_mode=render_mode)
        self.num_customers = num_customers
        self._case: Task = {}
        self._database: Database = {}
        self._known: set[str] = set()

    def generate_task(self) -> Task:
        """Return a random shop with a policy and a request."""
        return random_case(Draws(self.np_random), self.num_customers)

    def validate_task(self, task: Task) -> Task:
        """Check customers, orders, stock, policy and request."""
        return check_case(task)

    def begin(self, task: Task) -> str:
        """Return policy, functions and the customer's first message."""
        self._case = task
        self._database = database_of(task)
        self._known = set()
        return (
            f"You serve the customers of an online shop. Policy:\n{policy_text(task['policy'])}\n"
            f"Functions:\n{self.manual()}\n"
            'Each turn, call one function as <tool>{"name": "get_order", "arguments": {"order_id": '
            '"N1234"}}</tool>, or speak to the customer as <say>...</say>. At the end call '
            "close_case with the outcome done, refused or transferred. You have "
            f"{self.max_turns} turns.\nCustomer: {self._request()}"
        )

    def respond(self, action: str) -> Response:
        """Run a call, or let the customer answer."""
        message = tag_content(action, "say")
        if message and tag_content(action, self.tag) is None:
            self._known.add("asked")
            return Response(f"Customer: {self._reply(message[:2000].lower())}")
        return super().respond(action)

    def run_call(self, name: str, arguments: dict[str, Any]) -> Response:
        """Run one of the functions on the database."""
        if name == "close_case":
            is_right = arguments["outcome"] == outcome_of(self._case)
            is_solved = is_right and self._database == right_database(self._case)
            return Response("The case is closed.", float(is_solved), terminated=True)
        if name == "find_customer":
            return Response(self._find_customer(arguments["email"]))
        if name == "get_stock":
            counts = self._database["stock"].get(arguments["product"].strip().lower())
            if counts is None:
                raise ToolError(f"there is no product {arguments['product'][:60]!r}")
            return Response(", ".join(f"{name}: {count}" for name, count in counts.items()))
        return Response(self._run_on_order(name, arguments))

    def oracle_action(self) -> str:
        """Ask for the email address, look up customer and order, do what is right, and close."""
        case, request = self._case, self._case["request"]
        if "asked" not in self._known:
            return f"<say>{_QUESTION}</say>"
        if "customer" not in self._known:
            return self.call("find_customer", email=case["customers"][request["customer"]]["email"])
        if request["order"] not in self._known:
            return self.call("get_order", order_id=request["order"])
        outcome = outcome_of(case)
        if self._database == right_database(case):
            return self.call("close_case", outcome=outcome)
        arguments = {"order_id": request["order"]}
        if request["kind"] == "cancel":
            return self.call("cancel_order", **arguments)
        arguments["item_id"] = request["item"]
        if request["kind"] == "refund":
            return self.call("refund_item", **arguments)
        return self.call("exchange_item", **arguments, variant=request["variant"])

    def _find_customer(self, email: str) -> str:
        for number, customer in self._database["customers"].items():
            if customer["email"].lower() == email.strip().lower():
                orders = [n for n, o in self._database["orders"].items() if o["customer"] == number]
                self._known.add("customer")
                return f"{number}, {customer['name']}, orders: {', '.join(orders) or 'none'}"
        raise ToolError(f"no customer has the email address {email[:60]!r}")

    def _run_on_order(self, name: str, arguments: dict[str, Any]) -> str:
        number = arguments["order_id"].strip().upper()
        order = self._database["orders"].get(number)
        if order is None:
            raise ToolError(f"there is no order {number[:40]!r}")
        if name == "get_order":
            self._known.add(number)
            return _describe(number, order)
        if name == "cancel_order":
            cancel(self._database, number)
            return f"Order {number} is cancelled."
        item = arguments["item_id"].strip().upper()
        if item not in order["items"]:
            raise ToolError(f"order {number} has no item {item[:40]!r}")
        if name == "refund_item":
            refund(self._database, number, item)
            return f"Item {item} of order {number} is refunded."
        variant = arguments["variant"].strip().lower()
        product = order["items"][item]["product"]
        if self._database["stock"][product].get(variant, 0) < 1:
            raise ToolError(f"the {product} is not in stock as {variant[:40]!r}")
        exchange(self._database, number, item, variant)
        return f"Item {item} of order {number} is exchanged for {variant}."

    def _request(self) -> str:
        request = self._case["request"]
        item = self._case["orders"][request["order"]]["items"][request["item"]]
        number = f" from order {request['order']}" if request["knows_order"] else ""
        if request["kind"] == "refund":
            return f"Hello, I want my money back for the {item['product']}{number}."
        if request["kind"] == "exchange":
            return (
                f"Hello, I want to exchange the {item['product']}{number}: I would like it in "
                f"{request['variant']}."
            )
        if request["knows_order"]:
            return f"Hello, please cancel my order {request['order']}."
        return f"Hello, please cancel my order, the one with the {item['product']}."

    def _reply(self, message: str) -> str:
        """Answer by the key words of a message."""
        request = self._case["request"]
        customer = self._case["customers"][request["customer"]]
        item = self._case["orders"][request["order"]]["items"][request["item"]]
        answers = []
        if re.search(r"e-?mail", message):
            answers.append(f"My email address is {customer['email']}.")
        if "order" in message:
            number = f"It is order {request['order']}."
            answers.append(number if request["knows_order"] else "I do not have the order number.")
        if re.search(r"\bname\b", message):
            answers.append(f"My name is {customer['name']}.")
        if re.search(r"item|product", message):
            answers.append(f"It is about the {item['product']}.")
        if re.search(r"variant|colou?r|instead", message) and request["kind"] == "exchange":
            answers.append(f"I would like {request['variant']}.")
        return " ".join(answers) or "I have told you what I want. What do you need to know?"


def _describe(number: str, order: dict[str, Any]) -> str:
    lines = [f"{number}: customer {order['customer']}, status {order['status']}"]
    if order["status"] == "delivered":
        lines[0] += f", delivered {order['days_since_delivery']} days ago"
    for name, item in order["items"].items():
        sale = ", final sale" if item["final_sale"] else ""
        lines.append(
            f"{name}: {item['product']}, {item['variant']}, {item['price']} euros{sale}, "
            f"{item['state']}"
        )
    return "\n".join(lines)
