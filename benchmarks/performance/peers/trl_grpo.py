"""TRL's `GRPOTrainer`, one step a lap. Runs in the environment where TRL is installed.

    python trl_grpo.py update|step FOLDER ROWS

"update" is given the completions (by TRL's `rollout_func`), "step" samples them with transformers'
`generate`. ROWS is `per_device_train_batch_size`. The loss is the mean over sampled tokens
("dapo"), advantages are not divided by the standard deviation, there is no KL term.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

import datasets
import torch
import transformers
from laps import Laps, save_first_gradient
from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]
from workload import (
    BETAS,
    CLIP,
    GROUP_SIZE,
    LEARNING_RATE,
    MAX_GRAD_NORM,
    MAX_POSITIONS,
    Workload,
    load_workload,
    text_reward,
)


class LapCallback(transformers.TrainerCallback):
    """Lets the trainer take one step for each lap that is asked for."""

    def __init__(self, laps: Laps) -> None:
        """Take what asks."""
        self._laps = laps

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Wait for the next lap; end the process where there is none."""
        if not self._laps.wait():
            sys.exit(0)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Answer with what the step took."""
        self._laps.done()


class FixedLengths(transformers.LogitsProcessor):
    """Lets each row end at a length of its own, by the stop token, and never before."""

    def __init__(self, lengths: list[int], prompt_length: int, stop_id: int) -> None:
        """Take the completions' lengths, the stop token counted."""
        self._last = torch.tensor(lengths) - 1 + prompt_length
        self._stop_id = stop_id

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Forbid the stop token, or all others."""
        ends = input_ids.shape[1] >= self._last
        stop = scores[:, self._stop_id].clone()
        scores[ends] = -torch.inf
        scores[:, self._stop_id] = torch.where(ends, stop, -torch.inf)
        return scores


def settings(folder: Path, rows: int, num_rollouts: int) -> Any:
    """Return TRL's settings of one update on all rollouts."""
    return GRPOConfig(
        output_dir=str(folder / "trl"),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=rows,
        gradient_accumulation_steps=num_rollouts // rows,
        num_generations=GROUP_SIZE,
        max_completion_length=MAX_POSITIONS // 2,
        loss_type="dapo",
        scale_rewards="none",
        beta=0.0,
        epsilon=CLIP,
        temperature=1.0,
        learning_rate=LEARNING_RATE,
        lr_scheduler_type="constant",
        adam_beta1=BETAS[0],
        adam_beta2=BETAS[1],
        weight_decay=0.0,
        max_grad_norm=MAX_GRAD_NORM,
        max_steps=1_000_000,
        shuffle_dataset=False,
        report_to="none",
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
    )


def given(workload: Workload) -> dict[str, Any]:
    """Return the trainer's arguments where completions and rewards are given."""

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        return {
            "prompt_ids": workload.prompts,
            "completion_ids": workload.completions,
            "logprobs": None,
        }

    def reward(completions: list[Any], **kwargs: Any) -> list[float]:
        return workload.rewards

    return {"rollout_func": rollout, "reward_funcs": reward}


def sampled(workload: Workload, model: Any, stop_id: int) -> dict[str, Any]:
    """Return the trainer's arguments where the model samples, each row its given length."""
    (prompt_length,) = {len(prompt) for prompt in workload.prompts}
    lengths = FixedLengths(workload.lengths, prompt_length, stop_id)
    model.generate = functools.partial(model.generate, logits_processor=[lengths])

    def reward(completions: list[Any], **kwargs: Any) -> list[float]:
        return [text_reward(completion[0]["content"]) for completion in completions]

    return {"reward_funcs": reward}


def main() -> None:
    """Take steps until nobody asks."""
    mode, folder, rows = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    laps = Laps()
    workload = load_workload(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
    if mode == "update":
        arguments = given(workload)
        save_first_gradient(model, folder / f"trl-{rows}.pt")
    else:
        arguments = sampled(workload, model, tokenizer.eos_token_id)
    prompts = [[{"role": "user", "content": q}] for q in workload.questions[::GROUP_SIZE]]
    trainer = GRPOTrainer(
        model=model,
        args=settings(folder, rows, len(workload.prompts)),
        train_dataset=datasets.Dataset.from_dict({"prompt": prompts}),
        processing_class=tokenizer,
        callbacks=[LapCallback(laps)],
        **arguments,
    )
    laps.answer()
    trainer.train()


if __name__ == "__main__":
    main()
