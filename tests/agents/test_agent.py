from __future__ import annotations

from typing import Any

import pytest
from agents_fakes import EchoAgent

from rllm_agents import BaseAgent, ChatAgent, Step


def test_an_agent_without_a_conversation_cannot_be_made() -> None:
    class Silent(BaseAgent):
        def reset(self) -> None: ...

        def update_from_env(self, *args: Any, **kwargs: Any) -> None: ...

        def update_from_model(self, response: str, **kwargs: Any) -> Any: ...

    with pytest.raises(TypeError, match="chat_completions"):
        Silent()  # type: ignore[abstract]


def test_the_trajectory_needs_no_call_of_the_base_constructor() -> None:
    agent = EchoAgent()
    assert agent.get_current_state() is None
    step = Step()
    agent.trajectory.steps.append(step)
    assert agent.get_current_state() is step


@pytest.mark.parametrize(
    ("observation", "shown"),
    [
        ("hello", "hello"),
        ({"question": "2+2?", "id": 1}, "2+2?"),
        (42, "42"),
        ({"a": 1}, "{'a': 1}"),
    ],
)
def test_a_chat_agent_shows_texts_questions_and_anything_else(
    observation: object, shown: str
) -> None:
    agent = ChatAgent()
    agent.update_from_env(observation, 0.0, False, {})
    assert agent.chat_completions == [{"role": "user", "content": shown}]


def test_a_chat_agent_alternates_turns_after_its_system_prompt() -> None:
    agent = ChatAgent(system_prompt="Be brief.")
    agent.update_from_env("hi", 0.0, False, {})
    assert agent.update_from_model("hello").action == "hello"
    agent.update_from_env(None, 1.0, True, {})
    assert [m["role"] for m in agent.chat_completions] == ["system", "user", "assistant"]


def test_reset_forgets_the_conversation_but_not_the_system_prompt() -> None:
    agent = ChatAgent(system_prompt="Be brief.")
    agent.update_from_env("hi", 0.0, False, {})
    agent.reset()
    assert agent.chat_completions == [{"role": "system", "content": "Be brief."}]
    assert agent.trajectory.steps == []
