"""An agent that searches, from its call to its reward."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from rllm_agents import AgentExecutionEngine, ScriptedEngine, ToolAgent
from rllm_envs import LocalRetrievalTool, ToolEnvironment, search_reward_fn


def test_what_is_searched_for_reaches_the_agent_and_its_answer_the_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("bm25s", reason="needs rllm-envs[search]")
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"title": "Louvre", "text": "It stands in Paris."}))
    monkeypatch.setenv("RLLM_CORPUS", str(corpus))
    tool_map = {"local_search": LocalRetrievalTool}
    call = {"name": "local_search", "arguments": {"query": "Louvre"}}
    engine = AgentExecutionEngine(
        agent_class=ToolAgent,
        agent_args={"tool_map": tool_map, "parser_name": "qwen"},
        env_class=ToolEnvironment,
        env_args={"tool_map": tool_map, "reward_fn": search_reward_fn, "max_steps": 20},
        rollout_engine=ScriptedEngine(
            [f"<tool_call>{json.dumps(call)}</tool_call>", "<answer>Paris</answer>"]
        ),
    )
    task = {"question": "Where is the Louvre?", "answer": "Paris"}
    (episode,) = asyncio.run(engine.execute_tasks([task]))
    assert episode.reward == 1.0 and len(episode.steps) == 2
    messages = episode.steps[1].chat_completions
    roles = ["system", "user", "assistant", "tool", "assistant"]
    assert [m["role"] for m in messages] == roles
    assert messages[1]["content"] == "Where is the Louvre?"
    assert messages[3]["content"] == "[1] Louvre: It stands in Paris."
    assert "Paris" not in messages[0]["content"] + messages[1]["content"]
