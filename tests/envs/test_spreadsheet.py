import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.tool_use.spreadsheet import GOALS, SpreadsheetEnv

ROWS = [["tea", "north", 10, 4], ["salt", "south", 30, 1], ["rope", "north", 20, 7]]
EXPECTED = {
    "revenue": ("", "2: 40\n3: 30\n4: 140"),
    "flag": (15, "2: no\n3: yes\n4: yes"),
    "share": ("", "2: 0.1666666667\n3: 0.5\n4: 0.3333333333"),
    "total": ("", "H1: 60"),
    "mean": ("", "H1: 4"),
    "spread": ("", "H1: 6"),
    "in_region": ("north", "H1: 30"),
    "count": ("south", "H1: 1"),
    "turnover": ("", "H1: 210"),
}


def start(*goals):
    env = SpreadsheetEnv()
    listed = [{"kind": k, "place": p, "value": v} for k, p, v in goals]
    return env, env.reset(options={"task": {"rows": ROWS, "goals": listed}})[0]


def do(env, command):
    return env.step(f"<command>{command}</command>")


@pytest.mark.parametrize("kind", list(GOALS))
def test_each_goal_is_reached_by_the_oracle_with_the_values_worked_out_by_hand(kind):
    value, shown = EXPECTED[kind]
    env, _ = start((kind, "E" if GOALS[kind].is_column else "H1", value))
    assert env.step(env.oracle_action())[0] == shown
    assert env.oracle_action() == "<command>done</command>"
    assert env.step(env.oracle_action())[1:3] == (1.0, True)


def test_the_first_observation_holds_goals_commands_and_the_table():
    _, observation = start(("revenue", "E", ""), ("in_region", "H2", "north"))
    assert "1. in each of E2 to E4: quantity times price of the row\n" in observation
    assert "2. in H2: the sum of the quantities of the region north\n" in observation
    assert observation.endswith(
        "1: item | region | quantity | price\n2: tea | north | 10 | 4\n"
        "3: salt | south | 30 | 1\n4: rope | north | 20 | 7"
    )


def test_numbers_written_by_hand_fail_when_the_data_change():
    env, _ = start(("total", "H1", ""))
    assert do(env, "set H1 60")[0] == "H1: 60"
    assert env.oracle_action() == "<command>done</command>"
    assert do(env, "done")[1:3] == (0.0, True)


@pytest.mark.parametrize(
    ("commands", "reward"),
    [
        (["fill E2:E4 =D2*C2"], 1.0),
        (["set E2 =C2*D2", "set E3 =C3*D3", "set E4 =C4*D4"], 1.0),
        (["fill F2:F4 =C2", "fill E2:E4 =F2*D2"], 1.0),
        (["fill E2:E4 =$C$2*D2"], 0.0),
        (["fill E2:E3 =C2*D2"], 0.0),
        (["fill e2:e4 =c2*d2", "set E4 x"], 0.0),
        ([], 0.0),
    ],
)
def test_any_right_formulas_count(commands, reward):
    env, _ = start(("revenue", "E", ""))
    for command in commands:
        do(env, command)
    assert do(env, "done")[1] == reward


@pytest.mark.parametrize(
    ("command", "answer", "is_invalid"),
    [
        ("set A2 5", "Error: the table A1:D4 is protected", False),
        ("set E2:E4 5", "Error: set writes into one cell; use fill for a range", False),
        ("set E2 " + "x" * 301, "Error: a cell holds at most 300 characters", False),
        ("set E2", "E2: ", False),
        ("show A2:B2", "2: tea | north", False),
        ("show Z1", "That is no command.", True),
        ("fill E2:E99 1", "That is no command.", True),
        ("help", "That is no command.", True),
    ],
)
def test_commands_are_answered(command, answer, is_invalid):
    env, _ = start(("total", "H1", ""))
    observation, _, terminated, _, info = do(env, command)
    assert observation.startswith(answer)
    assert (terminated, info["invalid"]) == (False, is_invalid)


def test_generated_goals_cover_all_kinds_and_have_places_of_their_own():
    env = SpreadsheetEnv(num_goals=6, max_turns=20, split="all")
    kinds = set()
    for seed in range(40):
        env.reset(seed=seed)
        goals = env.task["goals"]
        kinds |= {goal["kind"] for goal in goals}
        assert len({goal["place"] for goal in goals}) == len(goals) == 6
    assert kinds == set(GOALS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [["tea", "up", 1, 1]]}, "row"),
        ({"rows": [["tea", "north", 0, 1]]}, "row"),
        ({"goals": []}, "goals"),
        ({"goals": [{"kind": "total", "place": "E", "value": ""}]}, "place"),
        ({"goals": [{"kind": "flag", "place": "E", "value": "x"}]}, "value"),
        ({"goals": [{"kind": "sing", "place": "E", "value": ""}]}, "kind"),
        ({"goals": [{"kind": "total", "place": "H1", "value": ""}] * 2}, "place"),
    ],
)
def test_tasks_that_cannot_be_played_are_refused(change, message):
    goals = [{"kind": "total", "place": "H1", "value": ""}]
    with pytest.raises(TaskError, match=message):
        SpreadsheetEnv().reset(options={"task": {"rows": ROWS, "goals": goals, **change}})


def test_arguments_out_of_range_are_refused():
    for arguments in ({"num_rows": 2}, {"num_goals": 7}, {"max_turns": 5}):
        with pytest.raises(EnvArgumentError, match=next(iter(arguments))):
            SpreadsheetEnv(**arguments)
