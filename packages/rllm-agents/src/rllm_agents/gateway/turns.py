"""What a session recorded: one turn for each completion, and the token records made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rllm_agents.continuation import RenderedPrompt, SampledTurn
from rllm_agents.renderer import Renderer
from rllm_agents.types import Completion, Message, Step, TokenRecord, TurnSpan


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """What a completion is sampled after. Made by a session."""

    messages: tuple[Message, ...]
    """The conversation, for engines that work on text; empty for prompts that are no messages."""
    rendered: RenderedPrompt | None
    """Template text and its ids; None where the prompt came as ids, or there is no tokenizer."""
    token_ids: tuple[int, ...] | None
    """None where there is no tokenizer."""
    parent: Turn | None
    """The turn whose ids it begins with; None begins a sequence."""

    @property
    def num_since_first(self) -> int:
        """Tokens after the first prompt of its sequence: completions, and what came between."""
        first = self
        while first.parent is not None:
            first = first.parent.prompt
        return len(self.token_ids or ()) - len(first.token_ids or ())


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One recorded completion. Made by a session, read by `token_records`."""

    index: int
    """Its place among all turns of the session, and of its step among the steps."""
    sequence: str
    """What the engine knows its sequence by: turns that share it are one unbroken history."""
    prompt: Prompt
    completion: Completion
    sampled: SampledTurn | None
    """What later prompts may go on with; None where the prompt was not rendered, or the engine
    gave no ids."""
    step: Step

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Ids of the prompt and of what was sampled after it."""
        return (*(self.prompt.token_ids or ()), *self.completion.token_ids)


def token_records(turns: Sequence[Turn]) -> tuple[TokenRecord, ...]:
    """Return every sampled id once.

    Turns that continue each other share a record. Where several continue the same turn, the first
    stays in its record; each other begins a record whose beginning counts as prompt.

    Args:
        turns: In the order of their indices. Those without ids make the whole session text only.
    """
    if any(not turn.completion.token_ids for turn in turns):
        return ()
    drafts: list[_Draft] = []
    ends: dict[int, _Draft] = {}
    for turn in turns:
        parent = turn.prompt.parent
        draft = ends.pop(parent.index, None) if parent is not None else None
        if draft is None:
            draft = _Draft([], [], [])
            drafts.append(draft)
        draft.add(turn)
        ends[turn.index] = draft
    return tuple(TokenRecord(tuple(d.token_ids), tuple(d.logprobs), tuple(d.turns)) for d in drafts)


@dataclass(slots=True)
class _Draft:
    """A TokenRecord in the making; always ends with a completion."""

    token_ids: list[int]
    logprobs: list[float]
    turns: list[TurnSpan]

    def add(self, turn: Turn) -> None:
        prompt, completion = turn.prompt.token_ids or (), turn.completion
        bridge = prompt[len(self.token_ids) :]
        self.token_ids += (*bridge, *completion.token_ids)
        self.logprobs += (*(0.0 for _ in bridge), *completion.logprobs)
        start, stop = len(prompt), len(prompt) + len(completion.token_ids)
        version, spans = completion.weights_version, completion.version_spans
        self.turns.append(TurnSpan(start, stop, turn.index, version, spans))


def cut_at_stop(
    completion: Completion, stops: Sequence[str], renderer: Renderer | None
) -> Completion:
    """End a completion as a sampler that knows these texts would have.

    The text ends before the first of them. The ids end with the one that completed it: it was
    sampled, and it is what made the model stop.
    """
    places = [completion.text.find(stop) for stop in stops]
    found = [place for place in places if place >= 0]
    if not found:
        return completion
    text = completion.text[: min(found)]
    if renderer is None or not completion.token_ids:
        return replace(completion, text=text, finish_reason="stop")
    ids = completion.token_ids
    # Text only grows with the ids, so that the shortest beginning with a stop is found by halves.
    low, high = 1, len(ids)
    while low < high:
        middle = (low + high) // 2
        said = renderer.decode(ids[:middle])
        if any(stop in said for stop in stops):
            high = middle
        else:
            low = middle + 1
    spans = [replace(s, stop=min(s.stop, low)) for s in completion.version_spans if s.start < low]
    return replace(
        completion,
        text=text,
        finish_reason="stop",
        token_ids=ids[:low],
        logprobs=completion.logprobs[:low],
        version_spans=tuple(spans),
    )
