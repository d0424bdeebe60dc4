"""Dialogues of any kind, with templates of eight families: what was sampled stays as it was."""

from __future__ import annotations

from typing import Any

from agents_fakes import (
    END_OF_TEXT,
    IM_END,
    ByteTokenizer,
    byte_completion,
    chatml,
    thought_stripping_chatml,
    trimming_chatml,
)
from chat_families import FAMILIES, encode, family_tokenizer, spell, tool, user
from hypothesis import given, settings
from hypothesis import strategies as st

from rllm_agents.renderer import Renderer
from rllm_agents.types import Completion, Message

ALL = sorted(FAMILIES)
WITHOUT_CHANNELS = sorted(set(ALL) - {"harmony"})
# Dialogues of any kind: what the model writes, how its turn ends, who answers.
_PARTS = ["hello", " ", "\n", "12*34", "é", "<", "<think>\n", "\n</think>\n\n", "hm", '"']
_SPELLED = ["<|im_end|>", "<|eot_id|>", "</s>", "[/INST]", "<end_of_turn>", "<|channel|>"]
TEXTS = st.lists(st.sampled_from(_PARTS), max_size=6).map("".join)
HOSTILE_TEXTS = st.lists(st.sampled_from([*_PARTS, *_SPELLED]), max_size=6).map("".join)
ENDS = st.sampled_from(["end", "end", "end", "eos", "none", "cut"])
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["user", "tool", "tools"]), HOSTILE_TEXTS, TEXTS, ENDS, st.booleans()
    ),
    min_size=1,
    max_size=5,
)


def answer(name: str, text: str, end: str) -> Completion:
    """A completion of ordinary characters, ended as told; never without ids."""
    family = FAMILIES[name]
    stop = {"end": family.end, "eos": family.eos}.get(end, "")
    renderer = Renderer(family_tokenizer(name))
    ids = renderer.encode(renderer.cover(text)) + (encode(name, stop) if stop else ())
    ids = ids or encode(name, "x")
    logprobs = tuple(-(j + 1) / 1024 for j in range(len(ids)))
    return Completion(renderer.decode(ids), "length" if end == "cut" else "stop", ids, logprobs)


def asked(who: str, text: str, turn: int) -> list[Message]:
    if who == "user" or turn == 0:
        return [user(text)]
    return [tool(text)] * (2 if who == "tools" else 1)


@settings(deadline=None)
@given(
    turns=TURNS,
    name=st.sampled_from(ALL),
    thinking=st.sampled_from(["template", "keep", "drop"]),
    has_system=st.booleans(),
)
def test_no_sampled_id_is_changed_masked_wrongly_or_lost(
    turns: list, name: str, thinking: Any, has_system: bool
) -> None:
    transcript = Renderer(family_tokenizer(name), thinking=thinking).transcript()
    messages: list[Message] = [{"role": "system", "content": "S"}] if has_system else []
    said = []
    for turn, (who, question, text, end, is_rewritten) in enumerate(turns):
        messages += asked(who, question, turn)
        ids = transcript.prompt_ids(messages)
        completion = answer(name, text, end)
        transcript.add(completion)
        said.append((ids, completion))
        kept = completion.text[1:] + "!" if is_rewritten else completion.text
        messages.append({"role": "assistant", "content": kept})
    records = transcript.token_records()
    spans = [(record, span) for record in records for span in record.turns]
    assert [span.step_index for _, span in spans] == list(range(len(turns)))
    for (record, span), (ids, completion) in zip(spans, said, strict=True):
        assert record.token_ids[: span.start] == ids
        assert record.token_ids[span.start : span.stop] == completion.token_ids
        assert record.logprobs[span.start : span.stop] == completion.logprobs
    for record in records:
        is_sampled = {p for s in record.turns for p in range(s.start, s.stop)}
        assert {x for p, x in enumerate(record.logprobs) if p not in is_sampled} <= {0.0}
        assert len(record.token_ids) == len(record.logprobs) == record.turns[-1].stop


def _squeezed(text: str) -> str:
    return "".join(text.split())


@settings(deadline=None)
@given(turns=TURNS, name=st.sampled_from(WITHOUT_CHANNELS), is_exact=st.booleans())
def test_prompts_say_what_the_full_template_says(turns: list, name: str, is_exact: bool) -> None:
    """Up to white space about answers; id for id where these come as the template writes them."""
    tokenizer = family_tokenizer(name)
    transcript = Renderer(tokenizer).transcript()
    messages: list[Message] = []
    for _, question, text, end, is_rewritten in turns:
        question = question.translate({ord(c): None for c in "<|[]"}) or "?"
        messages.append(user(question))
        full = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = transcript.prompt_ids(messages)
        if is_exact:
            assert spell(name, ids) == full
            text, end, is_rewritten = "word", "end", False
            text = {"llama2": " word ", "mistral": " word"}.get(name, text)
        assert _squeezed(spell(name, ids)) == _squeezed(full)
        completion = answer(name, text, end)
        transcript.add(completion)
        kept = completion.text[1:] + "!" if is_rewritten else completion.text
        messages.append({"role": "assistant", "content": kept})


@settings(deadline=None)
@given(turns=TURNS, name=st.sampled_from(ALL))
def test_kept_completions_stand_in_every_later_prompt(turns: list, name: str) -> None:
    renderer = Renderer(family_tokenizer(name), thinking="keep")
    transcript = renderer.transcript()
    messages: list[Message] = []
    stops = renderer.stop_token_ids
    kept: list[tuple[int, ...]] = []
    for turn, (who, question, text, end, _) in enumerate(turns):
        messages += asked(who, question, turn)
        ids, start = transcript.prompt_ids(messages), 0
        for earlier in kept:
            places = range(start, len(ids) - len(earlier) + 1)
            start = next(p for p in places if ids[p : p + len(earlier)] == earlier) + len(earlier)
        completion = answer(name, text, end)
        transcript.add(completion)
        is_ended = completion.token_ids[-1] in stops
        kept.append(completion.token_ids[:-1] if is_ended else completion.token_ids)
        messages.append({"role": "assistant", "content": completion.text})
    if name not in ("harmony", "mistral") and all(end != "eos" for *_, end, _ in turns):
        assert len(transcript.token_records()) == 1


TEXT = st.text(alphabet="ab <|>\nim_end/think\u00e9", max_size=12) | st.sampled_from(
    ["<|im_end|>", "<|im_start|>", "<think>a</think>b", "", "\n"]
)
STOPS = st.sampled_from([IM_END, IM_END, IM_END, END_OF_TEXT, None])


@given(
    st.lists(st.tuples(TEXT, TEXT, STOPS, st.booleans()), min_size=1, max_size=6),
    st.sampled_from([chatml, thought_stripping_chatml, trimming_chatml]),
)
def test_no_sampled_byte_is_changed_or_lost_and_a_turn_without_ids_leaves_no_record(
    turns: list, template
) -> None:
    transcript = Renderer(ByteTokenizer(template)).transcript()
    messages: list[Message] = []
    said = []
    for question, answer, stop, is_rewritten in turns:
        messages.append(user(question))
        ids = transcript.prompt_ids(messages)
        completion = byte_completion(answer, stop=stop)
        transcript.add(completion)
        if completion.token_ids:
            said.append((ids, completion))
        kept = completion.text[1:] if is_rewritten else completion.text
        messages.append({"role": "assistant", "content": kept})
    if not all(byte_completion(a, stop=s).token_ids for _, a, s, _ in turns):
        assert transcript.token_records() == ()
        return
    spans = [(r, span) for r in transcript.token_records() for span in r.turns]
    assert [span.step_index for _, span in spans] == list(range(len(turns)))
    for (record, span), (ids, completion) in zip(spans, said, strict=True):
        assert record.token_ids[: span.start] == ids
        assert record.token_ids[span.start : span.stop] == completion.token_ids
        assert record.logprobs[span.start : span.stop] == completion.logprobs
    for record in transcript.token_records():
        sampled_at = {p for span in record.turns for p in range(span.start, span.stop)}
        silent = [x for p, x in enumerate(record.logprobs) if p not in sampled_at]
        assert set(silent) <= {0.0}
        assert len(record.token_ids) == len(record.logprobs) == record.turns[-1].stop
