import numpy as np
import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.family_relations import FamilyRelationsEnv
from rllm_envs.reasoning.family_tree import Family, draw_family

# Ada and Carl have Tom and Rita; Tom married Lucy, they have Mark; Rita has Nora; Mark has Iris.
PARENTS = {"Tom": ["Ada", "Carl"], "Rita": ["Ada", "Carl"], "Mark": ["Tom", "Lucy"],
           "Nora": ["Rita"], "Iris": ["Mark"]}  # fmt: skip
FACTS = [["married", "Ada", "Carl"], ["married", "Lucy", "Tom"]] + [
    ["parent", parent, child] for child, parents in PARENTS.items() for parent in parents
]
PEOPLE = {"Ada": "woman", "Carl": "man", "Tom": "man", "Rita": "woman", "Lucy": "woman",
          "Mark": "man", "Nora": "woman", "Iris": "woman"}  # fmt: skip
TASK = {
    "people": {"Ada": "woman", "Carl": "man", "Tom": "man"},
    "facts": [["mother", "Ada", "Carl"], ["son", "Tom", "Carl"]],
    "first": "Tom",
    "second": "Ada",
}


def reward(task, answer):
    env = FamilyRelationsEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


@pytest.mark.parametrize(
    ("first", "second", "kinds"),
    [
        ("Ada", "Carl", ["spouse"]),
        ("Ada", "Tom", ["parent"]),
        ("Tom", "Ada", ["child"]),
        ("Tom", "Rita", ["sibling"]),
        ("Carl", "Mark", ["grandparent"]),
        ("Nora", "Carl", ["grandchild"]),
        ("Ada", "Iris", ["great-grandparent"]),
        ("Iris", "Ada", ["great-grandchild"]),
        ("Rita", "Mark", ["parent's sibling"]),
        ("Nora", "Tom", ["sibling's child"]),
        ("Nora", "Mark", ["cousin"]),
        ("Mark", "Nora", ["cousin"]),
        ("Carl", "Lucy", ["spouse's parent"]),
        ("Lucy", "Ada", ["child's spouse"]),
        ("Lucy", "Rita", ["sibling-in-law"]),
        ("Rita", "Lucy", ["sibling-in-law"]),
        ("Lucy", "Nora", []),
        ("Tom", "Tom", []),
        ("Iris", "Nora", []),
    ],
)
def test_relations_of_a_family_worked_by_hand(first, second, kinds):
    family = Family(FACTS)
    assert family.relations(first, second) == kinds
    assert family.pairs(list(PEOPLE)).get((first, second), []) == kinds


def test_the_question_and_its_answer():
    env = FamilyRelationsEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "Women: Ada. Men: Carl, Tom. Ada is the mother of Carl. Tom is a son of Carl. What is Tom "
        r"to Ada? Give one word in \boxed{}, such as mother, grandson, aunt, cousin or "
        "sister-in-law."
    )
    assert env.oracle_action() == r"\boxed{grandson}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *[("grandson", 1.0), ("Grandson.", 1.0), (r"\text{the grandson}", 1.0), ("grand-son", 1.0)],
        *[("grandfather", 0.0), ("son", 0.0), ("grandchild", 0.0), ("", 0.0)],
    ],
)
def test_the_word_must_be_right(answer, expected):
    assert reward(TASK, answer) == expected


def test_hyphens_do_not_matter():
    task = {
        "people": {"Ada": "woman", "Carl": "man", "Tom": "man"},
        "facts": [["father", "Carl", "Tom"], ["married", "Tom", "Ada"]],
        "first": "Carl",
        "second": "Ada",
    }
    assert reward(task, "father-in-law") == 1.0
    assert reward(task, "father in law") == 1.0
    assert reward(task, "father") == 0.0


@pytest.mark.parametrize("generations", [3, 4])
def test_random_families_are_consistent(generations):
    for seed in range(20):
        people, facts = draw_family(np.random.default_rng(seed), generations)
        parents = {}
        for kind, first, second in facts:
            if kind == "parent":
                parents.setdefault(second, set()).add(people[first])
            else:
                assert {people[first], people[second]} == {"woman", "man"}
        assert all(sexes == {"woman", "man"} for sexes in parents.values())
        assert len({*people}) == len(people)


def test_what_is_asked_is_never_stated():
    stated = {"mother", "father", "son", "daughter", "wife", "husband"}
    env = FamilyRelationsEnv()
    answers = set()
    for seed in range(80):
        env.reset(seed=seed)
        task = env.task
        answers.add(task["answer"])
        ends = {task["first"], task["second"]}
        assert not [fact for fact in task["facts"] if {*fact[1:]} == ends]
    assert not answers & stated
    assert len(answers) >= 12


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"people": {"Ada": "woman"}}, "'people' must hold 2 to 60"),
        ({"people": {"Ada": "woman", "Carl": "x"}}, "'woman' or 'man'"),
        ({"facts": [["father", "Ada", "Carl"]]}, "of the sex that the word says"),
        ({"facts": [["aunt", "Ada", "Carl"]]}, "'facts' must hold"),
        ({"facts": [["mother", "Ada", "Zed"]]}, "'facts' must hold"),
        ({"facts": [["mother", "Ada", "Ada"]]}, "two different people"),
        ({"second": "Zed"}, "two of the people"),
        ({"second": "Tom"}, "two of the people"),
        ({"facts": [["mother", "Ada", "Carl"]]}, "have 0 relations"),
        ({"answer": "nephew"}, "'grandson' is"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_generations must be an integer from 3 to 4"):
        FamilyRelationsEnv(num_generations=5)
