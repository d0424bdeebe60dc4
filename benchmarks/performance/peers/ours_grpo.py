"""Our learner and our whole step, and a loop written by hand, one lap at a time.

    python ours_grpo.py update|step|loop FOLDER ROWS

"update" gives credit to given completions and learns from them, "step" is `train_step`: it samples
them too. "loop" is the update that one would write by hand: it pads the batch to its longest row
and cuts it into micro-batches of ROWS rows; the other two do not read ROWS.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from laps import Laps, save_first_gradient
from transformers import AutoModelForCausalLM, AutoTokenizer
from workload import (
    BETAS,
    CLIP,
    GROUP_SIZE,
    LEARNING_RATE,
    MAX_GRAD_NORM,
    MAX_POSITIONS,
    NUM_TASKS,
    Workload,
    load_workload,
    text_reward,
)

from rllm_agents import (
    AgentExecutionEngine,
    ChatAgent,
    Completion,
    Episode,
    GenerationRequest,
    RolloutRequest,
)
from rllm_agents.rollout_engines.transformers import TransformersEngine
from rllm_envs import BaseEnv
from rllm_learn.algorithms import GRPO, GRPOConfig
from rllm_learn.core.batch import Rollout, SampledSequence
from rllm_learn.core.learner import Learner, UpdateRule
from rllm_learn.core.optimizer import LearningRate
from rllm_learn.sampler import PlanSampler, push_weights
from rllm_learn.step import Progress, train_step

RULE = UpdateRule(
    learning_rate=LearningRate(LEARNING_RATE), betas=BETAS, max_grad_norm=MAX_GRAD_NORM
)
ALGORITHM = GRPO(
    GRPOConfig(group_size=GROUP_SIZE, divide_by_std=False, clip_low=CLIP, clip_high=CLIP)
)


class QuestionEnv(BaseEnv):
    """Asks one question and rewards whatever is said."""

    blocking = False

    def __init__(self, question: str) -> None:
        """Take the question."""
        self._question = question

    def reset(self) -> tuple[str, dict]:
        """Ask."""
        return self._question, {}

    def step(self, action: str) -> tuple[str, float, bool, dict]:
        """Reward the answer."""
        return "", text_reward(action), True, {}

    @staticmethod
    def from_dict(info: dict) -> QuestionEnv:
        """Make one of a task."""
        return QuestionEnv(info["question"])


class FixedLengths(TransformersEngine):
    """Completions end where their bound is, as if by a stop token there."""

    async def generate(self, request: GenerationRequest) -> Completion:
        """Sample as many tokens as the request allows."""
        return replace(await super().generate(request), finish_reason="stop")


class Questions:
    """The same tasks at every step."""

    def __init__(self, questions: Sequence[str]) -> None:
        """Take one question of each group."""
        self._tasks = [{"question": question} for question in questions]

    def batch(self, first: int, num_tasks: int) -> list[dict[str, Any]]:
        """Return all of them."""
        assert num_tasks == len(self._tasks)
        return self._tasks


def given_update(model: torch.nn.Module, workload: Workload) -> Callable[[], Any]:
    """Return the update on given completions.

    The sampler's logprobs are those of the model before the first update, as if it had sampled.
    """
    learner = Learner(model, RULE)
    blank = [
        SampledSequence(
            token_ids=(*prompt, *completion),
            action_mask=(False,) * len(prompt) + (True,) * len(completion),
            logprobs=(0.0,) * (len(prompt) + len(completion)),
        )
        for prompt, completion in zip(workload.prompts, workload.completions, strict=True)
    ]
    scores = [score.policy for score in learner.score(blank, {"policy"})]
    rollouts = [
        Rollout(index // GROUP_SIZE, reward, (replace(sequence, logprobs=logprobs),))
        for index, (sequence, logprobs, reward) in enumerate(
            zip(blank, scores, workload.rewards, strict=True)
        )
        if logprobs is not None
    ]
    return lambda: learner.update(ALGORITHM.credit(rollouts, {}).sequences, ALGORITHM.loss)


def whole_step(folder: Path, workload: Workload, runner: asyncio.Runner) -> Callable[[], Any]:
    """Return the step that samples, each rollout as many tokens as it is given, and learns."""
    sampling = FixedLengths(str(folder / "model"), stop_token_ids=())
    engine = AgentExecutionEngine(
        agent_class=ChatAgent,
        env_class=QuestionEnv,
        tokenizer=AutoTokenizer.from_pretrained(folder / "model"),
        rollout_engine=sampling,
        max_response_length=MAX_POSITIONS // 2,
    )
    learner = Learner(AutoModelForCausalLM.from_pretrained(folder / "model").eval(), RULE)

    def play(requests: Sequence[RolloutRequest]) -> list[Episode]:
        bounded = [
            replace(request, sampling=replace(request.sampling, max_tokens=length))
            for request, length in zip(requests, workload.lengths, strict=True)
            if request.sampling is not None
        ]
        return runner.run(engine.execute_requests(bounded))

    def push(weights: Any, version: int) -> None:
        runner.run(push_weights(sampling, weights, version=version, adapter_config=None))

    sampler = PlanSampler(play=play, push=push, temperature=1.0, seed=0, max_failure_share=0.0)
    tasks, progress = Questions(workload.questions[::GROUP_SIZE]), Progress()

    def step() -> None:
        report = train_step(sampler, learner, ALGORITHM, tasks, progress, num_tasks=NUM_TASKS)
        learned = sum(sequence.sampled.num_actions for sequence in report.sequences)
        assert learned == sum(workload.lengths), (learned, report.skipped)

    return step


def hand_loop(model: torch.nn.Module, workload: Workload, rows: int) -> Callable[[], Any]:
    """Return the update that is written by hand."""
    sequences = [p + c for p, c in zip(workload.prompts, workload.completions, strict=True)]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=0.0
    )

    def update() -> None:
        width = max(map(len, sequences))
        ids = torch.tensor([s + [0] * (width - len(s)) for s in sequences])
        places = torch.arange(1, width)
        starts = torch.tensor([[len(prompt)] for prompt in workload.prompts])
        ends = torch.tensor([[len(sequence)] for sequence in sequences])
        mask = (places >= starts) & (places < ends)
        advantages = torch.tensor(workload.advantages)[:, None]
        for part in torch.arange(len(ids)).split(rows):
            logits = model(input_ids=ids[part], use_cache=False).logits[:, :-1]
            logprobs = logits.log_softmax(-1).gather(-1, ids[part, 1:, None]).squeeze(-1)
            ratio = (logprobs - logprobs.detach()).exp()
            gain = torch.minimum(
                ratio * advantages[part], ratio.clamp(1 - CLIP, 1 + CLIP) * advantages[part]
            )
            (-(gain * mask[part]).sum() / mask.sum()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        optimizer.zero_grad()

    return update


def main() -> None:
    """Take laps until nobody asks."""
    mode, folder, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    laps = Laps()
    workload = load_workload(folder)
    with asyncio.Runner() as runner:
        if mode == "step":
            lap = whole_step(folder, workload, runner)
        else:
            model = AutoModelForCausalLM.from_pretrained(folder / "model").eval()
            save_first_gradient(model, folder / f"{mode}.pt")
            lap = (
                given_update(model, workload)
                if mode == "update"
                else hand_loop(model, workload, rows)
            )
        laps.answer()
        while laps.wait():
            lap()
            laps.done()


if __name__ == "__main__":
    main()
