from __future__ import annotations

import asyncio
import random

import pytest

from rllm_agents.adapter_turns import AdapterEngine, AdapterTurns
from rllm_agents.errors import EngineError
from rllm_agents.types import Completion, GenerationRequest, SamplingParams


class Model:
    """Holds one adapter at a time, and says in every completion which it was, all along."""

    weights_version = 0

    def __init__(self) -> None:
        self.adapter: str | None = None
        self.exchanges: list[str | None] = []
        self.most_at_once = self.num_running = 0
        self._random = random.Random(0)

    async def activate(self, name: str | None) -> None:
        assert self.num_running == 0
        await asyncio.sleep(0.001)
        self.adapter = name
        self.exchanges.append(name)

    async def generate(self, request: GenerationRequest) -> Completion:
        self.num_running += 1
        self.most_at_once = max(self.most_at_once, self.num_running)
        before = self.adapter
        await asyncio.sleep(self._random.uniform(0.0, 0.004))
        self.num_running -= 1
        assert self.adapter == before
        if request.session_id == "fails":
            raise EngineError("no")
        return Completion(str(before), "stop")

    async def load_weights(self, tensors: object, *, version: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass


def asked(session: str = "") -> GenerationRequest:
    return GenerationRequest((), None, SamplingParams(), session)


def test_every_completion_is_of_its_own_adapter_and_those_of_one_run_together() -> None:
    async def main() -> None:
        model = Model()
        turns = AdapterTurns(model)
        engines = {name: AdapterEngine(turns, model, name) for name in ("red", "blue", None)}
        chance = random.Random(1)
        names = [chance.choice([*engines]) for _ in range(120)]
        completions = await asyncio.gather(*(engines[n].generate(asked()) for n in names))
        assert [c.text for c in completions] == [str(n) for n in names]
        assert model.most_at_once > 1
        # All who wait for an adapter go together: one exchange each, in the order they came.
        order = list(dict.fromkeys(names))
        assert model.exchanges == [n for i, n in enumerate(order) if i or n is not None]

    asyncio.run(main())


def test_later_ones_of_the_present_adapter_do_not_overtake_those_who_wait() -> None:
    async def main() -> None:
        model = Model()
        turns = AdapterTurns(model)
        red, blue = AdapterEngine(turns, model, "red"), AdapterEngine(turns, model, "blue")
        first = asyncio.create_task(red.generate(asked()))
        await asyncio.sleep(0.002)
        waiting = asyncio.create_task(blue.generate(asked()))
        await asyncio.sleep(0)
        late = asyncio.create_task(red.generate(asked()))
        await asyncio.gather(first, waiting, late)
        assert model.exchanges == ["red", "blue", "red"]

    asyncio.run(main())


def test_failures_and_cancellations_give_the_turn_back() -> None:
    async def main() -> None:
        model = Model()
        turns = AdapterTurns(model)
        red, blue = AdapterEngine(turns, model, "red"), AdapterEngine(turns, model, "blue")
        with pytest.raises(EngineError):
            await red.generate(asked("fails"))
        running = asyncio.create_task(red.generate(asked()))
        waiting = asyncio.create_task(blue.generate(asked()))
        await asyncio.sleep(0)
        running.cancel()
        waiting.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        model.num_running = 0  # the cancelled one did not get to count itself out
        async with asyncio.timeout(1.0):
            assert (await blue.generate(asked())).text == "blue"

    asyncio.run(main())


def test_a_players_engine_takes_no_weights() -> None:
    engine = AdapterEngine(AdapterTurns(Model()), Model(), None)
    with pytest.raises(EngineError, match="policy"):
        asyncio.run(engine.load_weights({}, version=1))
