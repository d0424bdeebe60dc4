from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from rllm_agents.errors import EngineError
from rllm_agents.named_weights import NamedWeightsEngine
from rllm_agents.types import Completion, GenerationRequest, SamplingParams

BASE = {"a.weight": torch.zeros(2, 2), "b.weight": torch.ones(2, 2)}


class Model:
    """Says in every completion which weights it held, at the start and at the end of it."""

    weights_version = 0
    max_model_length = 99

    def __init__(self) -> None:
        self.weights = {name: tensor.clone() for name, tensor in BASE.items()}
        self.num_loads = self.num_running = self.num_sleeps = 0

    async def generate(self, request: GenerationRequest) -> Completion:
        assert request.adapter == ""
        self.num_running += 1
        before = self.text()
        await asyncio.sleep(0.001)
        assert self.text() == before
        self.num_running -= 1
        return Completion(before, "stop", weights_version=self.num_loads)

    def text(self) -> str:
        return " ".join(f"{t.flatten()[0].item():g}" for t in self.weights.values())

    async def load_weights(self, tensors: Mapping[str, Any], *, version: int) -> None:
        assert self.num_running == 0
        self.num_loads += 1
        assert version == self.num_loads
        self.weights |= tensors

    async def sleep(self) -> None:
        self.num_sleeps += 1

    def close(self) -> None:
        pass


def asked(adapter: str = "") -> GenerationRequest:
    return GenerationRequest((), None, SamplingParams(), adapter=adapter)


def full(value: float) -> torch.Tensor:
    return torch.full((2, 2), value)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    save_file(BASE, tmp_path / "model.safetensors")
    return tmp_path


def test_each_request_is_sampled_by_the_set_it_names_under_that_sets_version(
    checkpoint: Path,
) -> None:
    async def main() -> None:
        engine = NamedWeightsEngine(Model(), checkpoint, {"red": None, "base": None})
        assert engine.max_model_length == 99
        await engine.load_weights({"a.weight": full(5), "red:b.weight": full(7)}, version=3)
        names = ["", "red", "base", "policy", "red", ""] * 4
        completions = await asyncio.gather(*(engine.generate(asked(n)) for n in names))
        said = {"": "5 1", "policy": "5 1", "red": "0 7", "base": "0 1"}
        assert [c.text for c in completions] == [said[n] for n in names]
        versions = {"": 3, "policy": 3, "red": 3, "base": 0}
        assert [c.weights_version for c in completions] == [versions[n] for n in names]

    asyncio.run(main())


def test_new_weights_of_one_set_leave_the_others_as_they_are(checkpoint: Path) -> None:
    async def main() -> None:
        engine = NamedWeightsEngine(Model(), checkpoint, {"old": None})
        await engine.load_weights({"a.weight": full(1), "old:a.weight": full(2)}, version=1)
        assert (await engine.generate(asked())).text == "1 1"
        await engine.load_weights({"a.weight": full(9)}, version=2)
        new = await engine.generate(asked())
        assert (new.text, new.weights_version, engine.weights_version) == ("9 1", 2, 2)
        old = await engine.generate(asked("old"))
        assert (old.text, old.weights_version) == ("2 1", 1)

    asyncio.run(main())


def test_a_completion_that_is_being_sampled_ends_with_the_weights_it_began_with(
    checkpoint: Path,
) -> None:
    async def main() -> None:
        engine = NamedWeightsEngine(Model(), checkpoint, {"old": None})
        await engine.load_weights({"a.weight": full(1)}, version=1)
        begun = asyncio.create_task(engine.generate(asked()))
        await asyncio.sleep(0.0005)
        await engine.load_weights({"a.weight": full(2)}, version=2)
        later = await engine.generate(asked())
        first = await begun
        assert (first.text, first.weights_version) == ("1 1", 1)
        assert (later.text, later.weights_version) == ("2 1", 2)

    asyncio.run(main())


def test_no_request_waits_for_ever_where_weights_come_all_the_time(checkpoint: Path) -> None:
    async def main() -> None:
        engine = NamedWeightsEngine(Model(), checkpoint, {"red": None})

        async def push() -> None:
            for version in range(1, 30):
                await engine.load_weights(
                    {"a.weight": full(version), "red:b.weight": full(version)}, version=version
                )
                await asyncio.sleep(0.001)

        names = ["", "red"] * 60
        async with asyncio.timeout(20.0):
            pushed = asyncio.create_task(push())
            completions = await asyncio.gather(*(engine.generate(asked(n)) for n in names))
            await pushed
        for name, completion in zip(names, completions, strict=True):
            version = completion.weights_version
            first = version if name == "" else 0
            second = version if name == "red" and version else 1
            assert completion.text == f"{first} {second}"

    asyncio.run(main())


def test_an_adapter_of_a_directory_is_merged_once_and_frozen(
    checkpoint: Path, tmp_path: Path
) -> None:
    adapter = tmp_path / "adapter"
    adapter.mkdir()
    config = {"peft_type": "LORA", "r": 1, "lora_alpha": 2.0}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    key = "base_model.model.b"
    down, up = torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0], [0.0]])
    save_file(
        {f"{key}.lora_A.weight": down, f"{key}.lora_B.weight": up},
        adapter / "adapter_model.safetensors",
    )

    async def main() -> None:
        model = Model()
        engine = NamedWeightsEngine(model, checkpoint, {str(adapter): str(adapter)})
        await engine.generate(asked(str(adapter)))
        # 1 + 2 / 1 * 3 * 1 at the corner, nothing elsewhere.
        assert model.weights["b.weight"].tolist() == [[7.0, 1.0], [1.0, 1.0]]
        assert (await engine.generate(asked())).text == "0 1"

    asyncio.run(main())


def test_a_name_that_is_no_sets_is_refused(checkpoint: Path) -> None:
    engine = NamedWeightsEngine(Model(), checkpoint, {"red": None})
    with pytest.raises(EngineError, match="policy, red"):
        asyncio.run(engine.generate(asked("blue")))
    with pytest.raises(EngineError, match="blue"):
        asyncio.run(engine.load_weights({"blue:a.weight": full(1)}, version=1))


def test_its_engine_is_what_sleeps(checkpoint: Path) -> None:
    model = Model()
    asyncio.run(NamedWeightsEngine(model, checkpoint, {"red": None}).sleep())
    assert model.num_sleeps == 1
