"""Stand-ins for tokenizers, engines, environments and agents, each as small as it can be."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from rllm_agents.agent import BaseAgent
from rllm_agents.call_threads import EnvThreads
from rllm_agents.limits import RolloutLimits
from rllm_agents.renderer import Renderer
from rllm_agents.rollout import RolloutSetting, run_episode
from rllm_agents.rollout_engines.scripted import ScriptedEngine
from rllm_agents.rollout_requests import RolloutRequest
from rllm_agents.types import (
    Action,
    Completion,
    Episode,
    GenerationRequest,
    Message,
    SamplingParams,
)

END_OF_TEXT, IM_START, IM_END = 256, 257, 258
_SPECIAL = {"<|endoftext|>": END_OF_TEXT, "<|im_start|>": IM_START, "<|im_end|>": IM_END}


def chatml(messages: Sequence[Message], add_generation_prompt: bool) -> str:
    """The plain ChatML template: contents stand in it as they are."""
    text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
    return text + ("<|im_start|>assistant\n" if add_generation_prompt else "")


def thought_stripping_chatml(messages: Sequence[Message], add_generation_prompt: bool) -> str:
    """ChatML that drops thoughts of assistant turns before the last user message."""
    last_user = max(i for i, m in enumerate(messages) if m["role"] == "user")
    kept = [
        {**m, "content": m["content"].rpartition("</think>")[2].lstrip("\n")}
        if m["role"] == "assistant" and i < last_user
        else m
        for i, m in enumerate(messages)
    ]
    return chatml(kept, add_generation_prompt)


def trimming_chatml(messages: Sequence[Message], add_generation_prompt: bool) -> str:
    """ChatML that trims every content, as the Llama 3 template does."""
    trimmed = [{**m, "content": m["content"].strip()} for m in messages]
    return chatml(trimmed, add_generation_prompt)


class ByteTokenizer:
    """One id per UTF-8 byte, and three control tokens. No library needed."""

    eos_token_id = END_OF_TEXT

    def __init__(self, template: Callable[[Sequence[Message], bool], str] = chatml) -> None:
        self._template = template
        self.all_special_tokens = list(_SPECIAL)
        self._splitter = re.compile("(" + "|".join(re.escape(s) for s in _SPECIAL) + ")")
        self.added_tokens_decoder = {
            i: SimpleNamespace(content=s, special=True) for s, i in _SPECIAL.items()
        }
        self.num_encoded_characters = 0

    def apply_chat_template(
        self, conversation: Any, *, tokenize: bool, add_generation_prompt: bool
    ) -> str:
        assert not tokenize
        return self._template(conversation, add_generation_prompt)

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        assert not add_special_tokens
        self.num_encoded_characters += len(text)
        ids: list[int] = []
        for piece in self._splitter.split(text):
            ids += [_SPECIAL[piece]] if piece in _SPECIAL else piece.encode()
        return {"input_ids": ids}

    def decode(
        self,
        token_ids: Sequence[int],
        *,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool = False,
    ) -> str:
        strings = {i: s.encode() for s, i in _SPECIAL.items()}
        if skip_special_tokens:
            strings = dict.fromkeys(strings, b"")
        raw = b"".join(strings.get(i, bytes([i]) if i < 256 else b"") for i in token_ids)
        return raw.decode("utf-8", "replace")


class ByteEngine:
    """A token engine over ByteTokenizer: turn i of a session says `texts[i % len(texts)]`.

    Completions end with ``<|im_end|>``; those that do not fit `max_tokens` are cut. The logprob of
    the j-th id of a completion is ``-(j + 1) / 1024``, so misplaced ones show.
    """

    def __init__(self, *texts: str, seconds: float = 0.0) -> None:
        self._texts = texts
        self._seconds = seconds
        self._turns: dict[str, int] = {}
        self.requests: list[GenerationRequest] = []
        self.weights_version = 7

    async def generate(self, request: GenerationRequest) -> Completion:
        self.requests.append(request)
        await asyncio.sleep(self._seconds)
        turn = self._turns.get(request.session_id, 0)
        self._turns[request.session_id] = turn + 1
        return byte_completion(
            self._texts[turn % len(self._texts)], max_tokens=request.sampling.max_tokens
        )

    async def load_weights(self, tensors: Mapping[str, Any], *, version: int) -> None:
        self.weights_version = version

    def close(self) -> None:
        pass


def byte_completion(
    text: str, *, max_tokens: int | None = None, stop: int | None = IM_END
) -> Completion:
    """What ByteEngine answers: the text's bytes and a stop token, or as many as are allowed."""
    ids = [*text.encode(), *([] if stop is None else [stop])]
    is_cut = max_tokens is not None and len(ids) > max_tokens
    ids = ids[:max_tokens] if is_cut else ids
    said = ids[:-1] if ids and ids[-1] == stop else ids
    return Completion(
        text=bytes(said).decode("utf-8", "replace"),
        finish_reason="length" if is_cut else "stop",
        token_ids=tuple(ids),
        logprobs=tuple(-(j + 1) / 1024 for j in range(len(ids))),
        weights_version=7,
    )


class EchoAgent(BaseAgent):
    """Shows observations as they are, acts with what the model said, appends no Step."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def reset(self) -> None:
        self.messages = []

    @property
    def chat_completions(self) -> list[Message]:
        return self.messages

    def update_from_env(
        self, observation: Any, reward: float, done: bool, info: dict[str, Any], **kwargs: Any
    ) -> None:
        self.messages.append({"role": "user", "content": str(observation)})

    def update_from_model(self, response: str, **kwargs: Any) -> Action:
        self.messages.append({"role": "assistant", "content": response})
        return Action(action=response)


class Ledger:
    """Counts what happened to the environments of one test, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.actions: list[Any] = []

    def note(self, entries: list[Any], entry: Any) -> None:
        with self._lock:
            entries.append(entry)

    @property
    def is_balanced(self) -> bool:
        """Whether every environment that was opened was closed exactly once."""
        return sorted(self.opened) == sorted(self.closed)


class CountingEnv:
    """Gives `rewards` one by one and is done after the last; reports to a Ledger.

    Task fields: ``rewards`` (default [1.0]), ``ledger``, ``fault``: what goes wrong, and where.
    """

    blocking = False

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.task = task
        self.ledger: Ledger = task.get("ledger") or Ledger()
        self.turn = 0
        self._fail("init")
        self.ledger.note(self.ledger.opened, id(self))

    @classmethod
    def from_dict(cls, info: dict[str, Any]) -> CountingEnv:
        return cls(info)

    def reset(self) -> Any:
        self._fail("reset")
        if self.task.get("fault") == "reset:wrong":
            return "only an observation"
        return self.task.get("question", "start"), {}

    def step(self, action: Any) -> Any:
        self._fail("step")
        rewards = self.task.get("rewards", [1.0])
        self.ledger.note(self.ledger.actions, action)
        self.turn += 1
        done = self.turn >= len(rewards)
        answer = (f"turn {self.turn}", rewards[self.turn - 1], done, {"turn": self.turn})
        broken = {
            "step:five": (*answer[:3], False, {}),
            "step:none": None,
            "step:done": (*answer[:2], "yes", {}),
            "step:info": (*answer[:3], None),
        }
        return broken.get(self.task.get("fault", ""), answer)

    def close(self) -> None:
        self.ledger.note(self.ledger.closed, id(self))
        self._fail("close")

    def _fail(self, place: str) -> None:
        where, _, kind = self.task.get("fault", "").partition(":")
        if where != place:
            return
        if kind == "hang":
            time.sleep(self.task.get("hang_seconds", 1.0))
        elif kind in FAULTS:
            raise FAULTS[kind]()


class ThreadedEnv(CountingEnv):
    """CountingEnv that has to be run in a thread."""

    blocking = True


FAULTS: dict[str, Callable[[], BaseException]] = {
    "error": lambda: ValueError("broken environment"),
    "timeout": lambda: TimeoutError("the environment's own"),
    "exit": lambda: SystemExit(3),
    "cancel": lambda: asyncio.CancelledError("leaked"),
    "generator": lambda: GeneratorExit(),
}


def play_episode(
    task: dict[str, Any] | None = None,
    *,
    engine: Any = None,
    agent: Callable[[], BaseAgent] = EchoAgent,
    env_class: type[CountingEnv] = CountingEnv,
    renderer: Renderer | None = None,
    sampling: SamplingParams | None = None,
    request_sampling: SamplingParams | None = None,
    gamma: float = 1.0,
    **limits: Any,
) -> Episode:
    """Run one episode under a setting of its own."""
    setting = RolloutSetting(
        make_agent=agent,
        make_env=lambda task: env_class.from_dict(dict(task)),
        engine=engine or ScriptedEngine(["yes", "no"]),
        threads=EnvThreads(),
        renderer=renderer,
        limits=RolloutLimits(**limits),
        sampling=sampling or SamplingParams(),
        gamma=gamma,
        is_construction_blocking=env_class.blocking,
    )
    try:
        request = RolloutRequest(task or {}, "e1", request_sampling)
        return asyncio.run(run_episode(request, setting))
    finally:
        setting.threads.close()


def bytes_renderer() -> Renderer:
    return Renderer(ByteTokenizer())
