import random
import threading

import gymnasium
import pytest

from rllm_envs import ContractError, Response, SingleTurnEnv, TextEnv, check_text_env
from rllm_envs.checker import CONTRACT, Subject


class GoodEnv(SingleTurnEnv):
    """Copy a number."""

    def generate_task(self):
        number = str(self.np_random.integers(10**6))
        return {"question": f"Copy {number} into a box.", "answer": number}


class GlobalRandomEnv(GoodEnv):
    """Takes its task from the process-wide generator."""

    def generate_task(self):
        number = str(random.randrange(10**6))
        return {"question": f"Copy {number} into a box.", "answer": number}


class WrongOracleEnv(GoodEnv):
    """Its oracle does not know the answer."""

    def oracle_action(self):
        return r"\boxed{no}"


class RaisingEnv(GoodEnv):
    """Reads every answer as a number."""

    def grade(self, task, answer):
        return int(answer) == int(task["answer"])


class ChangingInfoEnv(GoodEnv):
    """Gives one info key two types."""

    def respond(self, action):
        response = super().respond(action)
        score = 1 if response.reward else "none"
        return Response("", response.reward, True, info={**response.info, "score": score})


class TaskChangingEnv(GoodEnv):
    """Shows a given task differently."""

    def validate_task(self, task):
        return {**task, "question": "Something else."}


class DiceEnv(TextEnv):
    """Shares a generator between instances."""

    shared = random.Random(0)

    def generate_task(self):
        return {"n": int(self.np_random.integers(10**6))}

    def begin(self, task):
        return f"{task['n']} {self.shared.random()}"

    def respond(self, action):
        return Response("", 1.0, True)

    def oracle_action(self):
        return "x"


class ThreadEnv(GoodEnv):
    """Shows in which thread it runs."""

    def question(self, task):
        is_main = threading.current_thread() is threading.main_thread()
        return task["question"] + ("" if is_main else " Quickly!")


class MainThreadEnv(GoodEnv):
    """Refuses to run in another thread, as signals do."""

    def begin(self, task):
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("signal only works in main thread")
        return super().begin(task)


class GenerousEnv(GoodEnv):
    """Rewards every answer, whatever it says."""

    def grade(self, task, answer):
        return True

    def extract(self, action):
        return action


class MissingInfoEnv(GoodEnv):
    """Replaces a required key by None."""

    def respond(self, action):
        response = super().respond(action)
        return Response("", response.reward, True, info={"turn": None})


class ModelessEnv(GoodEnv):
    """Takes no render mode."""

    def __init__(self):
        super().__init__()


class BlankEnv(GoodEnv):
    """Renders something that is not the episode."""

    def render(self):
        return "a picture"


class ForgetfulEnv(GoodEnv):
    """Made from its spec it asks otherwise, because it counts its instances."""

    instances = 0

    def __init__(self, *, split="train", render_mode=None, opponent=None):
        super().__init__(split=split, render_mode=render_mode)
        type(self).instances += 1
        self.number = type(self).instances

    def question(self, task):
        return f"{self.number}: {task['question']}"


def test_a_good_env_passes():
    check_text_env(GoodEnv())


@pytest.mark.parametrize(
    ("env_class", "reason"),
    [
        (GlobalRandomEnv, "seed 0 gives another episode"),
        (DiceEnv, "another episode"),
        (WrongOracleEnv, "the mean reward 0"),
        (RaisingEnv, r"step\(.*raises ValueError"),
        (ChangingInfoEnv, r"info\['score'\]"),
        (TaskChangingEnv, "shows 'Something else.'"),
        (ThreadEnv, "seed 0 gives another episode in a thread"),
        (MainThreadEnv, "an episode in a thread raises ValueError"),
        (GenerousEnv, r"random text earns 1 on average over 50 episodes; at most 0\.5"),
        (MissingInfoEnv, r"info\['turn'\] must be int, got None"),
        (ModelessEnv, r"ModelessEnv\(\) takes no render_mode"),
        (BlankEnv, "returns 'a picture' after an episode"),
    ],
)
def test_each_broken_rule_is_named(env_class, reason):
    with pytest.raises(ContractError, match=reason):
        check_text_env(env_class())


def test_an_env_of_another_kind_is_refused():
    with pytest.raises(ContractError, match="not a subclass"):
        check_text_env(gymnasium.make("CartPole-v1"))


def broken_rules(env):
    """Names of the rules that an env breaks, and of those that do not apply."""
    subject, broken, skipped = Subject(env), [], []
    for rule in CONTRACT:
        try:
            if rule.check(subject):
                skipped.append(rule.name)
        except ContractError:
            broken.append(rule.name)
    return broken, skipped


@pytest.mark.parametrize(
    ("env_class", "rule"),
    [(WrongOracleEnv, "oracle"), (GenerousEnv, "guessing"), (ThreadEnv, "threads"),
     (ModelessEnv, "rendering"), (MissingInfoEnv, "info"), (TaskChangingEnv, "tasks")],
)  # fmt: skip
def test_a_defect_breaks_one_rule_alone(env_class, rule):
    broken, skipped = broken_rules(env_class())
    assert broken == [rule]
    assert skipped == ["spec"]


def test_guessing_is_not_judged_where_random_text_makes_step_raise():
    broken, skipped = broken_rules(RaisingEnv())
    assert broken == ["any-text"]
    assert skipped == ["guessing", "spec"]


@pytest.fixture
def registered():
    ids = []

    def register(**arguments):
        ids.append(f"test-checker/Env{len(ids)}-v0")
        gymnasium.register(ids[-1], **arguments)
        return gymnasium.make(ids[-1])

    yield register
    for env_id in ids:
        gymnasium.registry.pop(env_id)


def test_a_registered_env_is_made_again_from_the_json_of_its_spec(registered):
    good = registered(entry_point=f"{__name__}:GoodEnv", kwargs={"split": "test"})
    assert broken_rules(good) == ([], [])
    with pytest.raises(ContractError, match="made from the JSON of its spec it begins with"):
        check_text_env(registered(entry_point=f"{__name__}:ForgetfulEnv"))
    unwritable = {"opponent": print}
    with pytest.raises(ContractError, match="the spec does not survive JSON"):
        check_text_env(registered(entry_point=f"{__name__}:ForgetfulEnv", kwargs=unwritable))


def test_a_spec_with_a_class_cannot_be_written_as_json_and_is_left_out(registered):
    assert broken_rules(registered(entry_point=GoodEnv)) == ([], ["spec"])


def test_the_bounds_follow_the_threshold_of_the_spec(registered):
    # Half of 0.4 is 0.2, which is less than the 1 that any text earns.
    easy = registered(entry_point=GenerousEnv, reward_threshold=0.4)
    with pytest.raises(
        ContractError, match=r"at most 0\.2 is allowed, with the reward threshold 0\.4"
    ):
        check_text_env(easy)
    # Below 0 the bound lies as far below the threshold as above: -3 for -2.
    negative = registered(entry_point=GenerousEnv, reward_threshold=-2)
    with pytest.raises(ContractError, match="at most -3 is allowed"):
        check_text_env(negative)


def test_each_rule_has_a_name_of_its_own_a_summary_and_a_remedy():
    assert len({rule.name for rule in CONTRACT}) == len(CONTRACT)
    assert all(rule.summary and rule.remedy for rule in CONTRACT)
