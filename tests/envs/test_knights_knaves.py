from itertools import product

import pytest

from rllm_envs import EnvArgumentError, TaskError
from rllm_envs.reasoning.knights_knaves import KnightsKnavesEnv, is_true

# If Ana is a knight, Ben is a knave, so they are not the same; Ben lies: fits. If Ana is a knave,
# Ben is a knight and says the truth, that they are the same: a contradiction.
TASK = {"people": ["Ana", "Ben"], "statements": [["is", 1, "knave"], ["same", 0, 1]]}


def reward(task, answer):
    env = KnightsKnavesEnv()
    env.reset(options={"task": task})
    return env.step(f"\\boxed{{{answer}}}")[1]


def test_the_puzzle_is_told_and_has_its_answer():
    env = KnightsKnavesEnv()
    assert env.reset(options={"task": TASK})[0] == (
        "Each person is a knight or a knave. Knights always tell the truth, knaves always lie.\n"
        'Ana says: "Ben is a knave."\n'
        'Ben says: "Ana and I are of the same kind."\n'
        r"Who is a knight and who is a knave? Give the answer as \boxed{Ana: ..., Ben: ...} with "
        "knight or knave for each."
    )
    assert env.oracle_action() == r"\boxed{Ana: knight, Ben: knave}"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Ana: knight, Ben: knave", 1.0),
        ("ben = Knave; ana = Knight", 1.0),
        (r"\text{Ana is a knight, Ben is a knave}", 1.0),
        ("Ana: knave, Ben: knight", 0.0),
        ("Ana: knight", 0.0),
        ("Ana: knight, Ben: knave, Eva: knave", 0.0),
        ("Ana: knight, Ben: knave, Ben: knight", 0.0),
        ("knight, knave", 0.0),
        ("", 0.0),
    ],
)
def test_every_kind_must_be_right(answer, expected):
    assert reward(TASK, answer) == expected


@pytest.mark.parametrize(
    ("statement", "true_for"),
    [
        (["is", 0, "knight"], {"NN", "NV"}),
        (["same", 0, 1], {"NN", "VV"}),
        (["differ", 0, 1], {"NV", "VN"}),
        (["if", 0, "knight", 1, "knight"], {"NN", "VN", "VV"}),
        (["and", 0, "knave", 1, "knight"], {"VN"}),
        (["or", 0, "knave", 1, "knight"], {"NN", "VN", "VV"}),
        (["least", 1], {"NN", "NV", "VN"}),
        (["exactly", 1], {"NV", "VN"}),
    ],
)
def test_the_truth_of_each_form(statement, true_for):
    for kinds in product("NV", repeat=2):
        assert is_true(statement, [k == "N" for k in kinds]) == ("".join(kinds) in true_for)


def _spoken_truth(sentence, speaker, kinds):
    """The truth of a sentence as it is shown, read independently of the task's data."""
    text = sentence.rstrip(".").replace("I am", f"{speaker} is").replace(" I ", f" {speaker} ")
    text = text.replace("and I are", f"and {speaker} are")

    def claim(part):
        name, kind = part.strip().split(" is a ")
        return kinds[name] == (kind == "knight")

    if " of us " in text:
        count = int(next(word for word in text.split() if word.isdigit()))
        knights = sum(kinds.values())
        return knights >= count if text.startswith("At least") else knights == count
    if " are of " in text:
        first, second = text.partition(" are of ")[0].split(" and ")
        return (kinds[first] == kinds[second]) == ("the same" in text)
    if text.startswith("If "):
        premise, conclusion = text[3:].split(", then ")
        return not claim(premise) or claim(conclusion)
    for word, rule in ((" and ", all), (" or ", any)):
        if word in text:
            return rule(claim(part) for part in text.split(word))
    return claim(text)


@pytest.mark.parametrize("num_people", [2, 3, 5])
def test_just_the_oracles_kinds_agree_with_what_is_shown(num_people):
    env = KnightsKnavesEnv(num_people=num_people, split="all")
    for seed in range(25):
        observation, _ = env.reset(seed=seed)
        said = dict(
            line.rstrip('"').split(' says: "')
            for line in observation.splitlines()[1 : 1 + num_people]
        )
        fitting = []
        for values in product([True, False], repeat=num_people):
            kinds = dict(zip(said, values, strict=True))
            if all(_spoken_truth(said[name], name, kinds) == kinds[name] for name in said):
                fitting.append(", ".join(f"{n}: {'knight' if k else 'knave'}"
                                         for n, k in kinds.items()))  # fmt: skip
        assert fitting == [env.task["answer"]]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"people": ["Ana"]}, "'people' must be a list of 2 to 8"),
        ({"people": ["Ana", "ana"]}, "distinct"),
        ({"statements": [["is", 1, "knave"]]}, "'statements' must be a list of 2 to 2"),
        ({"statements": [["is", 2, "knave"], ["same", 0, 1]]}, "people from 0 to 1"),
        ({"statements": [["is", 1, "liar"], ["same", 0, 1]]}, "'statements' holds"),
        ({"statements": [[], ["same", 0, 1]]}, "'statements' holds"),
        ({"statements": [["is", 1, "knight"], ["is", 0, "knight"]]}, "2 assignments fit"),
        ({"answer": "Ana: knave, Ben: knave"}, "is not right"),
    ],
)
def test_given_tasks_are_checked(changes, reason):
    with pytest.raises(TaskError, match=reason):
        reward({**TASK, **changes}, "1")


def test_arguments_out_of_range_are_refused():
    with pytest.raises(EnvArgumentError, match="num_people must be an integer from 2 to 8, got 9"):
        KnightsKnavesEnv(num_people=9)
