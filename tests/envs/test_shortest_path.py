import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.shortest_path import ShortestPathEnv, path_length, shortest_path

# From A to D: over B 2 + 5 = 7, over C 3 + 4 = 7, directly 9, over B and C 2 + 1 + 4 = 7.
ROADS = [["A", "B", 2], ["B", "D", 5], ["A", "C", 3], ["C", "D", 4], ["A", "D", 9], ["B", "C", 1]]
TASK = {"roads": ROADS, "start": "A", "end": "D"}


def reward(task, answer):
    env = ShortestPathEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A -> B -> D", 1.0),
        ("A, C, D", 1.0),
        (r"A \to B \rightarrow C \to D", 1.0),
        ("a-b-d", 1.0),
        ("[A, B, D]", 1.0),
        ("A → C → D", 1.0),
        ("A B D", 1.0),
        ("A -> D", 0.0),
        ("D -> B -> A", 0.0),
        ("A -> B", 0.0),
        ("A -> B -> A -> B -> D", 0.0),
        ("A -> X -> D", 0.0),
        ("7", 0.0),
        ("", 0.0),
    ],
)
def test_any_shortest_way_is_right(answer, expected):
    assert reward(TASK, answer) == expected


def test_directed_roads_have_one_direction():
    roads = [["A", "B", 1], ["C", "B", 1], ["A", "C", 5], ["B", "D", 9], ["C", "D", 1]]
    task = {"roads": roads, "start": "A", "end": "D", "directed": True}
    assert reward(task, "A -> B -> C -> D") == 0.0
    assert reward(task, "A -> C -> D") == 1.0
    assert reward({**task, "directed": False}, "A -> B -> C -> D") == 1.0
    env = ShortestPathEnv()
    assert "A -> B: 1\n" in env.reset(options={"task": task})[0]


def test_the_question_lists_the_roads():
    env = ShortestPathEnv()
    assert env.reset(options={"task": {**TASK, "roads": ROADS[:2]}})[0] == (
        "These roads join places; each may be used in both directions.\nA - B: 2\nB - D: 5\n"
        "Find a way from A to D with the least total length. Give its places in order, like "
        r"\boxed{X -> Y -> Z}."
    )


def _shortest_by_bellman_ford(task):
    edges = list(map(tuple, task["roads"]))
    if not task.get("directed", False):
        edges += [(b, a, length) for a, b, length in edges]
    places = {place for edge in edges for place in edge[:2]}
    distance = {place: float("inf") for place in places} | {task["start"]: 0}
    for _ in places:
        for a, b, length in edges:
            distance[b] = min(distance[b], distance[a] + length)
    return distance[task["end"]]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("num_places", [4, 9, 20])
def test_lengths_agree_with_bellman_ford(num_places, directed):
    env = ShortestPathEnv(num_places=num_places, directed=directed, split="all")
    for seed in range(15):
        env.reset(seed=seed)
        task = env.task
        path = shortest_path(task)
        assert " -> ".join(path) == task["answer"]
        assert len(path) > 2
        assert path_length(task, path) == _shortest_by_bellman_ford(task)
        assert len(task["roads"]) == env.num_roads
        assert len({frozenset(road[:2]) for road in task["roads"]}) == env.num_roads


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"roads": []}, "'roads' must be a list"),
        ({"roads": [["A", "A", 1]]}, "two different places"),
        ({"roads": [["A", "B", 0]]}, "length from 1"),
        ({"roads": [["A", "a", 1]]}, "distinct"),
        ({"end": "Z"}, "two places with roads"),
        ({"end": ["A"]}, "two places with roads"),
        ({"start": "D"}, "two places with roads"),
        ({"roads": [["A", "B", 1], ["C", "D", 1]]}, "there is no way from A to D"),
        ({"directed": "yes"}, "'directed' must be true or false"),
        ({"answer": "A -> D"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"num_places": 3}, "num_places"),
        ({"num_roads": 3}, "num_roads must be an integer from 7 to 21, got 3"),
        ({"max_length": 1}, "max_length"),
        ({"directed": 1}, "directed"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, reason):
    with pytest.raises(EnvArgumentError, match=reason):
        ShortestPathEnv(**arguments)
