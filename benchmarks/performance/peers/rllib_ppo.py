"""RLlib's own `PPOTorchLearner` over the same transformer, one update a lap.

    python rllib_ppo.py update FOLDER MINIBATCH

What a user of RLlib as it is would write: a `TorchRLModule` around the model, whose observation is
a row of token ids padded to the longest, whose actions are the ids that follow, and RLlib's own PPO
loss with its mask, without critic, KL term and entropy bonus. With MINIBATCH 0 the batch is one
minibatch, as the learner takes one optimizer step each; else the update is another one: as many
optimizer steps as there are minibatches.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

# Said before RLlib is imported: nothing of this run is reported anywhere.
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import gymnasium
import numpy as np
import torch
from laps import Laps, save_first_gradient
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import DEFAULT_MODULE_ID, Columns
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical
from ray.rllib.core.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.policy.sample_batch import MultiAgentBatch, SampleBatch
from transformers import AutoModelForCausalLM
from workload import CLIP, LEARNING_RATE, MAX_GRAD_NORM, Workload, load_workload


class TransformerModule(TorchRLModule, ValueFunctionAPI):
    """A causal language model whose actions are tokens."""

    def setup(self) -> None:
        """Load the model."""
        path = self.model_config["path"]
        self.model: Any = AutoModelForCausalLM.from_pretrained(path)

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Predict every token but the first."""
        logits = self.model(input_ids=batch[Columns.OBS], use_cache=False).logits
        return {Columns.ACTION_DIST_INPUTS: logits[:, :-1]}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> torch.Tensor:
        """Return no values: the learner has no critic, but its base asks for the method."""
        raise NotImplementedError("use_critic is off")

    def get_train_action_dist_cls(self) -> type[TorchCategorical]:
        """Tokens are drawn from a categorical distribution."""
        return TorchCategorical

    get_exploration_action_dist_cls = get_train_action_dist_cls
    get_inference_action_dist_cls = get_train_action_dist_cls


def make_learner(folder: Path, vocabulary: int) -> Any:
    """Build RLlib's learner with the module."""
    spec = RLModuleSpec(
        module_class=TransformerModule, model_config={"path": str(folder / "model")}
    )
    config = (
        PPOConfig()
        .training(
            lr=LEARNING_RATE,
            grad_clip=MAX_GRAD_NORM,
            grad_clip_by="global_norm",
            clip_param=CLIP,
            use_critic=False,
            use_kl_loss=False,
            entropy_coeff=0.0,
        )
        .rl_module(rl_module_spec=spec)
    )
    spaces = (gymnasium.spaces.Discrete(vocabulary), gymnasium.spaces.Discrete(vocabulary))
    return config.build_learner(spaces={DEFAULT_MODULE_ID: spaces})


@torch.no_grad()
def make_batch(model: Any, workload: Workload) -> MultiAgentBatch:
    """Return the batch; logprobs are those of the model, row by row, as if it had sampled."""
    sequences = [p + c for p, c in zip(workload.prompts, workload.completions, strict=True)]
    shape = (len(sequences), max(map(len, sequences)))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, bool)
    logprobs = np.zeros(shape, np.float32)
    for row, (sequence, prompt) in enumerate(zip(sequences, workload.prompts, strict=True)):
        ids[row, : len(sequence)] = sequence
        mask[row, len(prompt) : len(sequence)] = True
        predicted = model(input_ids=torch.tensor([sequence]), use_cache=False).logits[0, :-1]
        chosen = predicted.log_softmax(-1).gather(-1, torch.tensor(sequence[1:])[:, None])
        logprobs[row, 1 : len(sequence)] = chosen.squeeze(-1).numpy()
    advantages = np.array(workload.advantages, np.float32)[:, None]
    columns = {
        Columns.OBS: ids,
        Columns.ACTIONS: ids[:, 1:],
        Columns.ACTION_LOGP: logprobs[:, 1:],
        Columns.ADVANTAGES: np.broadcast_to(advantages, (shape[0], shape[1] - 1)).copy(),
        Columns.LOSS_MASK: mask[:, 1:],
        # Read even where nothing is made of them.
        Columns.ACTION_DIST_INPUTS: np.zeros((shape[0], 1, 1), np.float32),
        Columns.VALUE_TARGETS: np.zeros(shape[0], np.float32),
    }
    batch = SampleBatch({key: torch.from_numpy(value) for key, value in columns.items()})
    return MultiAgentBatch({DEFAULT_MODULE_ID: batch}, env_steps=shape[0])


def main() -> None:
    """Update until nobody asks."""
    folder, minibatch = Path(sys.argv[2]), int(sys.argv[3])
    laps = Laps()
    workload = load_workload(folder)
    model = AutoModelForCausalLM.from_pretrained(folder / "model")
    batch = make_batch(model, workload)
    learner = make_learner(folder, model.config.vocab_size)
    save_first_gradient(learner.module[DEFAULT_MODULE_ID].model, folder / f"rllib-{minibatch}.pt")
    del model
    laps.answer()
    while laps.wait():
        learner.update(batch=batch, minibatch_size=minibatch or None, num_epochs=1)
        laps.done()


if __name__ == "__main__":
    main()
