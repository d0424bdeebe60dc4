"""CodeAgent: a program alone is its action, and what became of it is shown."""

from __future__ import annotations

import asyncio

import pytest

from rllm_agents import AgentExecutionEngine, CodeAgent, ScriptedEngine
from rllm_agents.agents.code import MEND, SYSTEM_PROMPT
from rllm_envs import GymEnv

RIGHT = "def solve(x):\n    return sorted(x)"
WRONG = "def solve(x):\n    return x"
TASK = {
    "question": "Write a function solve(x) that sorts a list.",
    "entry_point": "solve",
    "tests": [{"input": [[3, 1, 2]], "output": [1, 2, 3]}, {"input": [[]], "output": []}],
}


def fenced(program: str) -> str:
    return f"```python\n{program}\n```"


def test_its_action_is_the_last_program_outside_of_thoughts() -> None:
    agent = CodeAgent()
    agent.update_from_env({"question": "Sort."}, 0.0, False, {})
    response = (
        f"<think>{fenced('thought')}</think>First\n{fenced(WRONG)}\nthen\n{fenced(RIGHT)}\n"
        "Run it by\n```bash\npython solve.py\n```"
    )
    assert agent.update_from_model(response).action == fenced(RIGHT)
    assert agent.chat_completions[-1] == {"role": "assistant", "content": response}
    assert agent.update_from_model("I cannot.").action == "I cannot."
    assert len(agent.trajectory.steps) == 2


def test_what_became_of_an_attempt_is_shown_with_the_request_to_mend_it() -> None:
    agent = CodeAgent()
    agent.update_from_env({"question": "Sort."}, 0.0, False, {})
    agent.update_from_model(fenced(WRONG))
    agent.update_from_env({"question": "A test fails."}, 0.0, False, {})
    agent.update_from_model(fenced(RIGHT))
    agent.update_from_env({"question": "over"}, 1.0, True, {})
    assert [(m["role"], m["content"]) for m in agent.chat_completions] == [
        ("system", SYSTEM_PROMPT),
        ("user", "Sort."),
        ("assistant", fenced(WRONG)),
        ("user", f"A test fails.\n{MEND}"),
        ("assistant", fenced(RIGHT)),
    ]
    agent.reset()
    assert [m["role"] for m in agent.chat_completions] == ["system"]
    assert agent.trajectory.steps == []
    assert CodeAgent(system_prompt=None).chat_completions == []


@pytest.mark.parametrize(
    ("env_id", "task", "responses", "rewards"),
    [
        ("rllm/PythonCode-v0", TASK, [f"So:\n{fenced(RIGHT)}\nDone."], [1.0]),
        ("rllm/PythonCode-v0", TASK, [fenced(WRONG)], [0.0]),
        (
            "rllm/CodeRepair-v0",
            {**TASK, "broken": WRONG},
            ["I think it is right.", fenced(WRONG), f"Ah.\n{fenced(RIGHT)}"],
            [0.0, 0.0, 1.0],
        ),
    ],
)
def test_it_writes_and_mends_programs_in_the_sandbox(
    env_id: str, task: dict[str, object], responses: list[str], rewards: list[float]
) -> None:
    with AgentExecutionEngine(
        agent_class=CodeAgent,
        env_class=GymEnv,
        env_args={"env_id": env_id},
        rollout_engine=ScriptedEngine(responses),
    ) as engine:
        (episode,) = asyncio.run(engine.execute_tasks([task]))
    assert episode.error is None
    assert [step.reward for step in episode.steps] == rewards
    if len(rewards) == 3:
        told = episode.steps[-1].chat_completions[-2]["content"]
        assert "solve([3, 1, 2])" in told and told.endswith(MEND)
