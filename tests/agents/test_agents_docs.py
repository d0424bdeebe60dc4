"""The snippets of the documentation run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGES = [
    "docs/agents.md",
    "docs/execution-engine.md",
    "docs/workflows.md",
    "packages/rllm-agents/README.md",
]
SNIPPET = re.compile(r"(<!-- needs a model -->\n)?```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_snippets_of_a_page_run_one_after_another(page: str, repository: Path) -> None:
    names: dict[str, Any] = {"__name__": "snippet"}
    snippets = SNIPPET.findall((repository / page).read_text())
    assert snippets
    for needs_model, code in snippets:
        compiled = compile(code, page, "exec")
        if not needs_model:
            exec(compiled, names)


def test_the_agent_of_the_page_corrects_itself(repository: Path) -> None:
    import asyncio

    from agents_fakes import ByteEngine, ByteTokenizer, CountingEnv

    from rllm_agents import AgentExecutionEngine

    names: dict[str, Any] = {"__name__": "snippet"}
    _, code = SNIPPET.findall((repository / "docs/agents.md").read_text())[0]
    exec(compile(code, "docs/agents.md", "exec"), names)
    task = {"question": {"question": "2+2?"}, "rewards": [0.0, 1.0]}
    for accumulate, num_records in ((True, 1), (False, 2)):
        with AgentExecutionEngine(
            agent_class=names["MathAgent"],
            agent_args={"accumulate_thinking": accumulate},
            env_class=CountingEnv,
            rollout_engine=ByteEngine("<think>hm</think>5", "4"),
            tokenizer=ByteTokenizer(),
        ) as engine:
            (episode,) = asyncio.run(engine.execute_tasks([task]))
        assert len(episode.trajectory.token_records) == num_records
        assert episode.reward == 1.0
