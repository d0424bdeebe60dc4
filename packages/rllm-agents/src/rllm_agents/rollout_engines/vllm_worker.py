"""What runs inside vLLM's worker process: methods that its engine calls by name.

vLLM mixes `WorkerExtension` into its worker class. Nothing here is imported by the process that
drives the engine, and nothing outside it imports vLLM's internals.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

_SECONDS_BETWEEN_LOOKS = 1.0


class WorkerExtension:
    """Methods added to vLLM's worker; `self` has the worker's attributes."""

    model_runner: Any
    model_config: Any
    device: Any

    def rllm_prepare(self, driver: int) -> dict[str, list[str]]:
        """Make the process outlive a ctrl-C but not its driver, and say which modules are fused.

        A terminal sends SIGINT to every process of its group. The one that drives the engine ends
        its step, saves and closes the engine; that takes an engine that is still there. A driver
        that is killed closes nothing, and would leave an engine behind that holds its memory.

        Args:
            driver: Process id of the driver, on this machine.

        Returns:
            Name of a fused module -> names of the modules that it is made of.
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
        packed = getattr(self.model_runner.get_model(), "packed_modules_mapping", None) or {}
        return {fused: list(parts) for fused, parts in packed.items()}

    def rllm_load_weights(self, path: str) -> None:
        """Overwrite weights with those of a safetensors file, under Hugging Face names.

        Weights are loaded the way vLLM loads a checkpoint, so that whatever it makes of them (fused
        matrices, packed layouts) is made again. The file must hold all parts of each fused module.

        Raises:
            ValueError: A weight of the file is none of the model's.
        """
        import torch
        from safetensors.torch import load_file
        from vllm.model_executor.model_loader.reload import (
            finalize_layerwise_reload,
            initialize_layerwise_reload,
        )

        model = self.model_runner.get_model()
        tensors = load_file(path)
        with torch.device(self.device):
            initialize_layerwise_reload(model)
            try:
                model.load_weights(iter(tensors.items()))
            finally:
                finalize_layerwise_reload(model, self.model_config)
        _repack_heads(model)


def _end_with(driver: int) -> None:
    """End this process soon after another has ended."""
    while True:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
        try:
            os.kill(driver, 0)
        except ProcessLookupError:
            os._exit(1)
        except PermissionError:
            pass  # it is there


def _repack_heads(model: Any) -> None:
    """Pack output heads anew from their weights.

    On a CPU a head keeps a packed copy of its weight. A head that is tied to the embedding is not
    loaded under a name of its own, so that its copy would stay that of the old weights.
    """
    from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding

    for module in model.modules():
        if isinstance(module, VocabParallelEmbedding) and "cpu_linear" in module.__dict__:
            module.quant_method.process_weights_after_loading(module)
