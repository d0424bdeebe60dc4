import copy
import json

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.customer_service import CustomerServiceEnv
from rllm_envs.tool_use.service_world import outcome_of

POLICY = {"refund_days": 30, "exchange_days": 45, "refund_limit": 100}


def case(status="delivered", days=10, price=50, final_sale=False, kind="refund", **request):
    item = {"product": "lamp", "variant": "red", "price": price, "final_sale": final_sale,
            "state": "sold"}  # fmt: skip
    return {
        "customers": {"C1": {"name": "Ada Abel", "email": "ada@mail.example"},
                      "C2": {"name": "Ben Boll", "email": "ben@mail.example"}},
        "orders": {"N1": {"customer": "C1", "status": status, "days_since_delivery": days,
                          "items": {"I1": item}},
                   "N2": {"customer": "C2", "status": "processing", "days_since_delivery": 0,
                          "items": {"I1": {**item, "product": "vase"}}}},
        "stock": {"lamp": {"red": 0, "blue": 2}, "vase": {"red": 1}},
        "policy": POLICY,
        "request": {"kind": kind, "customer": "C1", "order": "N1", "item": "I1", "variant": "blue",
                    "knows_order": True} | request,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        (case(), "done"),
        (case(days=30), "done"),
        (case(days=31), "refused"),
        (case(final_sale=True), "refused"),
        (case(status="shipped", days=0), "refused"),
        (case(price=100), "done"),
        (case(price=101), "transferred"),
        (case(price=101, days=31), "refused"),
        (case(price=101, final_sale=True), "refused"),
        (case(customer="C2"), "refused"),
        (case(price=101, customer="C2"), "refused"),
        (case(kind="exchange"), "done"),
        (case(kind="exchange", days=45, final_sale=True, price=500), "done"),
        (case(kind="exchange", days=46), "refused"),
        (case(kind="exchange", variant="red"), "refused"),
        (case(kind="exchange", variant="pink"), "refused"),
        (case(kind="exchange", status="processing", days=0), "refused"),
        (case(kind="exchange", customer="C2"), "refused"),
        (case(kind="cancel", status="processing", days=0), "done"),
        (case(kind="cancel", status="shipped", days=0), "refused"),
        (case(kind="cancel"), "refused"),
        (case(kind="cancel", status="processing", days=0, customer="C2"), "refused"),
    ],
)
def test_the_policy_decides_as_in_a_table_by_hand(task, outcome):
    assert outcome_of(task) == outcome
    env = CustomerServiceEnv()
    env.reset(options={"task": task})
    reward = 0.0
    for _ in range(6):
        action = env.oracle_action()
        _, reward, terminated, _, _ = env.step(action)
        if terminated:
            break
    assert reward == 1.0
    assert f'"outcome": "{outcome}"' in action


def start(task=None):
    env = CustomerServiceEnv()
    return env, env.reset(options={"task": task or case()})[0]


def call(env, name, **arguments):
    return env.step(f"<tool>{json.dumps({'name': name, 'arguments': arguments})}</tool>")


def test_the_first_observation_holds_policy_functions_and_request():
    _, observation = start()
    assert "at most 30 days have passed" in observation
    assert "refund_item(order_id: string, item_id: string): Refund an item." in observation
    assert observation.endswith("Customer: Hello, I want my money back for the lamp from order N1.")
    assert "ada@mail.example" not in observation


def test_the_customer_answers_by_key_words():
    env, _ = start(case(kind="exchange", knows_order=False))
    assert env.step("<say>Your e-mail and your name, please?</say>")[0] == (
        "Customer: My email address is ada@mail.example. My name is Ada Abel."
    )
    assert env.step("<say>Which order, which product, which colour?</say>")[0] == (
        "Customer: I do not have the order number. It is about the lamp. I would like blue."
    )
    assert "What do you need to know?" in env.step("<say>Nice weather.</say>")[0]


def test_functions_show_and_change_the_database():
    env, _ = start()
    assert call(env, "find_customer", email="ADA@mail.example")[0] == "C1, Ada Abel, orders: N1"
    assert call(env, "get_order", order_id="n1")[0] == (
        "N1: customer C1, status delivered, delivered 10 days ago\nI1: lamp, red, 50 euros, sold"
    )
    assert call(env, "get_stock", product="lamp")[0] == "red: 0, blue: 2"
    exchanged = call(env, "exchange_item", order_id="N1", item_id="I1", variant="blue")[0]
    assert exchanged == "Item I1 of order N1 is exchanged for blue."
    assert call(env, "get_stock", product="lamp")[0] == "red: 0, blue: 1"
    assert "exchanged" in call(env, "get_order", order_id="N1")[0]
    assert call(env, "cancel_order", order_id="N1")[0] == "Order N1 is cancelled."
    assert call(env, "close_case", outcome="done")[1:3] == (0.0, True)


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("find_customer", {"email": "x"}, "Error: no customer has the email address 'x'"),
        ("get_order", {"order_id": "N9"}, "Error: there is no order 'N9'"),
        ("get_stock", {"product": "car"}, "Error: there is no product 'car'"),
        ("refund_item", {"order_id": "N1", "item_id": "I9"}, "Error: order N1 has no item 'I9'"),
        ("exchange_item", {"order_id": "N1", "item_id": "I1", "variant": "red"},
         "Error: the lamp is not in stock as 'red'"),
        ("refund_item", {"order_id": "N1"}, "Error: refund_item needs the argument item_id"),
        ("close_case", {"outcome": "fine"},
         "Error: outcome must be one of done, refused, transferred, got 'fine'"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_explained(name, arguments, error):
    env, _ = start()
    observation, _, terminated, _, _ = call(env, name, **arguments)
    assert (observation, terminated) == (error, False)


def test_unreadable_actions_are_invalid_and_a_call_counts_before_a_message():
    env, _ = start()
    for action in ("hello", "<tool>x</tool>", "<tool>[]</tool>", "<say></say>",
                   '<tool>{"name": "pay"}</tool>'):  # fmt: skip
        assert env.step(action)[4]["invalid"] is True
    text = '<say>email?</say> <tool>{"name": "get_stock", "arguments": {"product": "vase"}}</tool>'
    assert env.step(text)[0] == "red: 1"


@pytest.mark.parametrize(
    ("calls", "outcome"),
    [
        ([], "done"),
        ([("refund_item", {"order_id": "N1", "item_id": "I1"})], "refused"),
        ([("refund_item", {"order_id": "N2", "item_id": "I1"})], "done"),
        ([("refund_item", {"order_id": "N1", "item_id": "I1"}),
          ("cancel_order", {"order_id": "N2"})], "done"),
    ],
)  # fmt: skip
def test_a_wrong_outcome_or_one_change_too_many_earns_nothing(calls, outcome):
    env, _ = start()
    for name, arguments in calls:
        call(env, name, **arguments)
    assert call(env, "close_case", outcome=outcome)[1:3] == (0.0, True)


def test_generated_cases_have_all_outcomes_and_an_item_that_its_name_tells():
    env = CustomerServiceEnv(split="all")
    counts = {}
    for seed in range(300):
        env.reset(seed=seed)
        task = env.task
        outcome = outcome_of(task)
        counts[outcome] = counts.get(outcome, 0) + 1
        request = task["request"]
        product = task["orders"][request["order"]]["items"][request["item"]]["product"]
        owner = task["orders"][request["order"]]["customer"]
        owned = [
            item["product"]
            for order in task["orders"].values()
            if order["customer"] == owner
            for item in order["items"].values()
        ]
        assert owned.count(product) == 1
        assert request["knows_order"] or request["customer"] == owner
    assert 120 < counts["done"] < 180
    assert 70 < counts["refused"] < 130
    assert counts["transferred"] > 25


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("customers", "C1"), {"name": "Ada"}, "customer needs"),
        (("customers", "C2", "email"), "ADA@mail.example", "differ"),
        (("stock", "lamp"), {"red": -1}, "stock"),
        (("orders", "N1", "status"), "lost", "order needs"),
        (("orders", "N1", "items", "I1", "product"), "car", "item needs"),
        (("policy",), {"refund_days": 3}, "policy"),
        (("request", "item"), "I7", "request needs"),
        (("request", "order"), "N7", "request needs"),
        (("request", "kind"), "gift", "request needs"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(path, value, message):
    task = copy.deepcopy(case())
    place = task
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    with pytest.raises(TaskError, match=message):
        start(task)
    with pytest.raises(TaskError, match="number"):
        start(case(customer="C2", knows_order=False))


def test_arguments_out_of_range_are_refused():
    for arguments in ({"num_customers": 1}, {"max_turns": 5}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            CustomerServiceEnv(**arguments)
