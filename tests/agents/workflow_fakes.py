"""Engines and workflows for tests of workflows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

from agents_fakes import ByteTokenizer, byte_completion

from rllm_agents import AgentWorkflowEngine, Completion, Episode, GenerationRequest, Workflow
from rllm_agents.types import VersionSpan


class TaggedEngine:
    """A token engine whose every completion is another one, and comes after a random time.

    A completion says the last word of the conversation and a number of its own; its logprobs are
    that number's too. `sampled` maps its text to the request and the completion.
    """

    weights_version = 7

    def __init__(self, seed: int = 0, *, longest_seconds: float = 0.003) -> None:
        self._random = random.Random(seed)
        self._longest_seconds = longest_seconds
        self.sampled: dict[str, tuple[GenerationRequest, Completion]] = {}

    async def generate(self, request: GenerationRequest) -> Completion:
        number = len(self.sampled) + 1
        text = f"{request.messages[-1]['content'].split()[-1]}={number}"
        plain = byte_completion(text)
        completion = Completion(
            text=text,
            finish_reason="stop",
            token_ids=plain.token_ids,
            logprobs=tuple(-number - j / 1024 for j in range(len(plain.token_ids))),
            weights_version=number,
            version_spans=(
                VersionSpan(0, 1, number),
                VersionSpan(1, len(plain.token_ids), number + 1),
            ),
        )
        self.sampled[text] = request, completion
        await asyncio.sleep(self._random.uniform(0.0, self._longest_seconds))
        return completion

    async def load_weights(self, tensors: Mapping[str, Any], *, version: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


class FaultyEngine(TaggedEngine):
    """Raises what `fault` makes of the number of the call, from 1; None: it answers."""

    def __init__(self, fault: Callable[[int], BaseException | None]) -> None:
        super().__init__(longest_seconds=0.0)
        self._fault = fault
        self.num_calls = 0

    async def generate(self, request: GenerationRequest) -> Completion:
        self.num_calls += 1
        error = self._fault(self.num_calls)
        if error is not None:
            raise error
        return await super().generate(request)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def answer(workflow: Any, task: Any) -> None:
    """Ask the task's question once, as a solver, who is right where it says so."""
    solver = workflow.new_trajectory("solver")
    output = await workflow.rollout_engine.get_model_response(
        [user(str(task["question"]))], trajectory=solver
    )
    solver.steps[0].reward = float(output.text.startswith("right"))


def workflow_of(function: Callable[..., Any]) -> type[Workflow]:
    """A Workflow whose `run` is a function of the workflow and the task."""

    class Made(Workflow):
        async def run(self, task: Mapping[str, Any], uid: str, **kwargs: Any) -> Episode | None:
            self.reset(task, uid)
            return await function(self, task)

    return Made


def run_tasks(
    workflow: type[Workflow] | Callable[..., Any], tasks: list[dict[str, Any]], **arguments: Any
) -> list[Episode]:
    """Run a workflow, or a function as one, on tasks."""
    if not isinstance(workflow, type):
        workflow = workflow_of(workflow)
    arguments.setdefault("rollout_engine", TaggedEngine())
    if "tokenizer" not in arguments:
        arguments["tokenizer"] = ByteTokenizer()
    arguments.setdefault("retry_backoff", 0.001)
    with AgentWorkflowEngine(workflow_cls=workflow, **arguments) as engine:
        return asyncio.run(engine.execute_tasks(tasks))


def run_one(workflow: Any, task: dict[str, Any] | None = None, **arguments: Any) -> Episode:
    """Run a workflow on one task."""
    (episode,) = run_tasks(workflow, [task or {"question": "q"}], **arguments)
    return episode
