import re

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.shop_world import fitting
from rllm_envs.tool_use.web_shop import WebShopEnv


def product(name, **changes):
    base = {"name": name, "category": "scarf", "material": "wool", "features": ["fringed", "soft"],
            "price": 30, "colours": ["blue", "red"], "sizes": ["short", "long"]}  # fmt: skip
    return base | changes


WISH = {"category": "scarf", "material": "wool", "feature": "soft", "colour": "red",
        "size": "long", "max_price": 40}  # fmt: skip
TASK = {
    "products": [
        product("Alder scarf 1"),
        product("Oru scarf 2", material="silk"),
        product("Lumo scarf 3", price=41),
        product("Quill lamp 4", category="lamp", material="oak", features=["dimmable", "soft"]),
        *(product(f"Tamsin mat {n}", category="mat", material="wool", features=["plain"])
          for n in range(10, 20)),
    ],
    "wish": WISH,
}  # fmt: skip


def start(task=TASK, **arguments):
    env = WebShopEnv(**arguments)
    return env, env.reset(options={"task": task})[0]


def do(env, *commands):
    result = ()
    for command in commands:
        result = env.step(f"<command>{command}</command>")
    return result


def buy(env, name, *options):
    return do(
        env, "search scarf lamp", f"click {name}", *(f"click {o}" for o in options), "click buy"
    )


def test_the_request_and_the_rules_are_stated():
    _, observation = start()
    assert "a scarf made of wool, soft, colour red, size long, for at most 40 euros." in observation
    assert observation.endswith("Home page. Use search to find products.")
    assert "Alder" not in observation


def test_pages_are_text_with_links():
    env, _ = start()
    assert do(env, "search scarf")[0] == (
        "Results 1 to 3 of 3:\n[Alder scarf 1] 30 euros\n[Oru scarf 2] 30 euros\n"
        "[Lumo scarf 3] 41 euros\n[home]"
    )
    page = do(env, "click Oru scarf 2")[0]
    assert page == (
        "Oru scarf 2, 30 euros.\ncolour: [blue] [red] (chosen: nothing)\n"
        "size: [short] [long] (chosen: nothing)\n[details] [buy] [back] [home]"
    )
    assert "Material: silk. Features: fringed, soft." in do(env, "click [details]")[0]
    assert do(env, "click back")[0] == page
    assert "colour: [blue] [red] (chosen: red)" in do(env, "CLICK Red")[0]
    assert do(env, "click back")[0].startswith("Results 1 to 3")
    assert do(env, "click home")[0].startswith("Home page")
    assert do(env, "search zzz")[0] == "No product has any of these words.\n[home]"


def test_results_are_paged():
    env, _ = start()
    assert do(env, "search wool")[0].endswith("[next] [home]")
    assert do(env, "click next")[0].startswith("Results 7 to 12 of 12:")
    assert do(env, "click next")[4]["invalid"] is True
    assert do(env, "click previous")[0].startswith("Results 1 to 6 of 12:")


@pytest.mark.parametrize(
    ("name", "options", "share"),
    [
        ("Alder scarf 1", ("red", "long"), 1.0),
        ("Alder scarf 1", ("long", "blue", "red"), 1.0),
        ("Alder scarf 1", ("blue", "long"), 5 / 6),
        ("Alder scarf 1", ("blue", "short"), 4 / 6),
        ("Oru scarf 2", ("red", "long"), 5 / 6),
        ("Lumo scarf 3", ("red", "long"), 5 / 6),
        ("Quill lamp 4", ("red", "long"), 4 / 6),
    ],
)
def test_the_reward_is_one_for_all_parts_or_their_share(name, options, share):
    env, _ = start()
    _, reward, terminated, _, info = buy(env, name, *options)
    assert (reward, terminated, info["success"]) == (float(share == 1.0), True, share == 1.0)
    env, _ = start(partial_reward=True)
    assert buy(env, name, *options)[1] == pytest.approx(share)


def test_nothing_is_bought_without_options():
    env, _ = start()
    observation, _, terminated, _, info = buy(env, "Alder scarf 1", "red")
    assert observation.startswith("Choose colour and size before you buy.")
    assert (terminated, info["invalid"]) == (False, False)


def test_what_is_not_on_the_page_cannot_be_clicked():
    env, _ = start()
    for command in ("click buy", "click Alder scarf 1", "search", "jump", "click"):
        observation, *_, info = do(env, command)
        assert info["invalid"] is True
        assert observation.endswith("Home page. Use search to find products.")


def test_the_oracle_finds_its_way_from_a_wrong_page():
    env, _ = start()
    do(env, "search lamp", "click Quill lamp 4")
    rewards = [env.step(env.oracle_action())[1] for _ in range(5)]
    assert rewards == [0.0, 0.0, 0.0, 0.0, 1.0]


def test_generated_requests_can_be_read_back_from_the_words_and_fit_few_products():
    env = WebShopEnv(split="all")
    for seed in range(40):
        observation, _ = env.reset(seed=seed)
        task = env.task
        match = re.search(
            r"a (\w+) made of (\w+), (.+), colour (\w+), size (.+), for at most (\d+) euros",
            observation,
        )
        category, material, feature, colour, size, price = match.groups()
        found = [
            number
            for number, item in enumerate(task["products"])
            if item["category"] == category and item["material"] == material
            and feature in item["features"] and colour in item["colours"]
            and size in item["sizes"] and item["price"] <= int(price)
        ]  # fmt: skip
        assert found == fitting(task["products"], task["wish"])
        assert 1 <= len(found) <= 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"products": []}, "products"),
        ({"products": [product("a"), product("A")]}, "differ"),
        ({"products": [product("Buy")]}, "differ"),
        ({"products": [product("a", price="3")]}, "price"),
        ({"products": [product("a", colours=["long"])]}, "different"),
        ({"products": [product("a", colours=[])]}, "colours"),
        ({"wish": {}}, "wish"),
        ({"wish": {**WISH, "max_price": 29}}, "fulfils"),
        ({"wish": {**WISH, "colour": "green"}}, "fulfils"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, message):
    with pytest.raises(TaskError, match=message):
        start({**TASK, **change})


def test_arguments_out_of_range_are_refused():
    for arguments in ({"num_products": 9}, {"partial_reward": 1}, {"max_turns": 3}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            WebShopEnv(**arguments)
