import gymnasium
import pytest

from rllm_envs import EnvArgumentError, GymEnv, MultiTurnEnv, Response, TaskError, check_text_env


class GuessEnv(MultiTurnEnv):
    """Guess a number; a wrong guess is answered with higher or lower."""

    def generate_task(self):
        number = int(self.np_random.integers(1, 1001))
        return {"question": "Guess a number from 1 to 1000.", "answer": str(number)}

    def feedback(self, task, answer):
        if not answer.isdecimal():
            return "Write a number."
        return "Higher." if int(answer) < int(task["answer"]) else "Lower."


class ShopEnv(MultiTurnEnv):
    """Ask for a price, then name it; half of the reward for a near one."""

    def generate_task(self):
        price = int(self.np_random.integers(10, 1000))
        return {"question": "What does it cost? Say 'ask' to ask.", "answer": str(price)}

    def grade(self, task, answer):
        off = abs(int(answer) - int(task["answer"])) if answer.isdecimal() else 99
        return 1.0 if off == 0 else 0.5 if off < 5 else 0.0

    def reply(self, task, action):
        if action == "leave":
            return Response("Bye.", terminated=True)
        return f"It costs {task['answer']}." if action == "ask" else "Pardon?"


TASK = {"question": "Guess.", "answer": "5"}


def start(env, task=TASK):
    return env, env.reset(options={"task": task})[0]


def test_a_few_lines_keep_the_contract():
    check_text_env(GuessEnv(split="all"))
    check_text_env(ShopEnv(max_turns=5, split="all"))


def test_feedback_follows_a_wrong_answer_and_a_right_one_ends():
    env, question = start(GuessEnv())
    assert question == "Guess."
    assert env.step(r"\boxed{3}")[:4] == ("Higher.", 0.0, False, False)
    observation, reward, terminated, truncated, info = env.step(r"I say \boxed{5}")
    assert (observation, reward, terminated, truncated) == ("", 1.0, True, False)
    assert info["success"] and info["turns_left"] == 1
    assert env.history == [(r"\boxed{3}", "Higher."), (r"I say \boxed{5}", "")]
    env.reset()
    assert env.history == []


def test_an_action_without_an_answer_gets_the_hint_and_spent_turns_truncate():
    env, _ = start(GuessEnv(max_turns=2))
    observation, *_, info = env.step("five")
    assert (observation, info["invalid"]) == (r"Give the answer in \boxed{}.", True)
    observation, reward, terminated, truncated, info = env.step(r"\boxed{4}")
    assert (observation, reward, terminated, truncated) == ("", 0.0, False, True)
    assert not info["success"]


def test_a_reply_is_a_text_or_a_whole_response():
    env, _ = start(ShopEnv())
    assert env.step("ask")[:4] == ("It costs 5.", 0.0, False, False)
    assert env.step("leave")[:4] == ("Bye.", 0.0, True, False)


def test_a_part_of_the_reward_is_paid_for_the_last_turn_only():
    env, _ = start(ShopEnv(max_turns=2))
    assert env.step(r"\boxed{6}")[1] == 0.0
    _, reward, terminated, truncated, info = env.step(r"\boxed{7}")
    assert (reward, terminated, truncated, info["success"]) == (0.5, False, True, False)


def test_it_runs_under_gymnasium_and_in_an_rl_loop():
    gymnasium.register("tests/Guess-v0", entry_point=GuessEnv, disable_env_checker=True)
    try:
        env = GymEnv("tests/Guess-v0", env_kwargs={"max_turns": 4}, seed=1)
        first = env.reset()[0]
        assert first == {"question": "Guess a number from 1 to 1000."} == env.reset()[0]
        _, reward, done, info = env.step(env.oracle_action())
        assert (reward, done, info["success"]) == (1.0, True, True)
    finally:
        del gymnasium.registry["tests/Guess-v0"]


@pytest.mark.parametrize("max_turns", [1, 0, True, 2.0, None])
def test_one_turn_is_not_several(max_turns):
    with pytest.raises(EnvArgumentError, match="max_turns must be an integer of at least 2"):
        GuessEnv(max_turns=max_turns)


def test_a_task_needs_question_and_answer():
    with pytest.raises(TaskError, match="answer"):
        GuessEnv().reset(options={"task": {"question": "Guess."}})
